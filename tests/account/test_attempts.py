"""What was last tried with a plan, and what may be asked of it now."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rehome.account.account import account_of
from rehome.account.attempts import Barred, barred_by, controls_of, last_attempt
from rehome.account.evidence import PlanEvidence, read_evidence
from rehome.account.words.attempt_words import label_of
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.domain.run.ledger_view import MoveSums
from rehome.domain.run.states import Control, MoveState, PlanState
from rehome.ledger.store import Ledger
from rehome.ledger.stores.approvals.written_files import DryRun
from rehome.ledger.stores.by_run.causes import EndedRun
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan
from tests.reporting.reported_plans import moves, plan_of, record

T0 = datetime(2030, 1, 1, tzinfo=UTC)
STALE = Cause(CauseKind.STALE, "orders-0 has other replicas.", "", "Plan anew.", T0, "snapshot")
TRIED = EndedRun("reassign_partitions", "control__1", STALE, "plan-1")
WAITS = replace(record(plan_of(*moves()), PlanState.PLANNED), request={"dry_run": True})
DRY_RUN = DryRun("plan-1", "dag", "run", True, 1, "", "", T0)


CHANGED = (Control.CHANGE_THROTTLE, Control.CHANGE_MOVES)
OFFERED: list[tuple[PlanState, dict[str, Any], set[Control]]] = [
    (PlanState.PLANNED, {}, {Control.CANCEL}),
    (
        PlanState.PLANNED,
        {"request": {"dry_run": True}},
        {Control.RUN, Control.NEXT_WINDOW, Control.CANCEL},
    ),
    (
        PlanState.PLANNED,
        {"request": {"dry_run": True}, "for_window_at": T0},
        {Control.RUN, Control.CANCEL},
    ),
    (PlanState.RUNNING, {}, {Control.PAUSE, *CHANGED, Control.CANCEL}),
    (
        PlanState.RUNNING,
        {"pause_requested": True},
        {Control.RESUME, *CHANGED, Control.CANCEL},
    ),
    (PlanState.PAUSED, {}, {Control.RESUME, Control.CANCEL}),
    (PlanState.DONE, {"started_at": T0}, {Control.ROLL_BACK}),
    (PlanState.FAILED, {"started_at": T0}, {Control.ROLL_BACK}),
    (PlanState.ROLLED_BACK, {"started_at": T0}, set()),
]


@pytest.mark.parametrize(("state", "values", "controls"), OFFERED)
def test_only_what_the_state_allows_is_offered(
    state: PlanState, values: dict[str, Any], controls: set[Control]
) -> None:
    known = replace(record(plan_of(*moves()), state), **values)
    moved = {MoveState.DONE: MoveSums(1, 100)} if "started_at" in values else {}
    assert set(controls_of(PlanEvidence(known, moved))) == controls
    if Control.ROLL_BACK in controls:  # nothing has moved: there is nothing to take back
        assert controls_of(PlanEvidence(known, {MoveState.FAILED: MoveSums(1, 100)})) == ()


@pytest.mark.parametrize(
    ("kind", "barred"),
    [
        (CauseKind.STALE, Barred.STALE),
        (CauseKind.DRY_RUN, Barred.REFUSED),
        (CauseKind.GATE, Barred.REFUSED),
        (CauseKind.CLUSTER_AWAY, None),
        (CauseKind.NOT_APPROVED, None),
    ],
)
def test_a_plan_that_is_out_of_date_or_refused_is_not_to_be_run(
    kind: CauseKind, barred: Barred | None
) -> None:
    tried = replace(TRIED, cause=replace(STALE, kind=kind))
    evidence = PlanEvidence(WAITS, ended_runs=(tried,), dry_runs=(DRY_RUN,))
    assert barred_by(evidence) is barred
    assert (Control.RUN in controls_of(evidence)) is (barred is None)
    account = account_of(evidence, T0)
    assert account.cause is not None
    assert (account.cause.kind, account.barred) == (kind, barred)
    later = replace(DRY_RUN, tried_at=T0 + timedelta(seconds=1))
    passed = replace(evidence, dry_runs=(DRY_RUN, later))
    assert barred_by(passed) is None  # a later dry run has found nothing against it


def test_a_plan_that_its_newest_dry_run_refuses_is_not_to_be_run() -> None:
    refused = replace(DRY_RUN, ok=False)
    assert barred_by(PlanEvidence(WAITS, dry_runs=(DRY_RUN, refused))) is Barred.REFUSED
    assert barred_by(PlanEvidence(WAITS, dry_runs=(refused, DRY_RUN))) is None


def test_a_plan_whose_partitions_another_one_has_moved_since_is_superseded(
    ledger: Ledger, clock: SetClock
) -> None:
    for plan_id in ("before", "p1", "after"):
        ledger.create_plan(
            make_plan(plan_id), {"dry_run": True}, "file:///nowhere", f"of-{plan_id}", "ann"
        )
        clock.pass_s(1)
    assert barred_by(read_evidence(ledger, "p1")) is None
    ledger.approve("after", make_plan("after").plan_hash, "ann")
    ledger.acquire_lease("c1", "of-after", 60)
    ledger.claim("after")
    assert barred_by(read_evidence(ledger, "p1")) is None  # it has moved nothing yet
    partition = make_plan("after").moves[0].partition
    ledger.settle("after", partition, MoveState.DONE, "there already")
    evidence = read_evidence(ledger, "p1")
    assert (barred_by(evidence), evidence.overtaken_by) == (Barred.SUPERSEDED, "after")
    assert controls_of(evidence) == (Control.CANCEL,)
    later = make_plan("later")
    clock.pass_s(1)
    ledger.create_plan(later, {"dry_run": True}, "file:///nowhere", "of-later", "ann")
    assert barred_by(read_evidence(ledger, "later")) is None  # it was made after that


def test_a_run_that_has_taken_the_plan_up_since_makes_an_earlier_one_history() -> None:
    waits = replace(WAITS, state=PlanState.PAUSED, run_id="run-2", dag_id="reassign_partitions")
    assert last_attempt([TRIED], waits, None) == TRIED
    assert last_attempt([TRIED], waits, T0 + timedelta(seconds=1)) is None
    assert last_attempt([TRIED], waits, T0 - timedelta(seconds=1)) == TRIED
    own = replace(waits, run_id=TRIED.run_id)
    assert last_attempt([TRIED], own, T0 + timedelta(seconds=1)) == TRIED
    assert last_attempt([TRIED], replace(own, state=PlanState.RUNNING), None) is None
    assert last_attempt([], own, None) is None


def test_every_kind_has_a_label() -> None:
    assert {label_of(kind) for kind in CauseKind} >= {"Refused", "Failed", "Rejected"}


def test_a_plan_whose_run_is_silent_can_be_resumed() -> None:
    running = record(plan_of(*moves()), PlanState.RUNNING, started_at=T0)
    assert Control.RESUME not in controls_of(PlanEvidence(running))
    assert controls_of(PlanEvidence(running, orphaned=True))[0] is Control.RESUME
    paused = replace(running, pause_requested=True)
    assert controls_of(PlanEvidence(paused, orphaned=True)).count(Control.RESUME) == 1
