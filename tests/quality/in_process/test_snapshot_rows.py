"""The gate on a snapshot in process says what Great Expectations says on Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.run.states import PlanState
from rehome.quality.in_process.rules_on_rows import broken_rules
from rehome.quality.in_process.snapshot_rows import refused_snapshot, snapshot_rows
from rehome.quality.snapshot.rules import snapshot_rules
from rehome.quality.snapshot.tables import Concerned
from tests.quality.snapshot.snapshot_corruptions import BROKEN_ROWS, CORRUPTIONS
from tests.quality.snapshots import TAKEN_AT, Rows
from world.outcome import run
from world.script import Do, Plan, Script, Topic, What

MAX_AGE_S = 3600.0
REBALANCE = ReassignmentRequest(Action.REBALANCE)
FRESH = "the snapshot is fresh"


def judged(rows: Rows, age: timedelta = timedelta(minutes=1)) -> set[str]:
    return set(refused_snapshot(rows.snapshot(), REBALANCE, TAKEN_AT + age, MAX_AGE_S))


def test_a_sound_snapshot_breaks_no_rule() -> None:
    assert judged(Rows()) == set()


def test_corruptions_break_the_rules_that_they_break_on_spark_with_the_same_first_row() -> None:
    rows = Rows()
    for corrupt in CORRUPTIONS:
        corrupt(rows)
    tables = snapshot_rows(rows.snapshot(), TAKEN_AT + timedelta(hours=2), Concerned())
    found = broken_rules(snapshot_rules(additional=False), {"max_age_s": MAX_AGE_S}, tables)
    assert set(found) == {*BROKEN_ROWS, FRESH}
    for rule, shown in BROKEN_ROWS.items():
        texts = [f"{name} {value}" for name, value in found[rule].items() if value is not None]
        assert ", ".join(texts) in shown


def test_one_that_a_clock_ahead_has_taken_is_not_fresh() -> None:
    assert judged(Rows(), timedelta(days=-1)) == {FRESH}
    assert judged(Rows(), timedelta(seconds=-59)) == set()


@pytest.mark.slow
def test_no_plan_is_made_of_a_snapshot_that_a_clock_ahead_has_taken() -> None:
    drain = Plan("A", (), drains=(1,), tried_out=True)
    start = Do(1.0, "A", What.START, (0,))
    jumps = [(0.5, 86_400), (5.0, 0)]  # the snapshot is taken at 3 s, and planned on at 6
    ahead, right = (Do(at, "A", What.CLOCK_JUMPS, (by,)) for at, by in jumps)
    topics = (Topic("t", ((1, 2), (2, 3)), 5_000_000),)
    script = Script(1, 4, topics, (drain,), does=(start,), quiet_s=60.0)
    assert run(script).states == {PlanState.DONE: 1}
    outcome = run(replace(script, does=(ahead, start, right)))
    assert (outcome.states, outcome.violations) == ({}, ())


def test_one_without_brokers_breaks_one_rule() -> None:
    nothing = Rows(brokers=[], log_dirs=[], topics=[], replicas=[])
    assert judged(nothing) == {"the snapshot has live brokers"}


def test_a_dead_broker_breaks_a_rule_only_where_its_load_is_balanced() -> None:
    rows = Rows()
    rows.lose(4)
    assert judged(rows) == {"every broker whose load is balanced is alive"}
    repair = ReassignmentRequest(Action.FIX_OFFLINE_REPLICAS)
    assert refused_snapshot(rows.snapshot(), repair, TAKEN_AT, MAX_AGE_S) == {}
