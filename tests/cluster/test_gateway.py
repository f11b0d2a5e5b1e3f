"""Every call of the gateway against four real brokers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster import gateway as gateway_module
from rehome.cluster.clients.clients import UNANSWERED
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.error_codes import TRANSIENT
from rehome.cluster.messages import admin as messages
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerError, HighWatermark, ReplicaId, TopicPartition
from tests.conftest import Topics
from tests.versions.since import RELEASE, checks_replicas, copies_end

RATE = "follower.replication.throttled.rate"
REPLICAS = "follower.replication.throttled.replicas"


def code(verdict: object) -> int:
    assert isinstance(verdict, BrokerError), verdict
    return verdict.code


def value_of(gateway: ClusterGateway, resource: ConfigResource, key: str) -> tuple[str, str] | None:
    found = gateway.describe_configs([resource], [key])[resource]
    assert isinstance(found, dict), found
    return (str(found[key].value), found[key].source) if key in found else None


def test_the_cluster_is_described_with_racks_and_rights(
    gateway: ClusterGateway, cluster: LocalCluster
) -> None:
    found = gateway.describe_cluster()
    assert found.cluster_id == cluster.cluster_id
    assert {broker.id: broker.rack for broker in found.brokers.values()} == cluster.racks
    assert found.operations is not None
    assert {"ALTER", "ALTER_CONFIGS", "DESCRIBE"} <= found.operations


def test_topics_are_described_in_stored_order(gateway: ClusterGateway, topics: Topics) -> None:
    topic = topics.create([[3, 1, 2], [2, 4, 1]])
    found = gateway.describe_topics([topic])[topic]
    assert found.error is None
    assert found.partitions[0].replicas == (3, 1, 2)
    assert found.partitions[0].isr == {1, 2, 3}
    assert found.partitions[0].leader == 3
    assert found.partitions[1].replicas == (2, 4, 1)
    assert found.operations is None
    assert topic in gateway.describe_topics()


def test_an_unknown_topic_is_an_error_of_its_own_and_is_not_created(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1]])
    found = gateway.describe_topics([topic, "no-such-topic"], operations=True)
    assert found["no-such-topic"].error == BrokerError(3, "UNKNOWN_TOPIC_OR_PARTITION")
    assert found[topic].operations is not None
    assert "no-such-topic" not in gateway.describe_topics()


def test_log_dirs_show_space_and_replicas_of_every_broker(
    gateway: ClusterGateway, cluster: LocalCluster, topics: Topics
) -> None:
    topic = topics.create([[1, 2], [3, 4]])
    topics.fill(topic, 100)
    found = gateway.describe_log_dirs()
    assert not found.missing
    assert {(directory.broker, directory.path) for directory in found.value} == {
        (broker, str(path)) for broker in cluster.broker_ids for path in cluster.log_dirs(broker)
    }
    for directory in found.value:
        assert directory.error is None
        assert directory.total_bytes is not None
        assert directory.usable_bytes is not None
        assert 0 < directory.usable_bytes < directory.total_bytes
        assert directory.cordoned is (False if RELEASE >= (4, 3) else None)
    sizes = {
        (directory.broker, partition): replica.size_bytes
        for directory in found.value
        for partition, replica in directory.replicas.items()
        if partition.topic == topic
    }
    assert sizes.keys() == {
        (broker, TopicPartition(topic, index))
        for index, pair in enumerate([(1, 2), (3, 4)])
        for broker in pair
    }
    assert min(sizes.values()) > 100_000


def test_log_dirs_of_some_brokers_and_partitions_only(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    wanted = TopicPartition(topic, 1)
    found = gateway.describe_log_dirs([1], [wanted])
    assert {directory.broker for directory in found.value} == {1}
    assert [part for directory in found.value for part in directory.replicas] == [wanted]


def test_a_broker_that_is_not_there_is_named_and_the_rest_is_kept(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2]])
    dirs = gateway.describe_log_dirs([1, 77])
    assert {directory.broker for directory in dirs.value} == {1}
    assert dirs.missing.keys() == {77}
    assert dirs.missing[77].name == "BROKER_NOT_AVAILABLE"
    offsets = gateway.log_end_offsets([ReplicaId(topic, 0, 1), ReplicaId(topic, 0, 77)])
    assert offsets.value == {ReplicaId(topic, 0, 1): 0}
    assert offsets.missing.keys() == {77}


def test_each_replica_shows_its_own_log_end_offset(gateway: ClusterGateway, topics: Topics) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 50)
    here, there = ReplicaId(topic, 0, 1), ReplicaId(topic, 0, 2)
    not_here = ReplicaId(topic, 0, 3)
    found = gateway.log_end_offsets([here, there, not_here])
    assert found.value[here] == found.value[there] == 50
    assert code(found.value[not_here]) in (3, 6)
    assert not found.missing


def test_the_leader_shows_the_high_watermark_with_its_epoch(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 50)
    here, gone = TopicPartition(topic, 0), TopicPartition(topic, 7)
    found = gateway.high_watermarks({here: 1, gone: 1})
    assert found.value[here] == HighWatermark(50, 0)
    assert code(found.value[gone]) == 3
    assert code(gateway.high_watermarks({here: 2}).value[here]) == 6
    assert gateway.high_watermarks({here: 77}).missing.keys() == {77}


def test_reassignments_are_listed_and_cancelled(gateway: ClusterGateway, topics: Topics) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, 3000)
    moving, idle = TopicPartition(topic, 0), TopicPartition(topic, 1)
    slow = ConfigChange(ConfigResource.broker(3), RATE, ConfigOperation.SET, "1000")
    listed = ConfigChange(ConfigResource.topic(topic), REPLICAS, ConfigOperation.SET, "0:3")
    assert not any(gateway.alter_configs([slow, listed]).values())
    wait_until(lambda: value_of(gateway, slow.resource, RATE), "the throttle at its broker")
    try:
        assert gateway.alter_reassignments({moving: [3, 2]}) == {moving: None}
        ongoing = gateway.list_reassignments()[moving]
        assert (ongoing.target, ongoing.adding, ongoing.removing) == ((3, 2), (3,), (1,))
        assert gateway.list_reassignments([idle]) == {}
        assert gateway.list_reassignments([]) == {}
        cancelled = gateway.alter_reassignments({moving: None, idle: None})
        assert cancelled[moving] is None
        assert code(cancelled[idle]) == 85
        assert gateway.list_reassignments([moving]) == {}
    finally:
        undo = ConfigChange(slow.resource, RATE, ConfigOperation.DELETE)
        assert not any(gateway.alter_configs([undo]).values())


def test_what_an_answer_leaves_out_is_not_taken_for_accepted(
    gateway: ClusterGateway, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of a real answer is dropped: brokers are not known to do so."""
    topic = topics.create([[1, 2], [1, 2]])
    answered, left_out = TopicPartition(topic, 0), TopicPartition(topic, 1)
    read = messages.read_alter_reassignments

    def but_one(answer: Any) -> dict[TopicPartition, BrokerError | None]:
        return {part: error for part, error in read(answer).items() if part != left_out}

    monkeypatch.setattr(messages, "read_alter_reassignments", but_one)
    verdicts = gateway.alter_reassignments({answered: (2, 1), left_out: (2, 1)})
    assert verdicts == {answered: None, left_out: UNANSWERED}
    assert UNANSWERED.code in TRANSIENT, "the next poll decides"


