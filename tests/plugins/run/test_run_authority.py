"""A run starts something only if somebody who may ask stands behind it, still."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehome import installation
from rehome.domain.run.askers import NotAsked, NotAskedForError
from rehome.domain.run.states import PlanState
from rehome.ledger.base.audit_entry import Decided
from rehome.ledger.store import Ledger
from rehome.operators.approval.approve import ApprovePlanOperator
from rehome.operators.dry_run import DryRunOperator
from rehome.operators.execute import StartReassignmentOperator
from rehome.operators.plan import PlanReassignmentOperator
from rehome.operators.snapshot import SnapshotClusterOperator
from rehome.operators.throttle import SetThrottleOperator
from rehome.run.context import RunContext
from rehome.run.run_authority import refuse_unasked
from tests.ledger.audit_rows import audit_of
from tests.ledger.small_plans import make_plan
from tests.plugins.run.asked import BEGUN, CONF, asked_for, by_a_task, run_of, task_of

LONG_AGO = BEGUN - timedelta(days=60)


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    with installation.open_ledger() as opened:
        yield opened


def refused(run: SimpleNamespace, **params: Any) -> str:
    """Why a task of the run may not start anything."""
    with pytest.raises(NotAskedForError) as caught:
        refuse_unasked(RunContext(task_of(run, **params)))
    return str(caught.value)


def plan_of(ledger: Ledger, run: SimpleNamespace, *states: PlanState) -> None:
    """The plan that a run has made, and what has become of it."""
    plan = make_plan(RunContext(task_of(run)).plan_id, cluster_id=run.run_id)
    ledger.create_plan(plan, {}, "file:///nowhere", run.run_id, "ann", None, run.dag_id)
    if states:
        ledger.approve(plan.plan_id, plan.plan_hash, "ann")
    for state in states:
        ledger.transition(plan.plan_id, state, "because")


def test_what_people_and_schedules_trigger_is_asked_for(ledger: Ledger) -> None:
    refuse_unasked(RunContext(task_of(run_of("r1"))))
    by_schedule = run_of("r2", run_type="scheduled", triggering_user_name=None)
    refuse_unasked(RunContext(task_of(by_schedule)))


def test_a_run_that_a_task_has_started_needs_a_request_with_its_very_parameters(
    ledger: Ledger,
) -> None:
    run = by_a_task("control__1")
    assert "the ledger does not know who has asked for it" in refused(run)
    ledger.request_run(asked_for("control__1"))
    refuse_unasked(RunContext(task_of(run)))
    forged = by_a_task("control__1", conf={**CONF, "throttle": 10**9})
    assert "are not those that bob has asked for" in refused(forged)
    assert "This step has changed nothing" in refused(forged)
    found = [(each.decision, each.run_id, each.detail["why"]) for each in audit_of(ledger)]
    assert found[0] == (Decided.REFUSED, "control__1", NotAsked.NO_REQUEST)
    assert found[-1] == (Decided.REFUSED, "control__1", NotAsked.OTHER_PARAMETERS)


def test_nobody_puts_a_run_of_their_own_in_the_place_of_one_that_another_has_asked_for(
    ledger: Ledger,
) -> None:
    ledger.request_run(asked_for("control__1"))
    assert "was triggered by hand" in refused(run_of("control__1"))


def test_a_run_that_was_deleted_is_not_started_again_in_its_askers_name(ledger: Ledger) -> None:
    ledger.request_run(asked_for("control__1"))
    first = by_a_task("control__1")
    refuse_unasked(RunContext(task_of(first)))
    refuse_unasked(RunContext(task_of(first, "throttle")))
    again = by_a_task("control__1", run_after=BEGUN + timedelta(minutes=1))
    assert "that has been deleted since" in refused(again)


def test_a_run_that_is_cleared_long_after_starts_nothing_in_its_askers_name(
    ledger: Ledger,
) -> None:
    old = run_of("r1", run_after=LONG_AGO)
    refuse_unasked(RunContext(task_of(old)))  # it has waited, and nobody has cleared it
    old.clear_number = 1
    assert "asked for by ann" in refused(old)
    assert "a request counts for 24 hours" in refused(old)
    refuse_unasked(RunContext(task_of(run_of("r2", clear_number=1))))


def test_a_backfill_begins_nothing(ledger: Ledger) -> None:
    """It may be another person's, over a run of ann's: its parameters are his, the name is hers."""
    backfilled = run_of("r1", run_type="backfill", clear_number=1)
    assert "is of a backfill" in refused(backfilled)
    (told,) = audit_of(ledger)
    assert (told.user_name, told.detail["why"]) == (None, NotAsked.BACKFILL)
    plan_of(ledger, backfilled, PlanState.RUNNING)
    refuse_unasked(RunContext(task_of(backfilled, "execute")))


@pytest.mark.parametrize(
    ("states", "goes_on"),
    [
        ((), False),
        ((PlanState.RUNNING,), True),
        ((PlanState.RUNNING, PlanState.DONE), True),
        ((PlanState.RUNNING, PlanState.PAUSED), False),
    ],
)
def test_what_a_plan_has_begun_goes_on_and_nothing_else(
    ledger: Ledger, states: tuple[PlanState, ...], goes_on: bool
) -> None:
    """Of a run that was cleared long after, and of one that an earlier Rehome has started."""
    cleared = run_of("r1", run_after=LONG_AGO, clear_number=1)
    of_earlier = by_a_task("control__0", conf={})
    for run in (cleared, of_earlier):
        plan_of(ledger, run, *states)
        if goes_on:
            refuse_unasked(RunContext(task_of(run, "execute")))
        else:
            assert refused(run)


def test_a_plan_in_the_hands_of_another_run_is_no_authority(ledger: Ledger) -> None:
    run = by_a_task("control__0", conf={})
    plan_of(ledger, run, PlanState.RUNNING, PlanState.PAUSED)
    plan_id = RunContext(task_of(run)).plan_id
    ledger.take_up(plan_id, "reassign_partitions", "r9", {}, "carl", lease_s=1)
    ledger.transition(plan_id, PlanState.RUNNING, "because")
    assert refused(run)


@pytest.mark.parametrize(
    "operator",
    [
        lambda: SnapshotClusterOperator(task_id="snapshot", for_request=True),
        lambda: PlanReassignmentOperator(task_id="plan"),
        lambda: DryRunOperator(task_id="dry_run"),
        lambda: ApprovePlanOperator(task_id="approve"),
        lambda: SetThrottleOperator(task_id="throttle"),
        lambda: StartReassignmentOperator(task_id="execute"),
    ],
)
def test_every_task_that_leads_to_a_change_asks_first(ledger: Ledger, operator: Any) -> None:
    task = operator()
    context = {**task_of(by_a_task("control__1")), "task": task}
    with pytest.raises(Exception, match="does not know who has asked for it"):
        task.execute(context)
