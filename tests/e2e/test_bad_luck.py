"""Brokers die under a run of a whole Airflow, or its DAG is paused: what it says is true."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.alerts.kinds import AlertKind
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.clock import utc_now
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import MoveState, PlanState
from tests.conftest import Topics
from tests.dags.clusters import no_throttles, throttles_become, throttles_of, to
from tests.e2e.conftest import World
from tests.e2e.runs import (
    DAG,
    TIMEOUT_S,
    asked,
    kinds_about,
    paused,
    swept,
    trigger_planned,
    trigger_window,
    wait_for_state,
)
from tests.execution.lost_disks import lose
from tests.ledger.small_plans import move

MESSAGES, OF_BYTES = 3_000, 10_000
CRAWL, SLOW = 100_000, 1_000_000
UNTIL_CLOSED = timedelta(seconds=150)
"""Time enough for a run to start copying on a busy machine; the copies take twice as long."""
GIVEN_UP_S = 240.0
"""The run's bound is a minute; its tasks wait for a busy machine."""

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


def file_of(world: World, plan_id: str, name: str) -> str:
    path = urlsplit(world.warehouse.plan(plan_id).uri).path
    return (Path(path) / name).read_text()


def test_a_source_that_comes_back_empty_is_never_said_to_be_done(
    impatient_world: World, mortal: LocalCluster, mortal_gateway: ClusterGateway
) -> None:
    world, api, ledger = impatient_world, impatient_world.airflow.api, impatient_world.ledger
    topics = Topics(mortal)
    topic = topics.create([[1]])
    topics.fill(topic, MESSAGES, OF_BYTES)
    before, plan_id = no_throttles(mortal_gateway, [topic]), f"lost-{topic}"
    planned = move(topic, 0, (1,), (3,), MESSAGES * OF_BYTES)
    conf = {"reassignment": to(topic, {0: [3]}), "throttle": CRAWL}
    run = trigger_planned(world, mortal.cluster_id, plan_id, planned, **conf)
    wait_for_state(world, run, "progress", {"deferred"})
    assert mortal_gateway.list_reassignments()
    lose(mortal, mortal_gateway, topic, broker=1)

    assert api.wait_for_run(DAG, run, TIMEOUT_S) == "failed"
    lost = f"offsets 0 to {MESSAGES - 1}"
    record = ledger.plan(plan_id)
    assert record.state is PlanState.FAILED
    moved = ledger.moves(plan_id)[TopicPartition(topic, 0)]
    assert moved.state is MoveState.FAILED
    assert lost in moved.detail
    told = [event for event in ledger.events(plan_id) if event.kind is EventKind.DATA_LOST]
    assert len(told) == 1
    (alert,) = (sent for sent in world.webhook.about(run) if sent["kind"] == AlertKind.DATA_LOST)
    assert alert["lost"] == {f"{topic}-0": [0, MESSAGES]}
    assert lost in api.page(f"plans/{plan_id}")
    proof = json.loads(file_of(world, plan_id, "verification.json"))
    assert (proof["ok"], proof["problems"]) == (False, {}), "its replicas are where the plan says"
    assert lost in proof["lost"][f"{topic}-0"]
    report = file_of(world, plan_id, "report.html")
    assert "replicas where the plan says, but messages of 1 partition lost." in report
    assert report.count(lost) >= 2, "of the move, and of the proof"
    throttles_become(mortal_gateway, [topic], before)


