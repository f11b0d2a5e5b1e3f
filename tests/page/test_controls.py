"""What can be asked of a plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.paused.paused_plan import GoesOn, NeedsPerson, Outlook, Why
from rehome.domain.run.states import Control, PlanState
from rehome.execution.access.connection_policy import ANYTHING, ConnectionPolicy
from rehome.ledger.store import Ledger
from rehome.ledger.stores.approvals.written_files import DryRun
from rehome.page.controls import offer
from rehome.page.plan_view import PlanFollower
from tests.ledger.small_plans import make_plan

T0 = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("unthrottled", [True, False])
def test_only_a_plan_with_a_throttle_mentions_taking_it_back(
    tmp_path: Path, unthrottled: bool
) -> None:
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        request = {"unthrottled": unthrottled}
        ledger.create_plan(make_plan("p1"), request, (tmp_path / "away").as_uri(), "run-1", "ann")
        view = PlanFollower(ledger, "p1", 60).view(T0)
    record = replace(view.record, state=PlanState.RUNNING, started_at=T0)
    running = replace(view, account=replace(view.account, record=record))
    for control in (Control.PAUSE, Control.CANCEL):
        effects = " ".join(offer(running, control, ANYTHING).effects)
        assert ("throttles are taken back" in effects) is not unthrottled, (control, effects)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("window", "reported"),
    [
        (None, ["is not known"]),
        (NeedsPerson(Why.WINDOW_DAG_PAUSED), ["No window takes the plan up", "paused in Airflow"]),
        (
            GoesOn(T0, closes_at=T0 + timedelta(hours=4)),
            ["2030-01-01 00:00 UTC carries the plan out", "open for 4 h"],
        ),
        (GoesOn(T0, closes_at=T0 + timedelta(minutes=1)), ["what does not fit goes on in the one"]),
    ],
)
def test_handing_a_plan_over_shows_when_its_window_opens_and_whether_it_fits(
    tmp_path: Path, window: Outlook | None, reported: list[str]
) -> None:
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.create_plan(
            make_plan("p1"), {"dry_run": True, "approval": True}, tmp_path.as_uri(), "run-1", "ann"
        )
        tried = DryRun("p1", "d", "r", True, 1, "", "", moves=3, least_s=90.0, most_s=120.0)
        ledger.record_dry_run(tried)
        view = PlanFollower(ledger, "p1", 60).view(T0)
    text = " ".join(offer(view, Control.NEXT_WINDOW, ANYTHING, window=window).effects)
    assert all(part in text for part in reported), text
    assert "A person approves it first, once the window is open." in text
    assert "go first" not in text
    queued = offer(view, Control.NEXT_WINDOW, ANYTHING, window=window, before=["p0", "p9"])
    assert "These plans go first, one a window: p0, p9." in queued.effects
    drains_only = ConnectionPolicy("kafka_prod", actions=frozenset({"drain"}))
    for control in (Control.RUN, Control.NEXT_WINDOW):
        assert "Action reassign is not among" in offer(view, control, drains_only).refusal
    short = isinstance(window, GoesOn) and window.closes_at == T0 + timedelta(minutes=1)
    assert ("what does not fit" in text) == short


def test_a_higher_throttle_than_was_approved_is_not_offered(tmp_path: Path) -> None:
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        plan = make_plan("p1")
        ledger.create_plan(plan, {}, (tmp_path / "away").as_uri(), "run-1", "ann")
        for by_person, refusal in ((False, ""), (True, "bob approved 5 MB/s at most.")):
            terms = Terms(plan.plan_hash, 5_000_000)
            ledger.approve("p1", plan.plan_hash, "bob", terms, by_person=by_person, lasting_s=60)
            view = PlanFollower(ledger, "p1", 60).view(T0)
            running = replace(
                view, account=replace(view.account, controls=(Control.CHANGE_THROTTLE,))
            )
            found = offer(running, Control.CHANGE_THROTTLE, ANYTHING, 5_000_001)
            assert found.refusal == refusal
            assert any(refusal in effect for effect in found.effects)
            assert not offer(running, Control.CHANGE_THROTTLE, ANYTHING, 5_000_000).refusal
