"""The progress sensor where it does not drive, does not defer, or finds that nothing moves."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from local.process.waiting import wait_until
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.throttle.keys import (
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
)
from rehome.ledger.base.records import ThrottleState
from tests.dags.clusters import Throttles, state_of, throttles_of, to
from tests.dags.conftest import CRAWL, Throttle
from tests.dags.runs import fresh_dag, register
from tests.dags.site import Site
from tests.plugins.mailbox import Reported


def observer(dag_id: str, **options: Any) -> Any:
    """A DAG of one sensor that only watches."""
    from airflow.sdk import DAG

    from rehome.sensors.reassignment import ReassignmentSensor

    with DAG(dag_id, schedule=None) as dag:
        ReassignmentSensor(task_id="watch", kafka_config_id="kafka_default", drive=False, **options)
    return register(dag)


@pytest.mark.parametrize("deferrable", [True, False])
def test_an_observer_succeeds_when_what_others_started_is_complete_and_changes_nothing(
    deferrable: bool, another_clients_throttle: Throttle, first_poll: threading.Event, site: Site
) -> None:
    topic = site.topics.create([[1, 2], [2, 3]])
    site.topics.fill(topic, 1200, size_bytes=10_000)
    dag = observer(f"observer_{deferrable}".lower(), deferrable=deferrable)
    another_clients_throttle(topic, CRAWL)
    site.gateway.alter_reassignments({TopicPartition(topic, 0): [4, 2]})

    set_since: list[Throttles] = []

    def hurry() -> None:
        assert first_poll.wait(120)
        set_since.append(another_clients_throttle(topic, 5_000_000))

    another_client = threading.Thread(target=hurry, daemon=True)
    another_client.start()
    run = site.run(dag=dag)
    in_flight = site.gateway.list_reassignments()
    another_client.join(300)
    assert run.state == "success", run.log
    assert in_flight == {}
    assert "Behind: " in run.log
    assert "1 reassignment is complete" in run.log
    expected = {
        "replicas": {(topic, 0): (4, 2), (topic, 1): (2, 3)},
        "ongoing": {},
        "throttles": set_since[0],
    }
    wait_until(lambda: state_of(site.gateway, [topic]) == expected, "every broker to know")
    assert site.gateway.describe_topics([topic])[topic].partitions[0].isr == {4, 2}
    assert not site.ledger.plans()


def test_an_observer_fails_when_a_client_cancels_and_waits_for_nothing_that_starts_later(
    another_clients_throttle: Throttle, first_poll: threading.Event, site: Site
) -> None:
    topic = site.topics.create([[1, 2], [2, 1]])
    site.topics.fill(topic, 1200, size_bytes=10_000)
    watched, later = TopicPartition(topic, 0), TopicPartition(topic, 1)
    dag = observer("observer_of_a_cancelled_one")
    another_clients_throttle(topic, CRAWL)
    site.gateway.alter_reassignments({watched: [4, 2]})

    def interfere() -> None:
        assert first_poll.wait(120)
        site.gateway.alter_reassignments({watched: None, later: [4, 1]})

    another_client = threading.Thread(target=interfere, daemon=True)
    another_client.start()
    run = site.run(dag=dag)
    another_client.join(300)
    assert set(site.gateway.list_reassignments()) == {later}
    site.gateway.alter_reassignments({later: None})
    assert run.tasks == {"watch": "failed"}, run.log
    assert f"{watched}: another client cancelled it" in run.log
    assert "This task only watched, and changed nothing" in run.log


def test_an_observer_of_a_partition_that_does_not_exist_says_so(site: Site) -> None:
    topic = site.topics.create([[1, 2]])
    nowhere = [("nothing-here", 0), (topic, 0), (topic, 7)]
    run = site.run(dag=observer("observer_of_nothing", partitions=nowhere))
    assert run.state == "failed"
    assert "There is no partition nothing-here-0 to watch." in run.log
    assert f"There is no partition {topic}-7 to watch." in run.log
    assert f"There is no partition {topic}-0" not in run.log


def held(dag_id: str = "reassign_partitions") -> Any:
    """The DAG with a progress sensor that holds its worker, as without a triggerer."""
    dag = fresh_dag(dag_id)
    dag.get_task("progress").deferrable = False
    return dag


def test_without_a_triggerer_a_worker_drives_the_plan_to_its_end(
    monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    monkeypatch.setenv("REHOME_WAKE_S", "0")  # else two moves of 2 s share the slot
    topic = site.topics.create([[1, 2], [1, 2]])
    site.topics.fill(topic, 2000)
    run = site.run(
        dag=held(),
        action="reassign",
        reassignment=to(topic, {0: [3, 2], 1: [3, 2]}),
        throttle=1_000_000,
        max_moves_per_broker=1,
    )
    assert run.state == "success", run.log
    assert "DEFERRED" not in run.log
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.DONE
    assert not site.gateway.list_reassignments()
    first, second = site.ledger.reassignments(plan.plan_id)
    assert first.started_at < second.started_at
    assert not site.ledger.throttles(open_only=True)


def test_without_a_triggerer_a_stall_is_reported_once_and_then_ends_the_plan(
    monkeypatch: pytest.MonkeyPatch, site: Site, reported: Reported
) -> None:
    """One fetch exceeds such a throttle: for 11 s, longer than the stall's 5 s, nothing comes.

    That is no stall: so the brokers' window is taken not to explain it.
    """
    monkeypatch.setattr("rehome.execution.stall.silence_s", lambda rate: 0.0)
    topic = site.topics.create([[1, 2]])
    site.topics.fill(topic, 3000)
    wait_until(
        lambda: not any(throttles_of(site.gateway, [topic]).values()), "no throttle to stand"
    )
    before = state_of(site.gateway, [topic])
    monkeypatch.setenv("REHOME_STALL_ALERT_S", "1")
    monkeypatch.setenv("REHOME_STALL_TIMEOUT_S", "5")
    wanted = to(topic, {0: [3, 2]})
    run = site.run(dag=held(), action="reassign", reassignment=wanted, throttle=1000)
    assert run.state == run.tasks["progress"] == "failed", run.log
    assert run.tasks["clear_throttle"] == "success", run.log
    assert "After 5 s without progress they are cancelled" in reported.only("stalled")["text"]
    (plan,) = site.ledger.plans()
    assert (plan.state, plan.cause) == (PlanState.FAILED, "nothing has moved for 5 s")
    assert {move.state for move in site.ledger.moves(plan.plan_id).values()} == {
        MoveState.CANCELLED
    }
    wait_until(lambda: state_of(site.gateway, [topic]) == before, "the cluster as it was")
    assert not site.ledger.throttles(open_only=True)


def test_a_throttle_that_is_removed_for_the_third_time_raises_an_alert(
    site: Site, reported: Reported
) -> None:
    """The leaders' list stays, so that the copy lasts until then: 1 MB of 10 comes every 11 s."""
    topic = site.topics.create([[1, 2]])
    site.topics.fill(topic, 1000, size_bytes=10_000)
    resource, key = ConfigResource.topic(topic), FOLLOWER_REPLICAS

    def put_back(times: int) -> bool:
        entries = site.ledger.throttles(open_only=True, keys=[key])
        return [(e.times_gone, e.state) for e in entries] == [(times, ThrottleState.APPLIED)]

    def meddle() -> None:
        wait_until(site.gateway.list_reassignments, "the move", timeout_s=120)
        for times in range(1, 4):
            deleted = ConfigChange(resource, key, ConfigOperation.DELETE)
            assert site.gateway.alter_configs([deleted]) == {resource: None}
            wait_until(lambda n=times: put_back(n), "it to be put back", 120)  # type: ignore[misc]
        (plan,) = site.ledger.plans()
        site.ledger.request_rate(plan.plan_id, 50_000_000, "ann")

    another_client = threading.Thread(target=meddle, daemon=True)
    another_client.start()
    run = site.run(
        dag=held(), action="reassign", reassignment=to(topic, {0: [3, 2]}), throttle=100_000
    )
    another_client.join(300)
    assert run.state == "success", run.log
    (plan,) = site.ledger.plans()
    kinds = [event.kind for event in site.ledger.events(plan.plan_id)]
    assert kinds.count(EventKind.THROTTLE_GONE) == 3
    assert reported.kinds().count("throttle_restored") == 1
    text = f"Plan {plan.plan_id}: {resource} {key} was gone 3 times while moves in flight relied"
    assert text in run.log
    assert text in reported.only("throttle_restored")["text"]
    assert not site.ledger.throttles(open_only=True)