def test_a_cancel_that_the_controller_refuses_for_good_has_an_end_that_says_what_is_left(
    impatient_world: World, mortal: LocalCluster, mortal_gateway: ClusterGateway
) -> None:
    """Both old replicas are dead, one of the new ones is in sync, the other one is dead, too: a
    cancel would leave no replica in sync, and the copy cannot end.
    """
    world, api, ledger = impatient_world, impatient_world.airflow.api, impatient_world.ledger
    topics, gateway = Topics(mortal), mortal_gateway
    topic = topics.create([[1, 2]])
    topics.fill(topic, MESSAGES, OF_BYTES)
    before, plan_id = no_throttles(gateway, [topic]), f"refused-{topic}"
    planned = move(topic, 0, (1, 2), (3, 4), MESSAGES * OF_BYTES)
    conf = {"reassignment": to(topic, {0: [3, 4]}), "throttle": SLOW}
    run = trigger_planned(world, mortal.cluster_id, plan_id, planned, **conf)
    wait_until(gateway.list_reassignments, "the copies to begin", TIMEOUT_S, 0.2)
    mortal.kill(4)

    def isr() -> tuple[int, ...]:
        return tuple(sorted(gateway.describe_topics([topic])[topic].partitions[0].isr))

    wait_until(lambda: isr() == (1, 2, 3), "one copy to be whole", TIMEOUT_S, 0.5)
    for broker in (1, 2):
        mortal.kill(broker)
    wait_until(lambda: isr() == (3,), "the old replicas to be out of sync", TIMEOUT_S, 0.5)
    assert "The next poll cancels what is in flight of the plan" in asked(world, plan_id, "cancel")

    wait_until(lambda: ledger.plan(plan_id).state.ended, "the plan to be given up", GIVEN_UP_S)
    record = ledger.plan(plan_id)
    assert record.state is PlanState.CANCELLED
    left = "what of the plan could not be cancelled goes on, throttled"
    assert f"{left}: {topic}-0: INVALID_REPLICA_ASSIGNMENT (39)" in record.cause
    refused = [e for e in ledger.events(plan_id) if e.kind is EventKind.NOT_CANCELLED]
    assert len({event.detail for event in refused}) == len(refused) <= 2, "one for each new answer"
    assert api.wait_for_run(DAG, run, TIMEOUT_S) == "failed"
    assert ledger.holder(mortal.cluster_id) is None
    assert gateway.list_reassignments()
    assert throttles_of(gateway, [topic]) != before, "what goes on is throttled"
    swept(world)
    assert {AlertKind.NOT_CANCELLED, AlertKind.OWED} <= kinds_about(world, plan_id)

    for broker in (1, 2, 4):
        mortal.restart(broker)
    mortal.wait_for_brokers((1, 2, 4))
    wait_until(lambda: not gateway.list_reassignments(), "the copy to end", TIMEOUT_S)
    assert swept(world)
    throttles_become(gateway, [topic], before)
    assert not ledger.throttles(plan_id, open_only=True)
    still = {AlertKind.NOT_CANCELLED, AlertKind.OWED}
    assert not [a for a in ledger.alerts(plan_id) if a.kind in still and a.closed_at is None]


def test_the_sweep_keeps_the_windows_end_where_the_trigger_has_fired_for_what_no_task_does(
    impatient_world: World, mortal: LocalCluster, mortal_gateway: ClusterGateway
) -> None:
    """It fires for a throttle that a worker is to set. From then on nothing of the run acts."""
    world, api, ledger = impatient_world, impatient_world.airflow.api, impatient_world.ledger
    topics, gateway = Topics(mortal), mortal_gateway
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, MESSAGES, OF_BYTES)
    plan_id = f"swept-{topic}"
    before, closes = no_throttles(gateway, [topic]), utc_now() + UNTIL_CLOSED
    size, cluster_id = MESSAGES * OF_BYTES, mortal.cluster_id
    run = trigger_window(world, cluster_id, plan_id, topic, closes, bytes_each=size, throttle=CRAWL)
    wait_for_state(world, run, "progress", {"deferred"})
    with paused(world):
        answer = asked(world, plan_id, "change_throttle", throttle=CRAWL + 10_000)
        assert f"once the DAG {DAG} is unpaused" in answer
        wait_for_state(world, run, "progress", {"scheduled"})
        wait_until(lambda: ledger.holder(mortal.cluster_id) is None, "its lease to end", 60)
        answer = asked(world, plan_id, "resume")
        assert f"But the DAG {DAG} is paused in Airflow: no task of run {run} starts" in answer
        assert gateway.list_reassignments()
        assert utc_now() < closes, "the machine is too slow for this test"
        log = swept(world)
        assert utc_now() > closes
        assert f"its DAG {DAG} is paused in Airflow: no task of run {run} starts" in log
        assert "2 moves taken back; the window has ended" in log
        assert "dag_paused" in kinds_about(world, plan_id)
        record = ledger.plan(plan_id)
        assert (record.state, record.cause) == (PlanState.PAUSED, "the window has ended")
        assert ledger.holder(mortal.cluster_id) is None
        assert not gateway.list_reassignments()
        throttles_become(gateway, [topic], before)
    assert api.wait_for_run(DAG, run, TIMEOUT_S) == "success"
    asked(world, plan_id, "cancel")
    assert ledger.plan(plan_id).state is PlanState.CANCELLED