@checks_replicas
def test_the_controllers_verdicts_come_per_partition_with_its_own_words(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2]] * 5)
    part = [TopicPartition(topic, index) for index in range(6)]
    unknown = TopicPartition("no-such-topic", 0)
    verdicts = gateway.alter_reassignments(
        {part[0]: [], part[1]: [1, 1], part[2]: [1, 9], part[3]: [1], part[4]: [2, 1],
         part[5]: [1, 2], unknown: [1, 2]}
    )  # fmt: skip
    answered = {key: str(verdict) if verdict else None for key, verdict in verdicts.items()}
    name = "INVALID_REPLICA_ASSIGNMENT (39): The manual partition assignment includes "
    assert answered == {
        part[0]: name + "an empty replica list.",
        part[1]: name + "the broker 1 more than once.",
        part[2]: name + "broker 9, but no such broker is registered.",
        part[3]: "INVALID_REPLICATION_FACTOR (38): The replication factor is changed from 2 to 1",
        part[4]: None,
        part[5]: f"UNKNOWN_TOPIC_OR_PARTITION (3): Unable to find partition {topic}:5.",
        unknown: "UNKNOWN_TOPIC_OR_PARTITION (3): Unable to find a topic named no-such-topic.",
    }


@checks_replicas
def test_the_replication_factor_changes_only_when_allowed(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2]])
    part = TopicPartition(topic, 0)
    assert code(gateway.alter_reassignments({part: [1, 2, 3]})[part]) == 38
    allowed = gateway.alter_reassignments({part: [1, 2, 3]}, allow_replication_factor_change=True)
    assert allowed == {part: None}
    wait_until(
        lambda: gateway.describe_topics([topic])[topic].partitions[0].isr == {1, 2, 3},
        "the third replica in the ISR",
    )


