"""How estimates are held against what came."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from rehome.domain.claims import EndsIn
from rehome.domain.run.states import PlanState
from tests.world.judge.test_judge_finds import kinds, seen, world
from world.judge.plan_seen import PlanSeen
from world.judge.statements import Statement
from world.judge.violations import Kind
from world.running.outside import EPOCH


@pytest.mark.parametrize(
    ("said_at", "seconds", "found"),
    [(10.0, 40.0, set()), (10.0, 60.0, {Kind.FALSE_CLAIM}), (70.0, 10.0, set())],
)
def test_no_plan_ends_after_its_window(said_at: float, seconds: float, found: set[Kind]) -> None:
    plan = PlanSeen("p", "A", {}, None, frozenset(), frozenset(), [], True, window_s=60.0)
    said = Statement("A", "p", "poll", (EndsIn(seconds),), since=said_at, at=said_at + 1)
    assert kinds(seen(world(), plans=(plan,), statements=(said,))) == found


@pytest.mark.parametrize(
    ("state", "found"), [(PlanState.DONE, {Kind.FALSE_CLAIM}), (PlanState.FAILED, set())]
)
def test_an_estimate_is_held_against_the_end_of_a_plan_that_was_carried_out(
    state: PlanState, found: set[Kind]
) -> None:
    record: Any = SimpleNamespace(
        plan_id="p", state=state, started_at=EPOCH, ended_at=EPOCH + timedelta(seconds=90)
    )
    plan = PlanSeen("p", "A", {}, record, frozenset(), frozenset(), [], False)
    said = Statement("A", "p", "poll", (EndsIn(900),), since=20.0, at=21.0)
    judged = replace(seen(world(), plans=(plan,), statements=(said,)), only_started=True)
    assert kinds(judged) & {Kind.FALSE_CLAIM} == found
