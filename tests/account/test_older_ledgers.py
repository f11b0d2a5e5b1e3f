"""Plans that an earlier Rehome has recorded, without causes, dry runs and bytes of their copies."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, update

from rehome.account.account import PlanAccount, account_of
from rehome.account.evidence import read_evidence
from rehome.account.known import Known, NotKnown, Unknown
from rehome.account.words.figure_words import bytes_sentence
from rehome.account.words.standing_words import status_of
from rehome.domain.plan.plan import Plan
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base.approval_tables import DRY_RUNS, RECORDED_FILES
from rehome.ledger.base.models import (
    FLOW_SAMPLES,
    MOVES,
    PLAN_HURTS,
    PLANS,
    PROGRESS_SAMPLES,
    RATE_CHANGES,
    REPLICA_STATUSES,
    RUN_CAUSES,
)
from rehome.ledger.store import Ledger
from tests.account.plans_with_bytes import MOVES as THREE
from tests.account.plans_with_bytes import admit, poll, settle
from tests.ledger.set_clock import SetClock

A, B, C = THREE
NOT_THERE = (
    *(RUN_CAUSES, DRY_RUNS, RECORDED_FILES, PLAN_HURTS),
    *(FLOW_SAMPLES, RATE_CHANGES, REPLICA_STATUSES),
)
NOT_FILLED = {
    PLANS: ("bytes_taken_back", "end_reason", "planned_through", "rehome_version"),
    MOVES: ("bytes_in_place",),
    PROGRESS_SAMPLES: ("received_bytes", "grown_bytes", "shrunk_bytes", "busiest_bytes"),
}
ENDS = {
    PlanState.RUNNING: (),
    PlanState.PAUSED: (PlanState.PAUSED,),
    PlanState.FAILED: (PlanState.FAILED,),
    PlanState.CANCELLED: (PlanState.CANCELLED,),
    PlanState.DONE: (PlanState.DONE,),
}


def aged(ledger: Ledger, clock: SetClock) -> PlanAccount:
    """The plan's account, once all has been taken from it that an earlier Rehome did not keep."""
    with ledger.writing() as connection:
        for table in NOT_THERE:
            connection.execute(delete(table))
        for table, columns in NOT_FILLED.items():
            connection.execute(update(table).values(dict.fromkeys(columns)))
    return account_of(read_evidence(ledger, "p1"), clock())


@pytest.mark.parametrize("state", ENDS)
def test_what_it_did_not_record_is_not_known(
    ledger: Ledger, plan: Plan, clock: SetClock, state: PlanState
) -> None:
    admit(ledger, clock, A, B, C)
    poll(ledger, plan, clock, {A: (1000, 1000), B: (500, 100)})
    settle(ledger, MoveState.DONE, A)
    if state is not PlanState.RUNNING:
        settle(ledger, MoveState.DONE if state is PlanState.DONE else MoveState.CANCELLED, B, C)
    for to in ENDS[state]:
        ledger.transition("p1", to, "as the test says")
    clock.pass_s(120)  # its run's lease has ended
    account = aged(ledger, clock)
    assert account.state is state
    found = account.bytes
    assert found.planned == sum(each.size_bytes for each in THREE)
    for figure in (found.copying, found.received, found.taken_back):
        assert figure == Unknown(NotKnown.NOT_RECORDED)
    assert not isinstance(account.pace, Known)
    assert not isinstance(account.ends, Known)
    assert "is not known: nothing was recorded, by an earlier version" in bytes_sentence(found)
    status = status_of(account)
    assert account.standing.tried is None, "no cause was kept"
    if state in (PlanState.FAILED, PlanState.CANCELLED):
        assert status.headline.endswith(": as the test says.")
    if state is PlanState.DONE:
        assert (
            status.headline
            == "Every move has ended, but the task verify has recorded no proof of it."
        )
