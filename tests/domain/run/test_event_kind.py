"""Kinds of events: what the ledger's rows hold of them."""

from __future__ import annotations

import pytest

from rehome.domain.run.event_kind import EventKind, OtherKind, kind_of
from rehome.domain.run.states import MoveState, PlanState

WRITTEN = (
    "planned",
    "approved",
    "running",
    "paused",
    "done",
    "cancelled",
    "rolled_back",
    "failed",
    "rolled back in part",
    "continued",
    "request",
    "sent back",
    "approval lapsed",
    "move pending",
    "move cancelled",
    "move superseded",
    "move failed",
    "not cancelled",
    "not read",
    "reassigned beside",
    "throttle",
    "rate not set",
    "foreign rate",
    "throttle gone",
    "throttle not set again",
    "throttle owed",
    "followed up",
    "not empty",
    "adding partitions",
    "partitions added",
    "alert",
    "alert not sent",
    "finding opened",
    "finding closed",
    "run started for a finding",
)
"""Kinds in rows that exist. A new kind is added; none is ever renamed."""


def test_the_kinds_of_rows_that_were_written_before_are_known() -> None:
    assert all(isinstance(kind_of(text), EventKind) for text in WRITTEN)


def test_a_kind_that_another_version_wrote_stays_its_text_and_is_none_of_ours() -> None:
    kind = kind_of("moved to the moon")
    assert kind == OtherKind("moved to the moon")
    assert not isinstance(kind, EventKind)


@pytest.mark.parametrize("state", PlanState)
def test_a_plans_state_is_the_kind_of_the_event_for_it(state: PlanState) -> None:
    assert EventKind.of_plan(state).name == state.name


@pytest.mark.parametrize(
    "state", [s for s in MoveState if s not in (MoveState.DONE, MoveState.ADMITTED)]
)
def test_a_move_that_was_settled_otherwise_than_done_has_an_event(state: MoveState) -> None:
    assert EventKind.of_move(state).name == f"MOVE_{state.name}"