@pytest.mark.long
def test_a_plan_outlasts_another_clients_reassignment_and_says_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    """Theirs begins in mid-run: 20 MB, of which one goes at once and another every 5 s."""
    from rehome.triggers.watch import PlanWatch, PollOutcome

    polls: list[str] = []
    real = PlanWatch.poll

    def poll(watch: PlanWatch) -> PollOutcome:
        found = real(watch)
        polls.append(found.text)
        return found

    monkeypatch.setattr(PlanWatch, "poll", poll)
    monkeypatch.setenv("REHOME_POLL_INTERVAL_S", "1")
    monkeypatch.setenv("REHOME_STALL_ALERT_S", "1")
    monkeypatch.setenv("REHOME_STALL_TIMEOUT_S", "25")
    ours, theirs = site.topics.create([[1, 2], [1, 2]]), site.topics.create([[2]])
    site.topics.fill(ours, 400, size_bytes=10_000)
    site.topics.fill(theirs, 2000, size_bytes=10_000)
    lists = [
        ConfigChange(ConfigResource.topic(theirs), key, ConfigOperation.SET, "*")
        for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)
    ]
    assert not any(site.gateway.alter_configs(lists).values())  # slowed by our rates, too

    def begin() -> None:
        wait_until(site.gateway.list_reassignments, "the first move of ours", timeout_s=120)
        site.gateway.alter_reassignments({TopicPartition(theirs, 0): [4]})

    another_client = threading.Thread(target=begin, daemon=True)
    another_client.start()
    run = site.run(
        action="reassign",
        reassignment=to(ours, {0: [3, 2], 1: [3, 2]}),
        throttle=200_000,
        max_moves_per_broker=1,
    )
    another_client.join(300)
    assert run.state == "success", run.log
    waits = "What waits, and why: another client's reassignment runs. No step is needed: the plan"
    assert waits in run.log
    assert any(poll.endswith("Held back: another client's reassignment runs") for poll in polls)
    (plan,) = site.ledger.plans()
    first, second = site.ledger.reassignments(plan.plan_id)
    assert first.ended_at is not None
    assert (second.started_at - first.ended_at).total_seconds() > 25
    assert site.gateway.describe_topics([theirs])[theirs].partitions[0].replicas == (4,)
