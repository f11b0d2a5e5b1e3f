"""Each verb of the hook on real brokers, within the policy of its connection."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome import installation
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.errors import ClusterError
from rehome.clusters.binding import MisledError
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerError, ReplicaId, TopicPartition
from rehome.domain.run.event_kind import EventKind
from rehome.errors import InvalidRequestError
from rehome.execution.access.connection_policy import PolicyError
from rehome.execution.direct.direct_throttle import DirectThrottle
from rehome.execution.direct.own_reassignments import NotOwnReassignmentError
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
)
from rehome.hooks.reassignment import KafkaReassignmentHook
from rehome.ledger.base.audit_entry import Decided
from tests.conftest import Topics
from tests.execution.throttle.on_brokers import (
    leave_no_rates,  # noqa: F401 - an autouse fixture
    set_config,
    throttle_settings,
)
from tests.ledger.audit_rows import audit_of

RATE = 20_000
Hook = Callable[..., KafkaReassignmentHook]


@pytest.fixture
def hook(cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hook:
    """Makes a hook on the shared cluster, with this policy."""
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")

    def make(policy: Any = None) -> KafkaReassignmentHook:
        extra: dict[str, Any] = dict(cluster.client_settings())
        extra |= {} if policy is None else {"rehome.policy": policy}
        connection = {"conn_type": "kafka", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_ONE", json.dumps(connection))
        return KafkaReassignmentHook("kafka_one")

    return make


@pytest.fixture
def filled(topics: Topics, gateway: ClusterGateway) -> Iterator[str]:
    """A topic whose copies take a while at ``RATE``; what is in flight of it ends."""
    topic = topics.create([[1, 2], [1, 2]])
    topics.fill(topic, 3000)
    yield topic
    ours = [part for part in gateway.list_reassignments() if part.topic == topic]
    gateway.alter_reassignments(dict.fromkeys(ours))


def code(verdict: object) -> int:
    assert isinstance(verdict, BrokerError), verdict
    return verdict.code


def test_moves_start_under_a_throttle_are_listed_cancelled_and_leave_nothing(
    hook: Hook, filled: str, gateway: ClusterGateway
) -> None:
    before, kafka = throttle_settings(gateway, filled), hook()
    moving, idle = TopicPartition(filled, 0), TopicPartition(filled, 1)
    target = {(filled, 0): [3, 2]}
    throttle = kafka.set_replication_throttle(target, RATE)
    assert throttle.kept == {}
    assert {(change.resource, change.key, change.ours) for change in throttle.changes} == {
        (ConfigResource.topic(filled), LEADER_REPLICAS, "0:1,0:2"),
        (ConfigResource.topic(filled), FOLLOWER_REPLICAS, "0:3"),
        (ConfigResource.broker(1), LEADER_RATE, str(RATE)),
        (ConfigResource.broker(2), LEADER_RATE, str(RATE)),
        (ConfigResource.broker(3), FOLLOWER_RATE, str(RATE)),
    }
    assert kafka.alter_partition_reassignments(target) == {moving: None}
    ongoing = kafka.list_partition_reassignments()[moving]
    assert (ongoing.adding, ongoing.removing) == ((3,), (1,))
    assert kafka.list_partition_reassignments([(filled, 1)]) == {}
    (flight,) = kafka.describe_reassignments(topics=[filled]).reassignments
    assert (flight.partition, flight.leader, flight.plan_id) == (moving, 1, None)
    rates = [(each.broker, each.leads, each.rate_bytes_per_s) for each in flight.throttles]
    assert rates == [(1, True, RATE), (3, False, RATE)]
    assert kafka.describe_reassignments(brokers=[4]).reassignments == ()
    assert kafka.describe_reassignments(partitions=[(filled, 1)]).others == 1
    again = kafka.set_replication_throttle(target, RATE)  # of what is in flight: all is set
    assert again.changes == ()
    with pytest.raises(NotOwnReassignmentError):
        kafka.alter_partition_reassignments({moving: None, idle: None})
    verdicts = kafka.alter_partition_reassignments({moving: None, idle: None}, own_targets=target)
    assert verdicts[moving] is None
    assert code(verdicts[idle]) == 85
    as_written = json.loads(json.dumps(throttle.to_json()))
    assert DirectThrottle.from_json(as_written) == throttle
    done = kafka.clear_replication_throttle(as_written)
    assert (len(done.restored), done.changed_by_others) == (5, ())
    assert kafka.clear_replication_throttle(throttle) == done, "it may be called again"
    assert throttle_settings(gateway, filled) == before
    assert_told(filled)


def assert_told(topic: str) -> None:
    """Each change, and no reading, is in the audit and among the events."""
    with installation.open_ledger() as ledger:
        rows, events = audit_of(ledger), ledger.events()
    assert {row.decision for row in rows} == {Decided.CHANGED_DIRECTLY}
    assert [row.detail["call"] for row in rows] == [
        *("set_replication_throttle", "alter_partition_reassignments"),
        *("set_replication_throttle", "alter_partition_reassignments"),
        *("clear_replication_throttle", "clear_replication_throttle"),
    ]
    assert rows[0].detail["rate_bytes_per_s"] == RATE
    assert (rows[3].detail["of"], rows[3].detail["cancels"]) == ([f"{topic}-0", f"{topic}-1"], 2)
    assert len({row.cluster_id for row in rows}) == 1
    said = [event.detail for event in events if event.kind is EventKind.DIRECT_CHANGE]
    alter = f"alter_partition_reassignments of {topic}-0"
    assert f"{alter}: it is asked for" in said
    assert f"{alter}: 1 of 1 accepted" in said
    assert any(
        text.startswith(f"{alter}, {topic}-1: 1 of 2 accepted; {topic}-1: ") for text in said
    )


def test_a_change_whose_answer_is_lost_is_told_before_it_is_sent(
    hook: Hook, filled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = hook()

    def lost(*_: object, **__: object) -> None:
        raise ClusterError("no answer", state_left="", next_step="")

    monkeypatch.setattr(ClusterGateway, "elect_preferred_leaders", lost)
    with pytest.raises(ClusterError):
        kafka.elect_leaders([(filled, 0)])
    with installation.open_ledger() as ledger:
        (row,) = audit_of(ledger)
        told = [event.detail for event in ledger.events()]
    assert row.detail["call"] == "elect_leaders"
    assert [text.rpartition(": ")[2] for text in told] == [
        "it is asked for",
        "its answer is not known",
    ]


def test_what_others_have_set_stays_and_what_they_change_meanwhile_too(
    hook: Hook, filled: str, gateway: ClusterGateway
) -> None:
    kafka, topic = hook(), ConfigResource.topic(filled)
    set_config(gateway, topic, FOLLOWER_REPLICAS, "1:4")
    set_config(gateway, ConfigResource.broker(3), FOLLOWER_RATE, "5000")
    set_config(gateway, ConfigResource.broker(1), LEADER_RATE, "900000")
    throttle = kafka.set_replication_throttle({(filled, 0): [3, 2]}, RATE, log_dir_brokers=[4])
    assert throttle.kept == {f"broker 3 {FOLLOWER_RATE}": 5000}
    found = throttle_settings(gateway, filled)
    assert found[topic, FOLLOWER_REPLICAS] == "1:4,0:3"
    assert found[ConfigResource.broker(1), LEADER_RATE] == str(RATE)
    assert found[ConfigResource.broker(4), LOG_DIR_RATE] == str(RATE)
    set_config(gateway, ConfigResource.broker(2), LEADER_RATE, "7777")
    done = kafka.clear_replication_throttle(throttle)
    assert done.changed_by_others == (f"broker 2 {LEADER_RATE}",)
    left = throttle_settings(gateway, filled)
    assert left[topic, FOLLOWER_REPLICAS] == "1:4"
    assert (topic, LEADER_REPLICAS) not in left
    assert left[ConfigResource.broker(1), LEADER_RATE] == "900000"
    assert left[ConfigResource.broker(2), LEADER_RATE] == "7777"
    assert (ConfigResource.broker(4), LOG_DIR_RATE) not in left


def test_a_throttle_that_a_broker_refuses_leaves_nothing_and_names_the_broker(
    hook: Hook, filled: str, gateway: ClusterGateway
) -> None:
    before = throttle_settings(gateway, filled)
    with pytest.raises(Exception, match="broker 77") as refused:
        hook().set_replication_throttle({(filled, 0): [77, 2]}, RATE)
    assert not isinstance(refused.value, PolicyError)
    assert throttle_settings(gateway, filled) == before


def test_what_is_in_flight_is_throttled_and_replaced(
    hook: Hook, filled: str, gateway: ClusterGateway
) -> None:
    moving, free = TopicPartition(filled, 0), hook({"unthrottled": True})
    set_config(gateway, ConfigResource.broker(3), FOLLOWER_RATE, "1000")
    set_config(gateway, ConfigResource.topic(filled), FOLLOWER_REPLICAS, "0:3")
    assert free.alter_partition_reassignments({moving: [3, 2]}) == {moving: None}
    kafka = hook()
    throttle = kafka.set_replication_throttle({moving: [4, 2]}, RATE)
    listed = {change.key: change.ours for change in throttle.changes if change.is_list}
    assert listed == {LEADER_REPLICAS: "0:2,0:1", FOLLOWER_REPLICAS: "0:4"}, "3 is no source yet"
    with pytest.raises(NotOwnReassignmentError):
        kafka.alter_partition_reassignments({moving: [4, 2]})
    first, second = [3, 2], [4, 2]
    verdicts = kafka.alter_partition_reassignments({moving: second}, own_targets={moving: first})
    assert verdicts == {moving: None}
    assert kafka.list_partition_reassignments([moving])[moving].adding == (4,)
    verdicts = kafka.alter_partition_reassignments({moving: None}, own_targets={moving: second})
    assert verdicts == {moving: None}
    kafka.clear_replication_throttle(throttle)


def test_copies_without_a_throttle_need_the_policy(hook: Hook, filled: str) -> None:
    target = {(filled, 0): [3, 2]}
    with pytest.raises(PolicyError, match="Nothing throttles") as refused:
        hook().alter_partition_reassignments(target)
    assert f"{filled}-0 on broker 3 is in no list" in str(refused.value)
    assert "set_replication_throttle" in str(refused.value)
    free = hook({"unthrottled": True})
    assert free.list_partition_reassignments([(filled, 0)]) == {}
    assert free.alter_partition_reassignments(target) == {TopicPartition(filled, 0): None}


def test_an_order_of_replicas_copies_nothing_and_needs_no_throttle(
    hook: Hook, topics: Topics
) -> None:
    topic = topics.create([[1, 2]])
    kafka = hook()
    assert kafka.alter_partition_reassignments({(topic, 0): [2, 1]}) == {(topic, 0): None}
    wait_until(lambda: not kafka.list_partition_reassignments([(topic, 0)]), "the order")
    assert kafka.elect_leaders([(topic, 0)]) == {(topic, 0): None}
    assert code(kafka.elect_leaders([(topic, 9)])[TopicPartition(topic, 9)]) == 3


CHANGES: tuple[tuple[str, Callable[[KafkaReassignmentHook, str], object]], ...] = (
    ("alter", lambda kafka, t: kafka.alter_partition_reassignments({(t, 0): [2, 1]})),
    ("log dirs", lambda kafka, t: kafka.alter_replica_log_dirs({(t, 0, 1): "/x"})),
    ("throttle", lambda kafka, t: kafka.set_replication_throttle({(t, 0): [3, 2]}, RATE)),
    ("create", lambda kafka, t: kafka.create_partitions({t: 3})),
    ("elect", lambda kafka, t: kafka.elect_leaders([(t, 0)])),
)


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ({"approval": True}, "A person has to approve every change"),
        ({"actions": ["drain"]}, "is not among the allowed ones"),
    ],
    ids=["approval", "actions"],
)
@pytest.mark.parametrize("change", [each for _, each in CHANGES], ids=[name for name, _ in CHANGES])
def test_a_policy_refuses_every_call_that_changes_something(
    hook: Hook, topics: Topics, policy: Any, why: str, change: Callable[..., object]
) -> None:
    topic = topics.create([[1, 2]])
    unthrottled = {} if "actions" not in policy else {"unthrottled": True}
    kafka = hook(policy | unthrottled)
    with pytest.raises(PolicyError, match=why):
        change(kafka, topic)
    # Reading, asking and stopping go on.
    assert kafka.list_partition_reassignments([(topic, 0)]) == {}
    assert kafka.validate({(topic, 0): [2, 1]}) == {(topic, 0): None}
    assert kafka.create_partitions({topic: 3}, validate_only=True) == {topic: None}
    assert (
        code(kafka.alter_partition_reassignments({(topic, 0): None})[TopicPartition(topic, 0)])
        == 85
    )
    assert kafka.clear_replication_throttle(DirectThrottle(1, (), {})).restored == ()


def test_the_largest_throttle_and_windows_hold(hook: Hook, topics: Topics) -> None:
    topic = topics.create([[1, 2]])
    with pytest.raises(PolicyError, match="above the largest throttle"):
        hook({"largest_throttle": RATE}).set_replication_throttle({(topic, 0): [3, 2]}, RATE + 1)
    yesterday = datetime.now(UTC) - timedelta(days=1)
    until = yesterday + timedelta(hours=1)
    window = {"from": f"{yesterday:%Y-%m-%dT%H:%M}Z", "until": f"{until:%Y-%m-%dT%H:%M}Z"}
    with pytest.raises(PolicyError, match="outside the allowed windows"):
        hook({"windows": [window]}).elect_leaders([(topic, 0)])


def test_a_connection_that_leads_to_another_cluster_than_it_did_changes_nothing(
    hook: Hook, topics: Topics
) -> None:
    topic, kafka = topics.create([[1, 2]]), hook()
    with installation.open_ledger() as ledger:
        ledger.record_connection("kafka_one", "another-cluster", "a task")
    with pytest.raises(MisledError):
        kafka.elect_leaders([(topic, 0)])


def test_verdicts_beforehand_are_the_controllers(hook: Hook, topics: Topics) -> None:
    topic, kafka = topics.create([[1, 2]] * 3), hook({"unthrottled": True})
    targets = {(topic, 0): [1, 9], (topic, 1): [1, 2, 3], (topic, 2): None, ("no-such", 0): [1]}
    said = kafka.validate(targets)
    assert [code(said[TopicPartition(*each)]) for each in targets] == [39, 38, 85, 3]
    assert kafka.alter_partition_reassignments(targets) == said
    assert kafka.list_partition_reassignments([(topic, 1)]) == {}
    allowed = kafka.validate({(topic, 1): [1, 2, 3]}, allow_replication_factor_change=True)
    assert allowed == {(topic, 1): None}


def test_replicas_are_found_in_their_log_dirs_and_moved_between_them(
    hook: Hook, topics: Topics, cluster: LocalCluster
) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 100)
    kafka, replica = hook(), ReplicaId(topic, 0, 1)
    found = kafka.describe_replica_log_dirs([replica, (topic, 0, 77)])
    assert found.missing.keys() == {77}
    here = found.value[replica]
    assert here.size_bytes > 100_000
    assert here.future_log_dir is None
    other = next(str(path) for path in cluster.log_dirs(1) if str(path) != here.log_dir)
    with pytest.raises(PolicyError, match="no rate between log dirs"):
        kafka.alter_replica_log_dirs({replica: other})
    throttle = kafka.set_replication_throttle({}, 10_000_000, log_dir_brokers=[1])
    assert code(kafka.alter_replica_log_dirs({replica: "/no/such"})[replica]) == 57
    assert kafka.alter_replica_log_dirs({replica: other}) == {replica: None}
    wait_until(
        lambda: kafka.describe_replica_log_dirs([replica]).value[replica].log_dir == other,
        "the replica in its new log dir",
    )
    kafka.clear_replication_throttle(throttle)
    assert replica in kafka.describe_replica_log_dirs(brokers=[1]).value


def test_partitions_are_created_where_asked_and_validated_first(hook: Hook, topics: Topics) -> None:
    topic, kafka = topics.create([[1, 2]]), hook()
    assert kafka.create_partitions({topic: 2}, {topic: [[4, 3]]}, validate_only=True) == {
        topic: None
    }
    assert code(kafka.create_partitions({topic: 1})[topic]) == 37
    assert kafka.create_partitions({topic: 2}, {topic: [[4, 3]]}) == {topic: None}
    kept = wait_until(
        lambda: kafka.describe_replica_log_dirs([(topic, 1, 3), (topic, 1, 4)]).value, "replicas"
    )
    assert {replica.broker for replica in kept} <= {3, 4}


def test_a_connection_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidRequestError, match="Connection nowhere cannot be used"):
        KafkaReassignmentHook("nowhere").list_partition_reassignments()
