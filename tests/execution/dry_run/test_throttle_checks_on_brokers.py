"""What a dry run says of throttles, and what brokers themselves refuse: on real brokers."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.execution.dry_run.dry_run import Severity, describe
from rehome.execution.dry_run.throttle_checks import partition_findings
from rehome.execution.throttle.keys import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_REPLICAS
from rehome.settings import Settings
from tests.conftest import Topics
from tests.execution.conftest import Configure
from tests.execution.dry_run.checked import REQUEST, check, found, snapshot_of
from tests.ledger.small_plans import move
from tests.versions.since import honours_default

DEFAULT = ConfigResource.cluster_default()


def test_a_throttle_of_0_is_refused_though_kafka_takes_it(
    gateway: ClusterGateway, topics: Topics
) -> None:
    zero = ConfigChange(DEFAULT, FOLLOWER_RATE, ConfigOperation.SET, "0")
    assert gateway.alter_configs([zero], validate_only=True) == {DEFAULT: None}
    topic = topics.create([[1, 2]])
    result = check(gateway, move(topic, 0, (1, 2), (3, 2)), rate_bytes_per_s=0)
    assert [item.severity for item in found(result, "throttle")] == [Severity.ERROR]
    assert result.predicted is None
    assert "never" in describe(result)


@honours_default
def test_a_rate_that_a_broker_refuses_is_found_by_its_own_validation(
    gateway: ClusterGateway, topics: Topics, configure: Configure
) -> None:
    # The broker's own rate would win, so it is to be lowered too, and has its own say.
    configure(ConfigResource.broker(3), FOLLOWER_RATE, str(2**62))
    topic = topics.create([[1, 2]])
    result = check(gateway, move(topic, 0, (1, 2), (3, 2)), rate_bytes_per_s=2**63)
    subjects = {item.subject: item.code for item in found(result, "throttle") if item.code}
    assert subjects["the brokers' default"] in (40, 42)


def test_a_lower_rate_that_another_client_set_holds_and_is_reported(
    gateway: ClusterGateway, topics: Topics, configure: Configure
) -> None:
    topic = topics.create([[1, 2]])
    mine = move(topic, 0, (1, 2), (3, 2))
    topics.fill(topic, 100)
    configure(ConfigResource.broker(3), FOLLOWER_RATE, "5000")
    settings = Settings(min_free_disk_fraction=0.0, throttle_efficiency=0.5)
    result = check(gateway, mine, settings=settings)
    (finding,) = found(result, "throttle")
    assert result.predicted is not None
    assert result.predicted.least_s < 5, "the first fetch of a copy passes whatever the rate is"
    assert result.predicted.most_s > 40, "100 kB at 2.5 kB/s"
    assert (finding.severity, finding.subject) == (Severity.WARNING, "broker 3")
    assert finding.message.startswith("already has follower rate 5 kB/s")
    assert re.search(r"10\d kB pass through it at that rate", finding.message)
    configure(ConfigResource.broker(3), FOLLOWER_RATE, "0")
    (finding,) = found(check(gateway, mine), "throttle")
    assert finding.severity is Severity.ERROR


def test_a_throttle_below_the_inflow_would_never_end(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    snapshot = snapshot_of(gateway)
    topics.fill(topic, 2000)
    moves = [move(topic, 0, (1, 2), (3, 2)), move(topic, 1, (1, 2), (3, 2))]

    def severities(rate: int, slots: int, wake_s: float = 0.0) -> list[tuple[str, Severity]]:
        request = replace(REQUEST, max_moves_per_broker=slots)
        settings = Settings(
            min_free_disk_fraction=0.0, throttle_efficiency=1.0, poll_interval_s=1e-3, wake_s=wake_s
        )
        # As if the 2 MB a partition had come in 20 s.
        past = replace(snapshot, taken_at=datetime.now(UTC) - timedelta(seconds=20))
        result = check(
            gateway,
            *moves,
            snapshot=past,
            settings=settings,
            request=request,
            rate_bytes_per_s=rate,
        )
        return [(item.subject, item.severity) for item in found(result, "inflow")]

    both = [("broker 3", Severity.ERROR), ("broker 1", Severity.ERROR)]
    assert severities(150_000, slots=2) == both
    # The follower that is in sync already fetches from broker 1, too.
    one_at_a_time = [("broker 1", Severity.ERROR), ("broker 3", Severity.WARNING)]
    assert severities(150_000, slots=1) == one_at_a_time
    assert severities(150_000, slots=1, wake_s=60) == both  # small enough to share the slot
    assert severities(1_000_000, slots=2) == []


def test_a_list_that_others_have_filled_is_an_error_and_what_is_ours_on_it_is_not(
    gateway: ClusterGateway, topics: Topics
) -> None:
    others = [f"{number}:9" for number in range(10_000, 14_096)]
    items = ",".join(others)
    topic = topics.create([[1, 2]], config={LEADER_REPLICAS: items, FOLLOWER_REPLICAS: items})
    mine = move(topic, 0, (1, 2), (3, 2))

    refused = found(check(gateway, mine), "throttle")
    assert {item.severity for item in refused} == {Severity.ERROR}
    assert len(refused) == 2
    for item in refused:
        assert f"{len(others):,} items, which leave room for " in item.message
        assert "so 1 move could not be throttled" in item.message

    where = ConfigResource.topic(topic)
    ours = {(where, key): set(others) for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)}
    assert check(gateway, mine, ours=ours).ok


def test_partition_counts_are_validated_by_the_controller_itself(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    refused = {
        item.subject: item.code
        for item in partition_findings(gateway, {topic: 1, "no-such-topic": 3})
    }
    assert refused == {topic: 37, "no-such-topic": 3}
    assert list(partition_findings(gateway, {topic: 3})) == []
    assert len(gateway.describe_topics([topic])[topic].partitions) == 2


def test_a_right_that_is_missing_is_named_before_anything_is_changed(
    secured_cluster: LocalCluster, secured_topics: Topics
) -> None:
    topic = secured_topics.create([[1, 2]])
    mine = move(topic, 0, (1, 2), (3, 2))
    user = "reassigner"
    rights = [
        ("alter", "cluster"),
        ("alter_configs", "cluster"),
        ("describe", "topic"),
        ("alter_configs", "topic"),
    ]
    for right in rights:
        secured_cluster.allow(user, *right)
    connection = Connection.from_settings(secured_cluster.client_settings(user))
    try:
        with ClusterGateway(connection) as gateway:
            wait_until(lambda: check(gateway, mine).ok, "the rights to be known everywhere")
            snapshot = snapshot_of(gateway)
            secured_cluster.revoke(user, *rights.pop())
            wait_until(
                lambda: found(check(gateway, mine, snapshot=snapshot), "throttle"),
                "the right to be gone everywhere",
            )
            result = check(gateway, mine, snapshot=snapshot)
            subjects = [item.subject for item in found(result, "rights")]
            assert subjects == [f"Topic AlterConfigs on {topic}"]
            throttle = [(item.subject, item.code) for item in found(result, "throttle")]
            assert throttle == [(f"topic {topic}", 29)]
    finally:
        for right in rights:
            secured_cluster.revoke(user, *right)
