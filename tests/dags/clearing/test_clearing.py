"""Airflow's Clear of any task at any moment: the same plan is carried on, or a clear refusal.

Tasks are called as Airflow calls those that were cleared. At each moment every task that had begun
by then is: what it does must not depend on which of the others are cleared with it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.control.controller import give_up
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.warehouse import PlanDirectory
from tests.dags.clearing.cleared_tasks import TASKS, ClearedRun, Outcome, reach
from tests.dags.clusters import no_throttles, throttles_become, throttles_of, to
from tests.dags.site import Site
from tests.ledger.small_plans import make_plan, move

CRAWL, FAST = 10_000, 50_000_000
PLAN_FILES = (
    "request.json",
    "moves.parquet",
    "summary.json",
    "reassignment.json",
    "rollback.json",
    "gates.json",
)
CARRIED_ON, REFUSED, SKIPPED, DEFERRED = Outcome


class Moment(enum.StrEnum):
    """When tasks are cleared: after which of them, or what has become of the plan."""

    PLANNED = "dry_run"
    APPROVED = "approve"
    THROTTLED = "throttle"
    IN_FLIGHT = "execute"
    PAUSED = "paused"
    ARRIVED = "progress"
    DONE = "verdict"
    ANOTHER_RUNS = "done, and another plan runs"
    CANCELLED = "cancelled"
    FAILED = "failed"
    ROLLED_BACK = "rolled back"
    TAKEN_UP = "taken up by another run"


def every(outcome: Outcome, **others: Outcome) -> dict[str, Outcome]:
    return {task: others.get(task, outcome) for task in TASKS}


CRAWLS = {Moment.IN_FLIGHT, Moment.CANCELLED, Moment.FAILED}
OPEN = {Moment.PLANNED, Moment.APPROVED, Moment.THROTTLED, Moment.IN_FLIGHT}
ENDED = every(REFUSED, clear_throttle=CARRIED_ON, report=CARRIED_ON)
EXPECTED: Mapping[Moment, Mapping[str, Outcome]] = {
    **{m: dict.fromkeys(TASKS[: TASKS.index(m) + 1], CARRIED_ON) for m in OPEN},
    Moment.IN_FLIGHT: {
        **dict.fromkeys(TASKS[: TASKS.index("progress")], CARRIED_ON),
        "progress": DEFERRED,
    },
    # Last what makes it run again: then it goes on to its end.
    Moment.PAUSED: {
        **dict.fromkeys(("execute", "progress", "clear_throttle", "report", "verdict"), CARRIED_ON),
        **dict.fromkeys(("verify", "restore_leaders"), SKIPPED),
        "drained": CARRIED_ON,
        **dict.fromkeys(TASKS[: TASKS.index("throttle") + 1], CARRIED_ON),
    },
    Moment.ARRIVED: every(CARRIED_ON),
    Moment.DONE: every(CARRIED_ON),
    Moment.ANOTHER_RUNS: every(CARRIED_ON, restore_leaders=SKIPPED),
    Moment.CANCELLED: ENDED,
    Moment.FAILED: ENDED,
    Moment.ROLLED_BACK: ENDED,
    Moment.TAKEN_UP: {**ENDED, "verdict": CARRIED_ON},
}


class Cleared:
    """A run that was brought to a moment, and what was true then."""

    def __init__(self, site: Site, topic: str, rate: int) -> None:
        self.site = site
        self.before = no_throttles(site.gateway, [topic])
        self.run = ClearedRun(
            site.ledger,
            {
                "action": "reassign",
                "reassignment": to(topic, {0: [3, 2], 1: [3, 2]}),
                "throttle": rate,
                "max_moves_per_broker": 1,
            },
        )
        self._topic = topic
        self._others: list[str] = []

    def bring_to(self, moment: Moment) -> None:
        run, ledger = self.run, self.site.ledger
        if moment in OPEN:
            run.through(moment)
        elif moment in (Moment.PAUSED, Moment.TAKEN_UP):
            run.through("throttle")
            ledger.request_pause(run.record().plan_id, "ann")
            assert run.task("progress") is CARRIED_ON
            assert run.task("clear_throttle") is CARRIED_ON
        elif moment in (Moment.CANCELLED, Moment.FAILED):
            run.through("execute")
            if moment is Moment.CANCELLED:
                self._give_up(run.record(), "enough")
            assert run.task("clear_throttle") is CARRIED_ON
        else:
            run.through("progress")
            if moment is not Moment.ARRIVED:
                rest = run.tasks(*TASKS[TASKS.index("clear_throttle") :])
                assert set(rest.values()) == {CARRIED_ON}, rest
        if moment is Moment.ROLLED_BACK:
            ledger.transition(run.record().plan_id, PlanState.ROLLED_BACK, "by plan another")
        if moment is Moment.TAKEN_UP:
            ledger.take_up(run.record().plan_id, "a-dag", "another-run", {}, "ann", lease_s=60)
        if moment is Moment.ANOTHER_RUNS:
            self._another_plan()

    def _another_plan(self) -> None:
        """It runs, with throttles of its own, on the same partition."""
        ledger, cluster_id = self.site.ledger, self.site.cluster.cluster_id
        other = make_plan("another", move(self._topic, 0, (3, 2), (4, 2)), cluster_id=cluster_id)
        ledger.create_plan(other, {}, "file:///nowhere", "another-run", "ann")
        ledger.approve("another", other.plan_hash, "ann")
        ledger.acquire_lease(cluster_id, "another-run", 600, plan_id="another")
        set_up_throttle(other, ledger, self.site.gateway, CRAWL)
        self._others.append("another")
        self.before = throttles_of(self.site.gateway, [self._topic])

    def files(self) -> dict[str, bytes]:
        directory = PlanDirectory(self.run.record().plan_dir)
        path = Path(directory.uri.removeprefix("file://"))
        return {name: (path / name).read_bytes() for name in PLAN_FILES}

    def throttles_are_as_before(self) -> None:
        gateway, topic = self.site.gateway, self._topic
        throttles_become(gateway, [topic], self.before)

    def _give_up(self, record: PlanRecord, cause: str) -> None:
        own = OwnCluster.of_plan(self.site.gateway, record)
        give_up(record, self.site.ledger, own, cause, record.driver, 60)

    def end(self) -> None:
        """Leave nothing, whatever has failed."""
        ledger, gateway = self.site.ledger, self.site.gateway
        for record in ledger.plans():
            if record.state.active:
                ledger.acquire_lease(record.cluster_id, record.driver, 0.0)
                self._give_up(record, "the test is over")
            clear_throttle(record.plan_id, ledger, gateway)


@pytest.fixture
def cleared(
    site: Site, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Cleared]:
    """A run that has not begun; it crawls where the test's moment finds it in flight."""
    crawls = getattr(request.node, "callspec", None) is not None and (
        request.node.callspec.params.get("moment") in CRAWLS
    )
    reach(site.cluster, monkeypatch)
    topic = site.topics.create([[1, 2], [1, 2]])
    site.topics.fill(topic, 1000 if crawls else 5, size_bytes=10_000)
    made = Cleared(site, topic, CRAWL if crawls else FAST)
    yield made
    made.end()


