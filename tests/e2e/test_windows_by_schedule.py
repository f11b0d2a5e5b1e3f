"""Maintenance windows that the scheduler opens by itself: no run is triggered here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.airflow.api import ENDED
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.kafka import ReplicaId
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.approval.questions import AnswerKind
from rehome.domain.run.causes.cause import CauseKind
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base.records import PlanRecord
from tests.conftest import Topics
from tests.dags.clusters import no_throttles, throttles_become, to
from tests.e2e.conftest import WINDOW_DAG, World
from tests.e2e.runs import asked, trigger_planned
from tests.ledger.people import answers_of
from tests.ledger.small_plans import make_plan, move

PARTITIONS, MESSAGES, MESSAGE_BYTES = 4, 3000, 10_000
CRAWL, FAST = 20_000, 50_000_000
"""What a person asks for while a window is open, and before the next one opens.

A broker fetches 1 MiB of a partition at once, and forgets it after eleven seconds: 95 kB/s is the
least that any throttle brings a copy down to, and the copy has to outlast its window.
"""
TIME_TO_ASK_S = 300.0
"""For the tasks before the question, on a busy machine."""
SEVERAL_WINDOWS_S = 1200.0
"""A busy machine may spend a window or two on starting its tasks."""

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@contextmanager
def scheduled(world: World) -> Iterator[None]:
    """The window DAG's schedule is on; afterwards it is off, and none of its runs is left."""
    api = world.airflow.api
    api.set_paused(WINDOW_DAG, paused=False)
    try:
        yield
    finally:
        wait_until(lambda: not _unended(world), "no run", SEVERAL_WINDOWS_S, 0.2)
        api.set_paused(WINDOW_DAG, paused=True)


def _unended(world: World) -> list[str]:
    runs = world.airflow.api.runs(WINDOW_DAG)
    return [run["dag_run_id"] for run in runs if run["state"] not in ENDED]


def plan_of(world: World, topic: str) -> PlanRecord | None:
    """The newest plan that moves a topic; None = no window has made one yet."""
    for plan in world.ledger.plans():
        if any(partition.topic == topic for partition in world.ledger.moves(plan.plan_id)):
            return plan
    return None


def window_of(world: World, run_id: str) -> tuple[datetime, datetime]:
    """When the window of a scheduled run opened and closed."""
    run = next(r for r in world.airflow.api.runs(WINDOW_DAG) if r["dag_run_id"] == run_id)
    assert (run["run_type"], run["triggered_by"]) == ("scheduled", "timetable"), run
    begin, end = (_time(run, name) for name in ("data_interval_start", "data_interval_end"))
    since_the_hour = begin - begin.replace(minute=0, second=0, microsecond=0)
    assert not since_the_hour % world.every, run
    assert end - begin == world.window, run
    assert begin == _time(run, "run_after") <= _time(run, "start_date"), run
    return begin, end


def _time(run: dict[str, Any], name: str) -> datetime:
    return datetime.fromisoformat(run[name])


def test_a_question_that_nobody_answers_lapses_with_its_window_and_keeps_nothing_waiting(
    world: World, topics: Topics, gateway: ClusterGateway, cluster: LocalCluster
) -> None:
    ledger, api = world.ledger, world.airflow.api
    topic = topics.create([[1, 2]])
    before = no_throttles(gateway, [topic])
    closes = datetime.now(UTC) + timedelta(seconds=TIME_TO_ASK_S)
    moves = move(topic, 0, (1, 2), (3, 2))
    asks: dict[str, Any] = {"approval": True, "window_end": closes.isoformat()}
    given = {"reassignment": to(topic, {0: [3, 2]}), "throttle": FAST}
    run = trigger_planned(world, cluster.cluster_id, "lapses", moves, **given, **asks)
    wait_until(lambda: answers_of(ledger, "lapses") == [None], "the question", TIME_TO_ASK_S)
    assert datetime.now(UTC) < closes, "it was asked in time"
    assert api.wait_for_run("reassign_partitions", run, SEVERAL_WINDOWS_S) == "failed"
    assert datetime.now(UTC) >= closes
    plan = ledger.plan("lapses")
    assert (plan.state, plan.started_at) == (PlanState.CANCELLED, None)
    assert plan.cause == "no person has answered before its window closed"
    assert answers_of(ledger, "lapses") == [AnswerKind.LAPSED]
    cause = ledger.cause_of("reassign_partitions", run)
    assert cause is not None
    assert cause.kind is CauseKind.NO_ANSWER
    assert not [
        each for each in ledger.alerts() if each.kind == "approval_waiting" and not each.closed_at
    ]
    throttles_become(gateway, [topic], before)

    after = trigger_planned(world, cluster.cluster_id, "after", moves, **given)
    assert api.wait_for_run("reassign_partitions", after, SEVERAL_WINDOWS_S) == "success"
    assert gateway.describe_topics([topic])[topic].partitions[0].replicas == (3, 2)


