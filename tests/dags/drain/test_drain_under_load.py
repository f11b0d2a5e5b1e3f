"""A broker is emptied while messages flow, and while another broker hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from local.workload import Workload
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.store import Ledger
from tests.conftest import Topics, impatient_gateway, revive
from tests.dags.clusters import no_throttles, state_of, throttles_become, to
from tests.dags.runs import Run
from tests.planning.placement.evenness import is_even
from tests.plugins.mailbox import Reported, text_of

DRAINED = 4
HANGING = 3


@pytest.fixture
def brokers(mortal_cluster: LocalCluster) -> Iterator[LocalCluster]:
    """One is emptied, one is stopped for a while."""
    yield mortal_cluster
    revive(mortal_cluster)


@pytest.fixture
def owned(brokers: LocalCluster) -> Iterator[ClusterGateway]:
    with impatient_gateway(brokers) as opened:
        yield opened


@pytest.fixture
def owned_topics(brokers: LocalCluster) -> Iterator[Topics]:
    with Topics(brokers) as helper:
        yield helper


def hosted_by(gateway: ClusterGateway, broker: int) -> set[TopicPartition]:
    """Partitions that metadata or the broker's own log dirs place on it."""
    on_disk = gateway.describe_log_dirs([broker])
    assert not on_disk.missing
    return {partition for log_dir in on_disk.value for partition in log_dir.replicas} | {
        TopicPartition(name, number)
        for name, topic in gateway.describe_topics().items()
        for number, partition in topic.partitions.items()
        if broker in partition.replicas
    }


def test_a_broker_is_emptied_under_load_and_no_acknowledged_message_is_lost(
    brokers: LocalCluster,
    owned: ClusterGateway,
    owned_topics: Topics,
    ledger: Ledger,
    rehome: Callable[..., Run],
) -> None:
    partitions = {
        owned_topics.create([[4, 1, 2], [1, 2, 4], [3, 2, 4], [2, 3, 1]]): 4,
        owned_topics.create([[4, 3], [1, 4], [2, 1]]): 3,
        owned_topics.create([[4], [2]]): 2,
    }
    before = no_throttles(owned, partitions)
    workload = Workload(
        brokers.client_settings(), partitions, message_bytes=5_000, messages_per_s=40
    )
    workload.fill(18_000_000)
    with workload:
        wait_until(lambda: workload.consumed, "the consumer to follow")
        filled, consumed = workload.acknowledged, workload.consumed
        run = rehome(brokers, action="drain", brokers=[DRAINED], throttle=1_500_000)
        produced = workload.acknowledged - filled
        wait_until(lambda: workload.consumed - consumed >= produced > 0, "the consumer to catch up")
    assert run.state == "success", run.log
    (plan,) = ledger.plans()
    assert plan.state is PlanState.DONE
    assert any(sample.in_flight and sample.bytes_done for sample in ledger.samples(plan.plan_id))

    wait_until(lambda: not hosted_by(owned, DRAINED), "the deleted replicas to be gone")
    paths = {broker: tuple(rack.split("/")[1:]) for broker, rack in brokers.racks.items()}
    left = set(brokers.broker_ids) - {DRAINED}
    found = {
        (name, number): partition
        for name, topic in owned.describe_topics().items()
        for number, partition in topic.partitions.items()
    }
    assert {name for name, _ in found} > set(partitions), "internal topics are drained, too"
    for partition in found.values():
        assert is_even(partition.replicas, paths, left), found
        assert partition.isr == set(partition.replicas)
    factors = [len(found[name, 0].replicas) for name in partitions]
    assert factors == [3, 2, 1]
    throttles_become(owned, partitions, before)
    assert not any(before.values())
    assert not ledger.throttles(open_only=True)
    assert not owned.list_reassignments()

    proof = workload.read_back()
    assert proof.acknowledged >= filled + produced
    assert proof.ok, proof


@pytest.mark.long
def test_a_destination_that_hangs_is_reported_then_given_up_and_everything_is_as_before(
    brokers: LocalCluster,
    owned: ClusterGateway,
    owned_topics: Topics,
    ledger: Ledger,
    rehome: Callable[..., Run],
    reported: Reported,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = owned_topics.create([[1, 2]])
    owned_topics.fill(topic, 1000, size_bytes=10_000)
    before = state_of(owned, [topic])
    monkeypatch.setenv("REHOME_STALL_ALERT_S", "10")
    monkeypatch.setenv("REHOME_STALL_TIMEOUT_S", "30")
    monkeypatch.setenv("REHOME_REQUEST_TIMEOUT_S", "3")
    monkeypatch.setenv("REHOME_CONNECT_TIMEOUT_S", "2")

    def hang_in_mid_move() -> None:
        wait_until(
            lambda: any(
                0 < sample.bytes_done < sample.bytes_total
                for plan in ledger.plans()
                for sample in ledger.samples(plan.plan_id)
            ),
            "the copy to be under way",
            120,
        )
        brokers.pause(HANGING)

    helper = threading.Thread(target=hang_in_mid_move, daemon=True)
    helper.start()
    try:
        wanted = to(topic, {0: [HANGING, 2]})
        run = rehome(brokers, action="reassign", reassignment=wanted, throttle=500_000)
    finally:
        helper.join(120)
        brokers.resume(HANGING)
    wait_until(lambda: brokers.live_brokers() == set(brokers.broker_ids), "its return", 240)

    assert run.state == run.tasks["progress"] == run.tasks["verdict"] == "failed", run.log
    assert run.tasks["clear_throttle"] == "success", run.log
    (plan,) = ledger.plans()
    assert (plan.state, plan.cause) == (PlanState.FAILED, "nothing has moved for 30 s")
    assert {move.state for move in ledger.moves(plan.plan_id).values()} == {MoveState.CANCELLED}
    assert not ledger.throttles(open_only=True)
    wait_until(lambda: state_of(owned, [topic]) == before, "the cluster as it was")

    assert reported.kinds() == ["stalled", "failed"]
    stalled, ended = reported.webhook.reported
    assert stalled["text"].startswith(f"Plan {plan.plan_id}: Nothing has moved since")
    assert (ended["ended"], ended["plan_id"], ended["state"]) == ("failed", plan.plan_id, "failed")
    assert all(plan.plan_id in text_of(mail) for mail in reported.mailbox.mails)