# The simulator clears any task at any moment; here are those that brokers must have seen as well.
QUICK = {Moment.IN_FLIGHT, Moment.PAUSED, Moment.CANCELLED}


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(
            moment, id=moment.name.lower(), marks=[pytest.mark.long] * (moment not in QUICK)
        )
        for moment in Moment
    ],
)
def test_whatever_is_cleared_the_same_plan_is_carried_on_or_a_refusal_is_clear(
    moment: Moment, cleared: Cleared
) -> None:
    cleared.bring_to(moment)
    run, ledger = cleared.run, cleared.site.ledger
    record, files = run.record(), cleared.files()
    plan_id, moves = record.plan_id, ledger.planned_moves(record.plan_id)
    found: dict[str, Outcome] = {}
    for task_id in EXPECTED[moment]:
        found[task_id] = run.task(task_id)
        if found[task_id] is REFUSED:
            assert plan_id in run.reported, (task_id, run.reported)
            assert "Nothing was changed" not in run.reported, (task_id, run.reported)
        assert cleared.files() == files, task_id
        assert ledger.planned_moves(plan_id) == moves, task_id
        assert {plan.plan_id for plan in ledger.plans()} <= {plan_id, "another"}, task_id
    assert found == EXPECTED[moment]
    if moment in OPEN:
        _goes_on_to_its_end(cleared, after=moment)
    elif moment is Moment.PAUSED:
        _goes_on_to_its_end(cleared, after="throttle")
    else:
        assert ledger.plan(plan_id).state is record.state
    cleared.throttles_are_as_before()
    starts = [start.partition for start in ledger.reassignments(plan_id)]
    assert len(set(starts)) == len(starts), "nothing is started twice"


def _goes_on_to_its_end(cleared: Cleared, after: str) -> None:
    run, ledger = cleared.run, cleared.site.ledger
    if after == Moment.IN_FLIGHT:
        ledger.request_rate(run.record().plan_id, FAST, "ann")
    for task_id in TASKS[TASKS.index(after) + 1 :]:
        waits = {"deferrable": False} if task_id == "progress" else {}
        assert run.task(task_id, **waits) is CARRIED_ON, (task_id, run.reported)
    assert run.record().state is PlanState.DONE
    assert set(ledger.view(run.record().plan_id).moves.values()) == {MoveState.DONE}


def test_a_planning_that_was_interrupted_before_it_was_recorded_is_done_again(
    cleared: Cleared, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = cleared.run
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "create_plan", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.tasks("snapshot", "plan")
    assert run.task("clear_throttle") is CARRIED_ON
    assert run.task("verdict") is REFUSED
    assert "Nothing was changed" in run.reported
    run.through("approve")
    assert run.record().state is PlanState.APPROVED


def _interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_a_run_is_cleaned_up_after_with_the_warehouse_away(
    cleared: Cleared, tmp_path: Path
) -> None:
    run, ledger = cleared.run, cleared.site.ledger
    run.through("throttle")
    plan_id = run.record().plan_id
    (tmp_path / "warehouse").rename(tmp_path / "away")
    assert run.task("execute") is REFUSED
    assert "does not exist" in run.reported
    assert "Nothing was changed" not in run.reported
    assert run.task("clear_throttle") is CARRIED_ON
    cleared.throttles_are_as_before()
    assert ledger.plan(plan_id).state is PlanState.FAILED
    assert run.task("verdict") is REFUSED
    assert f"Plan {plan_id} is failed" in run.reported
