"""The message about a run's end, of the plan as the ledger has it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rehome.account.evidence import FilesRead
from rehome.account.standing import Stand
from rehome.alerts.alert import Alert
from rehome.alerts.run_end import Ended, RunEnd, plan_end
from rehome.domain.configs import ConfigResource
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.domain.run.states import PlanState
from rehome.ledger.base.records import ThrottleEntry
from rehome.ledger.store import Ledger
from tests.ledger.small_plans import make_plan

AT = datetime(2030, 1, 1, tzinfo=UTC)
SET = "broker 1 rate"
BUSY = Cause(CauseKind.BUSY, "It is busy.", "Nothing was changed.", "Ask again.", AT, "request")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A plan that its run carries out, with a throttle set."""
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        plan = make_plan("p1")
        ledger.create_plan(plan, {}, (tmp_path / "away").as_uri(), "run-1", "ann", "k", "dag")
        ledger.approve("p1", plan.plan_hash, "ann")
        ledger.acquire_lease("c1", "dag/run-1", 60)
        ledger.claim("p1")
        ledger.journal_throttles(
            [ThrottleEntry("p1", "c1", ConfigResource.broker(1), "rate", ("5",), None, "")]
        )
        yield ledger


def sent(ledger: Ledger, *, run_over: bool, cause: Cause | None = None) -> Alert:
    plan = plan_end(ledger.plan("p1"), ledger, FilesRead(), run_over=run_over)
    return RunEnd("dag", "run-1", Ended.FAILED, plan=plan, cause=cause).alert()


@pytest.mark.parametrize("state", [PlanState.RUNNING, PlanState.PAUSED, PlanState.FAILED])
def test_what_is_set_is_named_in_whatever_state_the_run_leaves_its_plan(
    ledger: Ledger, state: PlanState
) -> None:
    if state is not PlanState.RUNNING:
        ledger.transition("p1", state, "because")
    alert = sent(ledger, run_over=True)
    assert alert.state == state
    assert f"Throttles pending cleanup: {SET}." in alert.text
    assert alert.facts["throttles_owed"] == [SET]
    assert "sweep_throttles" in alert.next_step


def test_the_end_of_another_run_says_nothing_of_the_one_that_drives_the_plan(
    ledger: Ledger,
) -> None:
    at_work = plan_end(ledger.plan("p1"), ledger, FilesRead(), run_over=False)
    assert at_work.standing.stand is Stand.RUNNING
    alert = sent(ledger, run_over=False)
    assert f"Throttles set: {SET}." in alert.text
    assert alert.facts["throttles_owed"] == [SET]
    assert "sweep_throttles" not in alert.next_step
    assert sent(ledger, run_over=False, cause=BUSY).next_step == BUSY.remedy
