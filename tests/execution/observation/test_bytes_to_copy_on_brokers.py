"""DeleteRecords leaves a leader's size as it is: what is to be copied is known all the same."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import TopicPartition as Before
from confluent_kafka.admin import AdminClient

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.clock import utc_now
from rehome.domain.kafka import ReplicaId
from rehome.domain.plan.plan import Plan
from rehome.domain.run.observation import Observation
from rehome.execution.observation.bytes_to_copy import LogStarts, to_copy
from rehome.execution.observation.observe import observe
from tests.conftest import Topics
from tests.ledger.small_plans import move

WRITTEN, LEFT = 12_000, 4_000


def test_what_was_deleted_and_lies_on_the_leaders_disk_is_not_to_be_copied(
    cluster: LocalCluster,
    gateway: ClusterGateway,
    topics: Topics,
    approved: Callable[..., Plan],
    throttled: Callable[..., None],
) -> None:
    topic = topics.create([[1]])
    for batch in (WRITTEN - LEFT, LEFT):  # a copy begins with a whole batch: none spans its start
        topics.fill(topic, batch)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for answer in admin.delete_records([Before(topic, 0, WRITTEN - LEFT)]).values():
        answer.result(30)
    plan = approved(move(topic, 0, (1,), (1, 3)))
    throttled(plan, 50_000)
    leader, copy = ReplicaId(topic, 0, 1), ReplicaId(topic, 0, 3)
    targets = {item.partition: item.target for item in plan.moves}
    gateway.alter_reassignments(targets, allow_replication_factor_change=True)
    readings: list[Observation] = []

    def is_held_back() -> bool:
        """Offsets are read before sizes: they fit where the size is that of the reading before."""
        readings.append(observe(gateway, plan.moves, utc_now()))
        sizes = [reading.sizes.get(copy, 0) for reading in readings[-2:]]
        return len(sizes) == 2 and 0 < sizes[0] == sizes[1]

    wait_until(is_held_back, "the first bytes, and the throttle that holds the next ones back")
    seen = readings[-1]
    starts = LogStarts().of(gateway, plan.moves, seen)
    assert starts == {leader.topic_partition: WRITTEN - LEFT}
    per_message = seen.sizes[leader] / WRITTEN
    found = to_copy(plan.moves, seen, starts)[leader]
    assert seen.sizes[copy] < seen.sizes[leader] / 4, "it is still copied"
    assert abs(found - LEFT * per_message) < 0.1 * LEFT * per_message