def test_a_large_call_is_sent_in_batches(
    gateway: ClusterGateway, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.create([[1, 2]] * 7)
    monkeypatch.setattr(gateway_module, "PARTITIONS_PER_REQUEST", 3)
    targets = {TopicPartition(topic, index): [2, 1] for index in range(7)}
    assert gateway.alter_reassignments(targets) == dict.fromkeys(targets)

    def stored() -> set[tuple[int, ...]]:
        partitions = gateway.describe_topics([topic])[topic].partitions
        return {state.replicas for state in partitions.values()}

    wait_until(lambda: stored() == {(2, 1)}, "the new order in every broker's metadata")


def test_more_partitions_than_one_request_may_hold(gateway: ClusterGateway) -> None:
    targets = {TopicPartition("no-such-topic", index): [1] for index in range(10_001)}
    verdicts = gateway.alter_reassignments(targets)
    assert verdicts.keys() == targets.keys()
    assert {code(verdict) for verdict in verdicts.values()} == {3}


def test_the_cluster_wide_default_is_set_read_and_cleared(gateway: ClusterGateway) -> None:
    default, one = ConfigResource.cluster_default(), ConfigResource.broker(1)
    change = ConfigChange(default, RATE, ConfigOperation.SET, "123456")
    assert gateway.alter_configs([change]) == {default: None}
    expected = ("123456", "DYNAMIC_DEFAULT_BROKER_CONFIG")
    wait_until(lambda: value_of(gateway, one, RATE) == expected, "the default at broker 1")
    wait_until(lambda: value_of(gateway, default, RATE) == expected, "the default itself")
    assert gateway.alter_configs([ConfigChange(default, RATE, ConfigOperation.DELETE)]) == {
        default: None
    }
    wait_until(lambda: value_of(gateway, one, RATE) is None, "the default gone")


def test_a_brokers_own_config_goes_to_that_broker(gateway: ClusterGateway) -> None:
    brokers = [ConfigResource.broker(broker) for broker in (1, 2, 3, 4)]
    changes = [ConfigChange(b, RATE, ConfigOperation.SET, f"{b.name}000") for b in brokers]
    assert gateway.alter_configs(changes) == dict.fromkeys(brokers)

    def has_its_own(broker: ConfigResource) -> bool:
        return value_of(gateway, broker, RATE) == (f"{broker.name}000", "DYNAMIC_BROKER_CONFIG")

    for broker in brokers:
        wait_until(
            partial(has_its_own, broker),
            f"the rate of {broker.name}",
        )
    undo = [ConfigChange(broker, RATE, ConfigOperation.DELETE) for broker in brokers]
    assert gateway.alter_configs(undo) == dict.fromkeys(brokers)


def test_configs_of_a_broker_that_is_not_there_are_refused_by_name(
    gateway: ClusterGateway,
) -> None:
    gone = ConfigResource.broker(77)
    change = ConfigChange(gone, RATE, ConfigOperation.SET, "1000")
    assert code(gateway.alter_configs([change])[gone]) == 8
    assert code(gateway.describe_configs([gone])[gone]) == 8


def test_items_of_one_list_are_appended_together(gateway: ClusterGateway, topics: Topics) -> None:
    topic = ConfigResource.topic(topics.create([[1, 2]] * 2))

    def append(item: str) -> ConfigChange:
        return ConfigChange(topic, REPLICAS, ConfigOperation.APPEND, item)

    assert gateway.alter_configs([append("0:1")]) == {topic: None}
    assert gateway.alter_configs([append("0:2"), append("1:1"), append("0:1")]) == {topic: None}
    wait_until(
        lambda: value_of(gateway, topic, REPLICAS) == ("0:1,0:2,1:1", "DYNAMIC_TOPIC_CONFIG"),
        "the list",
    )
    taken = ConfigChange(topic, REPLICAS, ConfigOperation.SUBTRACT, "0:1,1:1")
    assert gateway.alter_configs([taken]) == {topic: None}
    wait_until(
        lambda: value_of(gateway, topic, REPLICAS) == ("0:2", "DYNAMIC_TOPIC_CONFIG"), "the rest"
    )


def test_validate_only_changes_nothing(gateway: ClusterGateway, topics: Topics) -> None:
    name = topics.create([[1, 2]])
    topic = ConfigResource.topic(name)
    good = ConfigChange(topic, REPLICAS, ConfigOperation.SET, "0:1")
    bad = ConfigChange(ConfigResource.cluster_default(), RATE, ConfigOperation.SET, "abc")
    verdicts = gateway.alter_configs([good, bad], validate_only=True)
    assert verdicts[topic] is None
    assert code(verdicts[bad.resource]) == 42
    assert "Not a number" in str(verdicts[bad.resource])
    assert gateway.create_partitions({name: 3}, validate_only=True) == {name: None}
    assert value_of(gateway, topic, REPLICAS) == ("", "DEFAULT_CONFIG")
    assert len(gateway.describe_topics([name])[name].partitions) == 1


def test_a_config_that_cannot_be_described_says_why(
    gateway: ClusterGateway, topics: Topics
) -> None:
    good, gone = ConfigResource.topic(topics.create([[1]])), ConfigResource.topic("no-such-topic")
    found = gateway.describe_configs([good, gone], ["min.insync.replicas"])
    known = found[good]
    assert isinstance(known, dict)
    assert known.keys() == {"min.insync.replicas"}
    assert code(found[gone]) == 3


def test_partitions_are_created_where_asked(gateway: ClusterGateway, topics: Topics) -> None:
    topic = topics.create([[1, 2]])
    verdicts = gateway.create_partitions({topic: 3, "no-such-topic": 2}, {topic: [[3, 4], [4, 3]]})
    assert verdicts[topic] is None
    assert code(verdicts["no-such-topic"]) == 3

    def there() -> dict[int, tuple[int, ...]] | None:
        """Another broker may not know of them yet: what is compared is what was waited for."""
        partitions = gateway.describe_topics([topic])[topic].partitions
        return {n: p.replicas for n, p in partitions.items()} if len(partitions) == 3 else None

    assert wait_until(there, "new partitions") == {0: (1, 2), 1: (3, 4), 2: (4, 3)}
    assert code(gateway.create_partitions({topic: 2})[topic]) == 37


def test_preferred_leaders_are_elected(gateway: ClusterGateway, topics: Topics) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    swapped, unchanged = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert gateway.alter_reassignments({swapped: [2, 1]}) == {swapped: None}
    assert gateway.describe_topics([topic])[topic].partitions[0].leader == 1
    nowhere = TopicPartition("no-such-topic", 0)
    verdicts = gateway.elect_preferred_leaders([swapped, unchanged, nowhere])
    assert verdicts[swapped] is None
    assert verdicts[unchanged] is None
    assert code(verdicts[nowhere]) == 3
    wait_until(
        lambda: gateway.describe_topics([topic])[topic].partitions[0].leader == 2, "the new leader"
    )


@copies_end
def test_replicas_move_between_log_dirs_of_their_brokers(
    gateway: ClusterGateway, cluster: LocalCluster, topics: Topics
) -> None:
    topic = topics.create([[1, 2]])
    part = TopicPartition(topic, 0)

    def where() -> str | None:
        dirs = gateway.describe_log_dirs([1], [part]).value
        return next((directory.path for directory in dirs if part in directory.replicas), None)

    there = wait_until(where, "the broker to report its replica")
    other = next(str(path) for path in cluster.log_dirs(1) if str(path) != there)
    verdicts = gateway.alter_replica_log_dirs(
        {
            ReplicaId(topic, 0, 1): other,
            ReplicaId(topic, 0, 2): "/no/such/dir",
            ReplicaId("no-such-topic", 0, 1): other,
            ReplicaId(topic, 0, 77): other,
        }
    )
    assert verdicts[ReplicaId(topic, 0, 1)] is None
    assert code(verdicts[ReplicaId(topic, 0, 2)]) == 57
    assert code(verdicts[ReplicaId("no-such-topic", 0, 1)]) == 3
    assert code(verdicts[ReplicaId(topic, 0, 77)]) == 8
    wait_until(lambda: where() == other, "the replica in its new log dir")
