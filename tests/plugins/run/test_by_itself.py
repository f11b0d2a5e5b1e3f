"""Nothing that runs by itself takes replicas away: a person asks for it, or approves it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rehome import installation
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.askers import RunDoor
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding_kinds import FindingKind, WatchPolicy
from rehome.fleet import watch_runs
from rehome.ledger.store import Ledger
from rehome.ledger.stores.watched.starts import StartRecord
from rehome.run.by_itself import LowersReplicationError, refuse_lowering
from rehome.run.context import RunContext
from tests.ledger.small_plans import make_plan, move
from tests.plugins.run.asked import BEGUN, asked_for, by_a_task, run_of, task_of

FEWER = make_plan("p1", move("t", 0, (1, 2), (1,)), move("t", 1, (2, 3), (3, 2)))
AS_MANY = make_plan("p1", move("t", 0, (1, 2), (3, 1)))
SCHEDULED = {"run_type": "scheduled", "triggering_user_name": None}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    with installation.open_ledger() as opened:
        yield opened


def by_watching(ledger: Ledger, policy: WatchPolicy, person: str | None = None) -> Any:
    """A run that watching has started for a finding, or a person who had it judge."""
    run = by_a_task(f"watch__{policy}")
    asked = {"door": RunDoor.WATCH, "asked_by": person, "conf": run.conf}
    ledger.request_run(asked_for(run.run_id, **asked))
    kind, later = FindingKind.REPLICATION_FACTOR, BEGUN + timedelta(hours=1)
    start = StartRecord(run.dag_id, run.run_id, "c1", kind, "t", BEGUN, policy, BEGUN, later)
    ledger.record_watch_start(start)
    return run


def refused(ledger: Ledger, run: Any, recorded: bool = False, **options: Any) -> bool:
    record = ledger.plan("p1") if recorded else None
    refuse_lowering(RunContext(task_of(run)), AS_MANY, record, **options)  # takes nothing away
    try:
        refuse_lowering(RunContext(task_of(run)), FEWER, record, **options)
    except LowersReplicationError as error:
        return "1 partition, such as t-0, ends with replicas on 1 broker instead" in str(error)
    return False


def test_who_asks_for_it_may(ledger: Ledger) -> None:
    assert not refused(ledger, run_of("manual__1"))


@pytest.mark.parametrize("person", [None, "ann"])
def test_a_heal_may_not_whoever_had_watching_judge(ledger: Ledger, person: str | None) -> None:
    assert refused(ledger, by_watching(ledger, WatchPolicy.HEAL, person))


def test_the_schedule_may_not_unless_a_person_will_be_asked(ledger: Ledger) -> None:
    assert refused(ledger, run_of("scheduled__1", **SCHEDULED))
    assert not refused(ledger, run_of("scheduled__1", **SCHEDULED), asks=True)


def test_before_the_change_a_person_must_have_approved_it_or_handed_it_over(
    ledger: Ledger,
) -> None:
    run = by_watching(ledger, WatchPolicy.PROPOSE)
    ledger.create_plan(FEWER, {}, "file:///nowhere", run.run_id, "watching", None, run.dag_id)
    assert refused(ledger, run, recorded=True), "though a person was to be asked"
    terms = Terms(FEWER.plan_hash, 5)
    for by, by_person in (("watching", False), ("ann", True)):
        assert refused(ledger, run, recorded=True)
        given: dict[str, Any] = {"by_person": by_person, "asked_by": "watching"}
        ledger.approve("p1", FEWER.plan_hash, by, terms, **given)
    assert not refused(ledger, run, recorded=True)


def test_a_window_carries_out_what_a_person_has_handed_over(ledger: Ledger) -> None:
    ledger.create_plan(FEWER, {"dry_run": True}, "file:///nowhere", "r", "ann", None, "plan_fleet")
    window = run_of("scheduled__1", **SCHEDULED)
    assert refused(ledger, window, recorded=True)
    ledger.hand_over("p1", "ann")
    assert not refused(ledger, window, recorded=True)


def test_what_watching_has_handed_over_is_nobodys(ledger: Ledger) -> None:
    run = by_watching(ledger, WatchPolicy.HEAL)
    request = {"dry_run": True}
    ledger.create_plan(FEWER, request, "file:///nowhere", run.run_id, "watching", None, run.dag_id)
    watch_runs.hand_over(run, ledger, "p1", "watching")
    assert ledger.plan("p1").for_window_at is not None
    assert refused(ledger, run_of("scheduled__1", **SCHEDULED), recorded=True)


@pytest.mark.parametrize("heal", [True, False])
def test_of_paused_plans_a_window_goes_on_with_a_persons_alone(ledger: Ledger, heal: bool) -> None:
    run = by_watching(ledger, WatchPolicy.HEAL) if heal else run_of("manual__1")
    ledger.create_plan(FEWER, {}, "file:///nowhere", run.run_id, "ann", None, run.dag_id)
    ledger.approve("p1", FEWER.plan_hash, "ann")
    ledger.claim("p1")
    ledger.transition("p1", PlanState.PAUSED, "the window has ended")
    assert refused(ledger, run_of("scheduled__1", **SCHEDULED), recorded=True) is heal
