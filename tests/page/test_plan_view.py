"""A plan at one moment, and what is said of it while its run still works."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest
from sqlalchemy import update

from rehome.account.evidence import read_line
from rehome.account.known import Known, NotKnown, Unknown
from rehome.account.standing import Tone
from rehome.account.times import ends_of
from rehome.alerts.kinds import AlertKind
from rehome.domain.clock import utc_now
from rehome.domain.configs import ConfigResource
from rehome.domain.plan.plan_hash import seal
from rehome.domain.plan.summary import BrokerLoad
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.paused.paused_plan import GoesOn
from rehome.domain.run.paused.paused_text import paused_text
from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.states import Control, MoveState, PlanState
from rehome.execution.access.connection_policy import ANYTHING
from rehome.ledger.base.models import MOVES
from rehome.ledger.base.paging import PlanFilter
from rehome.ledger.base.records import PlanRecord, ThrottleEntry
from rehome.ledger.store import Ledger
from rehome.ledger.stores.by_run.causes import EndedRun
from rehome.page.controls import offer
from rehome.page.plan_view import PlanFollower, PlanView
from rehome.warehouse import PlanDirectory
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def ledger(tmp_path: Path, clock: SetClock) -> Iterator[Ledger]:
    """A plan that its run carries out, with a throttle set and both moves done."""
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", clock=clock) as ledger:
        plan = make_plan("p1")
        ledger.create_plan(plan, {}, (tmp_path / "away").as_uri(), "run-1", "ann", "k", "dag")
        ledger.approve("p1", plan.plan_hash, "ann")
        ledger.acquire_lease("c1", "dag/run-1", 60)
        ledger.claim("p1")
        entry = ThrottleEntry("p1", "c1", ConfigResource.broker(1), "rate", ("5",), None, "")
        ledger.journal_throttles([entry])
        for item in plan.moves:
            ledger.settle("p1", item.partition, MoveState.DONE)
        yield ledger


def seen(ledger: Ledger, clock: SetClock) -> PlanView:
    return PlanFollower(ledger, "p1", patience_s=60).view(clock())


def test_a_plan_that_has_just_ended_owes_nothing_yet(ledger: Ledger, clock: SetClock) -> None:
    assert seen(ledger, clock).alerts == ()
    ledger.transition("p1", PlanState.DONE, "all ended")
    view = seen(ledger, clock)
    assert view.status.label == "Finishing"
    assert view.status.state_left == "1 throttle setting is still to be taken back by its run."
    assert view.alerts == ()
    clock.pass_s(timedelta(minutes=5).total_seconds())  # its run is silent since
    late = seen(ledger, clock)
    assert late.status.label == "Not verified"
    assert [alert.kind for alert in late.alerts] == [AlertKind.OWED]
    assert "1 throttle setting is pending cleanup" in late.status.state_left.lower()


def test_a_plan_that_fails_sends_no_one_to_sweep_while_its_run_cleans_up(
    ledger: Ledger, clock: SetClock
) -> None:
    ledger.transition("p1", PlanState.FAILED, "nothing moved")
    assert "sweep_throttles" not in seen(ledger, clock).status.next_step
    clock.pass_s(timedelta(minutes=5).total_seconds())
    assert "sweep_throttles" in seen(ledger, clock).status.next_step


def test_a_run_that_is_refused_is_news_of_the_plan_and_its_first_line(
    ledger: Ledger, clock: SetClock
) -> None:
    ledger.transition("p1", PlanState.PAUSED, "the window has closed")
    follower = PlanFollower(ledger, "p1", patience_s=60)
    before = follower.mark()
    cause = Cause(CauseKind.RIGHTS, "Alter is missing.", "", "Grant it.", clock(), "snapshot")
    ledger.record_cause(EndedRun("dag", "run-2", cause, "p1"))
    assert follower.mark() != before
    assert follower.view(clock()).status.headline.startswith("Alter is missing. (Run run-2")


def test_what_a_paused_plan_waits_for_is_in_its_head(ledger: Ledger, clock: SetClock) -> None:
    ledger.transition("p1", PlanState.PAUSED, "the window has closed")
    waits = GoesOn(clock() + timedelta(hours=1))
    view = PlanFollower(ledger, "p1", 60.0, outlook=lambda _: waits).view(clock())
    assert view.account.outlook == waits
    assert view.status.headline.startswith(paused_text(waits).text)
    assert view.status.next_step == paused_text(waits).next_step


def test_what_was_asked_of_a_state_that_is_over_is_not_shown(
    ledger: Ledger, clock: SetClock
) -> None:
    ledger.transition("p1", PlanState.PAUSED, "the window has closed")

    def resumed_meanwhile(_: PlanRecord) -> GoesOn:
        ledger.claim("p1")
        return GoesOn(clock() + timedelta(hours=1))

    view = PlanFollower(ledger, "p1", 60.0, outlook=resumed_meanwhile).view(clock())
    assert view.account.state is PlanState.RUNNING
    assert view.account.outlook is None


def test_airflow_is_asked_while_others_may_view_the_plan(ledger: Ledger, clock: SetClock) -> None:
    asked: list[object] = []

    def ask(about: PlanRecord | str) -> None:
        another = Thread(target=lambda: follower.files)
        another.start()
        another.join(10)
        assert not another.is_alive()
        asked.append(about)

    def is_paused(dag_id: str) -> bool:
        ask(dag_id)
        return False

    follower = PlanFollower(ledger, "p1", 60.0, dag_paused=is_paused, outlook=ask)
    assert follower.view(clock()).account.state is PlanState.RUNNING
    assert len(asked) == 2


def test_a_run_that_gives_no_sign_of_life_is_reported(ledger: Ledger, clock: SetClock) -> None:
    clock.pass_s(61)
    kinds = [alert.kind for alert in seen(ledger, clock).alerts]
    assert kinds == [AlertKind.ORPHANED, AlertKind.STALLED]


def test_what_a_poll_has_found_is_said_once_and_colours_the_head(
    ledger: Ledger, clock: SetClock
) -> None:
    ledger.record_hold("p1", clock())
    assert [alert.kind for alert in seen(ledger, clock).alerts] == [AlertKind.HELD]
    ledger.record_hurts("p1", clock(), [Hurt(HurtKind.FOREIGN, holds=True, partitions=("x-0",))])
    view = seen(ledger, clock)
    assert view.alerts == ()
    assert [each.kind for each in view.account.hurts] == [HurtKind.FOREIGN]
    assert view.account.standing.tone is Tone.BAD
    assert view.status.headline.startswith("Another client reassigns x-0.")


def test_what_grows_while_it_is_copied_is_never_more_than_all_of_it(
    ledger: Ledger, clock: SetClock
) -> None:
    for item in make_plan("p1").moves:
        row = (MOVES.c.topic == item.partition.topic) & (MOVES.c.partition == item.partition[1])
        with ledger.writing() as connection:  # they are in flight again
            connection.execute(update(MOVES).where(row).values(state=MoveState.ADMITTED))
    sample = ProgressSample(clock(), 230, 250, 0, 2, 2, grown_bytes=60, shrunk_bytes=10)
    ledger.add_samples("p1", (), sample)
    view = seen(ledger, clock)
    copying = view.account.bytes.copying
    assert isinstance(copying, Known)
    assert (copying.value.in_place, copying.value.total) == (230, 250)
    assert view.account.bytes.fraction == pytest.approx(0.92)
    reported = offer(view, Control.CHANGE_THROTTLE, ANYTHING).effects
    assert "20 B are left to copy." in reported


@pytest.mark.slow
@pytest.mark.parametrize(
    ("left_s", "ends", "misses"), [(50.0, True, False), (70.0, False, True), (None, False, False)]
)
def test_what_is_late_for_its_window_does_not_end_then(
    tmp_path: Path, clock: SetClock, left_s: float | None, ends: bool, misses: bool
) -> None:
    window_end = clock() + timedelta(seconds=60)
    with Ledger.open(f"sqlite:///{tmp_path}/late.db", clock=clock) as ledger:
        plan = make_plan("p1")
        asked = {"window_end": window_end.isoformat()}
        ledger.create_plan(plan, asked, (tmp_path / "away").as_uri(), "run-1", "ann", "k", "dag")
        ledger.approve("p1", plan.plan_hash, "ann")
        ledger.claim("p1")
        ledger.add_samples("p1", (), ProgressSample(clock(), 1, 9, 0, 2, 2, eta_s=left_s))
        view = seen(ledger, clock)
        (line,) = ledger.plan_page(PlanFilter(), 0, 5).lines
    found = view.account.ends
    assert isinstance(found, Known) is ends
    assert (found == Unknown(NotKnown.AFTER_WINDOW)) is misses
    with Ledger.open(f"sqlite:///{tmp_path}/late.db", clock=clock) as ledger:
        assert ends_of(read_line(ledger, line), clock()) == found


def test_the_throttle_is_what_was_asked_for_and_not_what_is_set_on_brokers(
    ledger: Ledger, clock: SetClock
) -> None:
    assert seen(ledger, clock).account.throttle_bytes_per_s is None
    ledger.set_rate("p1", 1_120, "set up", target_bytes_per_s=1_000, limit_bytes_per_s=1_000)
    assert seen(ledger, clock).account.throttle_bytes_per_s == 1_000
    ledger.request_rate("p1", 500, "ann")
    view = seen(ledger, clock)
    assert offer(view, Control.CHANGE_THROTTLE, ANYTHING).rate_bytes_per_s == 500


def test_a_running_plan_does_not_ask_the_warehouse_for_its_end(
    tmp_path: Path, ledger: Ledger, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, asked = PlanDirectory((tmp_path / "away").as_uri()), list[str]()
    directory.write_json("verification.json", {"verified": 2, "problems": []})
    real = PlanDirectory.exists

    def exists(self: PlanDirectory, name: str) -> bool:
        asked.append(name)
        return real(self, name)

    monkeypatch.setattr(PlanDirectory, "exists", exists)
    seen(ledger, clock)
    assert "dry_run.json" in asked
    assert not {"verification.json", "drained.json"} & set(asked)
    ledger.transition("p1", PlanState.DONE, "all ended")
    seen(ledger, clock)
    assert {"verification.json", "drained.json"} <= set(asked)


def test_a_follower_counts_what_each_broker_gains_once(tmp_path: Path) -> None:
    made = make_plan("p1")  # 100 bytes each: from broker 1 to 3
    loads = (BrokerLoad(1, 200, 0, 2, 0, 0, 0, 0, 200), BrokerLoad(3, 0, 200, 0, 2, 0, 0, 200, 0))
    plan = seal(replace(made, summary=replace(made.summary, brokers=loads)))
    directory = PlanDirectory((tmp_path / "plan").as_uri())
    directory.save(plan, parse_request({"action": "rebalance"}))
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.create_plan(plan, {}, directory.uri, "run-1", "ann")
        ledger.approve("p1", plan.plan_hash, "ann")
        ledger.claim("p1")
        follower = PlanFollower(ledger, "p1", patience_s=60)

        def held() -> list[int]:
            return [line.bytes_now for line in follower.view(utc_now()).brokers]

        found = [held()]
        for item in plan.moves:
            ledger.settle("p1", item.partition, MoveState.DONE)
            found += [held(), held()]
    assert found == [[200, 0], [100, 100], [100, 100], [0, 200], [0, 200]]