def test_a_plan_whose_window_closes_goes_on_in_the_next_scheduled_window(
    world: World, topics: Topics, gateway: ClusterGateway
) -> None:
    ledger, api = world.ledger, world.airflow.api
    topic = topics.create([[1 + at % 2] for at in range(PARTITIONS)])
    topics.fill(topic, MESSAGES, MESSAGE_BYTES)
    before = no_throttles(gateway, [topic])

    def closed_upon() -> PlanRecord | None:
        """Slow the plan down when it copies; a window in which it did not has another after it."""
        plan = plan_of(world, topic)
        if plan is None:
            return None
        copies = MoveState.ADMITTED in ledger.view(plan.plan_id).moves.values()
        if copies and plan.requested_rate_bytes_per_s is None:
            ledger.request_rate(plan.plan_id, CRAWL, "ann")
        outcomes = {start.outcome for start in ledger.reassignments(plan.plan_id)}
        paused = plan.state is PlanState.PAUSED and MoveState.CANCELLED in outcomes
        return plan if paused else None

    with scheduled(world):
        paused = wait_until(closed_upon, "a window to close on copies", SEVERAL_WINDOWS_S, 0.3)
        assert paused is not None
        assert paused.cause == "the window has ended"
        assert api.wait_for_run(WINDOW_DAG, paused.run_id, SEVERAL_WINDOWS_S) == "success"
        _, closed = window_of(world, paused.run_id)
        assert datetime.fromisoformat(paused.request["window_end"]) == closed
        starts = ledger.reassignments(paused.plan_id)
        cut_off = [start for start in starts if start.outcome is MoveState.CANCELLED]
        assert all(start.ended_at and start.ended_at >= closed for start in cut_off)
        assert not gateway.list_reassignments()
        throttles_become(gateway, [topic], before)
        assert not ledger.throttles(open_only=True)

        ledger.request_rate(paused.plan_id, FAST, "ann")
        wait_until(
            lambda: ledger.plan(paused.plan_id).state.ended, "a window to end it", SEVERAL_WINDOWS_S
        )
        done = ledger.plan(paused.plan_id)
        assert (done.state, done.cause) == (PlanState.DONE, "every move is done")
        assert api.wait_for_run(WINDOW_DAG, done.run_id, SEVERAL_WINDOWS_S) == "success"

    opened, _ = window_of(world, done.run_id)
    assert opened >= closed
    detail = f"{WINDOW_DAG}/{done.run_id}"
    assert detail in [
        e.detail for e in ledger.events(done.plan_id) if e.kind == EventKind.CONTINUED
    ]
    moved = [start for start in ledger.reassignments(done.plan_id) if start not in cut_off]
    assert {start.outcome for start in moved} == {MoveState.DONE}
    assert len(moved) == len(ledger.moves(done.plan_id)), "nothing is moved twice"
    found = gateway.describe_topics([topic])[topic].partitions
    assert Counter(found[at].replicas for at in found) == {(broker,): 1 for broker in (1, 2, 3, 4)}
    replicas = [ReplicaId(topic, at, *found[at].replicas) for at in found]
    assert set(gateway.log_end_offsets(replicas).value.values()) == {MESSAGES}
    throttles_become(gateway, [topic], before)


def ended(world: World) -> list[dict[str, Any]]:
    """Runs of windows that have ended."""
    return [run for run in world.airflow.api.runs(WINDOW_DAG) if run["state"] in ENDED]


def test_a_window_without_a_plan_of_its_own_takes_up_what_waits_and_else_ends_at_once(
    idle_world: World, topics: Topics, gateway: ClusterGateway, cluster: LocalCluster
) -> None:
    ledger, api = idle_world.ledger, idle_world.airflow.api
    topic = topics.create([[1, 2]])
    before = no_throttles(gateway, [topic])

    def idle(count: int) -> list[dict[str, Any]]:
        wait_until(lambda: len(ended(idle_world)) >= count, "windows", SEVERAL_WINDOWS_S)
        return ended(idle_world)

    for run in idle(2):
        run_id = run["dag_run_id"]
        assert (run["state"], run["run_type"]) == ("success", "scheduled"), run
        states = api.task_states(WINDOW_DAG, run_id)
        assert states.pop("snapshot") == "success"
        assert set(states.values()) == {"skipped"}
        note = api.run_note(WINDOW_DAG, run_id)
        assert note.startswith("Nothing to do: no plan waits for this window."), note
    assert ledger.plans() == []
    assert idle_world.webhook.reported == []

    plan = make_plan("handed", move(topic, 0, (1, 2), (3, 2)), cluster_id=cluster.cluster_id)
    params = {"action": "reassign", "reassignment": to(topic, {0: [3, 2]}), "dry_run": True}
    params |= {"kafka_config_id": "kafka_default", "throttle": 50_000_000}
    directory = idle_world.warehouse.plan("handed")
    directory.save(plan, parse_request(params))
    through = "kafka_default", "reassign_partitions"
    ledger.create_plan(plan, params, directory.uri, "a-dry-run", "admin", *through)
    answer = asked(idle_world, "handed", "next_window")
    assert "The window that opens at" in answer, answer
    wait_until(
        lambda: ledger.plan("handed").state.ended, "a window to carry it out", SEVERAL_WINDOWS_S
    )
    record = ledger.plan("handed")
    assert (record.state, record.dag_id) == (PlanState.DONE, WINDOW_DAG), record.cause
    assert api.wait_for_run(WINDOW_DAG, record.run_id, SEVERAL_WINDOWS_S) == "success"
    assert gateway.describe_topics([topic])[topic].partitions[0].replicas == (3, 2)
    throttles_become(gateway, [topic], before)

    known = len(ended(idle_world))
    assert idle(known + 1)
    assert [each.plan_id for each in ledger.plans()] == ["handed"]
