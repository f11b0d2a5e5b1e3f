"""Dry runs on real brokers: every cause to refuse is found, and nothing is changed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from include.cluster.connection.settings import Connection
from include.cluster.gateway import ClusterGateway
from include.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from include.domain.kafka import TopicPartition
from include.domain.request.limits import read_caps
from include.domain.request.request import Action, Cordon
from include.execution.dry_run.dry_run import Severity, describe
from include.execution.dry_run.foreign_checks import cancel_command
from include.execution.dry_run.throttle_checks import partition_findings
from include.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    own_value,
)
from include.settings import Settings
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from tests.conftest import Topics
from tests.execution.dry_run.checked import REQUEST, check, everything, found, snapshot_of
from tests.ledger.small_plans import move

Configure = Callable[[ConfigResource, str, str], None]
DEFAULT = ConfigResource.cluster_default()


@pytest.fixture
def configure(gateway: ClusterGateway) -> Iterator[Configure]:
    """Sets configs that are deleted at the end."""
    made: list[ConfigChange] = []

    def configure(resource: ConfigResource, key: str, value: str) -> None:
        made.append(ConfigChange(resource, key, ConfigOperation.DELETE))
        change = ConfigChange(resource, key, ConfigOperation.SET, value)
        assert gateway.alter_configs([change]) == {resource: None}
        wait_until(lambda: _own(gateway, resource, key) == value, f"{key} to be set")

    yield configure
    for change in made:
        gateway.alter_configs([change])
        wait_until(
            lambda change=change: _own(gateway, change.resource, change.key) is None,
            f"{change.key} to be deleted",
        )


def _own(gateway: ClusterGateway, resource: ConfigResource, key: str) -> str | None:
    configs = gateway.describe_configs([resource], [key])[resource]
    assert isinstance(configs, dict)
    return own_value(resource, configs.get(key))


@pytest.fixture
def in_flight(
    gateway: ClusterGateway, configure: Configure, topics: Topics
) -> Iterator[Callable[[Sequence[int], Sequence[int]], TopicPartition]]:
    """Starts a reassignment that crawls at 1 kB/s; cancelled at the end."""
    started: list[TopicPartition] = []

    def start(current: Sequence[int], target: Sequence[int]) -> TopicPartition:
        topic = topics.create([current], config={LEADER_REPLICAS: "*", FOLLOWER_REPLICAS: "*"})
        configure(DEFAULT, LEADER_RATE, "1000")
        configure(DEFAULT, FOLLOWER_RATE, "1000")
        topics.fill(topic, 3000)
        partition = TopicPartition(topic, 0)
        assert gateway.alter_reassignments({partition: target}) == {partition: None}
        started.append(partition)
        wait_until(lambda: partition in gateway.list_reassignments(), "it to be in flight")
        return partition

    yield start
    gateway.alter_reassignments(dict.fromkeys(started))
    wait_until(lambda: not gateway.list_reassignments(started), "the cancel")


def test_a_good_plan_passes_every_check_with_a_prediction(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2], [2, 1], [1, 3]])
    topics.fill(topic, 1000, size_bytes=10_000)
    moves = (
        move(topic, 0, (1, 2), (3, 2), size_bytes=10_000_000),
        move(topic, 1, (2, 1), (1, 2), size_bytes=10_000_000),  # a new leader: no data moves
        move(topic, 2, (1, 3), (4, 3), size_bytes=10_000_000),
    )
    settings = Settings(
        min_free_disk_fraction=0.0, throttle_efficiency=0.5, poll_interval_s=1, wake_s=2
    )
    result = check(gateway, *moves, settings=settings, rate_bytes_per_s=1_000_000)
    assert result.ok, describe(result)
    assert result.findings == ()
    # Broker 1 leads both partitions that are copied: 20 MB at 0.5 x 1 MB/s, and a last poll.
    assert result.bytes_to_move == pytest.approx(20_000_000, rel=0.15)
    assert result.predicted is not None
    assert result.predicted.holds(43)
    assert result.predicted.least_s > 30
    assert result.predicted.most_s < 90
    assert result.runs_measured == 0
    text = describe(result)
    assert "may run; nothing was changed" in text
    assert f"{result.predicted} (Airflow's reaction: as the settings expect)" in text
    assert all(name in text for name in result.checks)
    assert json.loads(json.dumps(result.to_json()))["ok"] is True


def test_the_cluster_is_left_bit_for_bit_as_it_was(
    gateway: ClusterGateway, topics: Topics, configure: Configure
) -> None:
    topic = topics.create([[1, 2]] * 4)
    topics.fill(topic, 200)
    configure(ConfigResource.topic(topic), LEADER_REPLICAS, "0:1")
    configure(ConfigResource.broker(3), FOLLOWER_RATE, "90000000")
    configure(DEFAULT, FOLLOWER_RATE, "80000000")
    before = everything(gateway)
    result = check(
        gateway,
        move(topic, 0, (1, 2), (3, 2)),
        move(topic, 1, (1, 2), (1, 9)),
        move(topic, 2, (1, 2), (2, 1)),
        move("no-such-topic", 0, (1, 2), (3, 2)),
        rate_bytes_per_s=50_000_000,
    )
    list(partition_findings(gateway, {topic: 9}))
    assert not result.ok
    assert everything(gateway) == before


def test_the_controllers_refusals_are_predicted_with_code_and_message(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2]] * 2)
    result = check(
        gateway,
        move(topic, 0, (1, 2), (1, 9)),
        move(topic, 1, (1, 2), (3, 3)),
        move("no-such-topic", 0, (1, 2), (3, 2)),
    )
    assert [(item.subject, item.code) for item in found(result, "verdict")] == [
        (f"{topic}-0", 39),
        (f"{topic}-1", 39),
        ("no-such-topic-0", 3),
    ]
    assert "includes broker 9, but no such broker is registered." in describe(result)
    assert not result.ok


def test_a_partition_that_changed_since_the_snapshot_is_refused(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    result = check(gateway, move(topic, 0, (2, 1), (3, 1)), move(topic, 7, (1, 2), (3, 2)))
    messages = [str(item) for item in found(result, "drift")]
    assert len(messages) == 2
    assert "has replicas [1, 2], not [2, 1]" in messages[0]
    assert "is gone" in messages[1]


def test_a_partition_that_grew_a_lot_is_reported_and_does_not_stop_the_plan(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 3000)
    result = check(gateway, move(topic, 0, (1, 2), (3, 2), size_bytes=1_000_000))
    (finding,) = found(result, "drift")
    assert finding.severity is Severity.WARNING
    assert "has grown from 1 MB to 3" in finding.message
    assert result.ok


def test_a_foreign_reassignment_stops_the_plan_unless_additional_and_never_on_its_partitions(
    gateway: ClusterGateway,
    topics: Topics,
    in_flight: Callable[[Sequence[int], Sequence[int]], TopicPartition],
) -> None:
    foreign = in_flight([1, 2], [3, 2])
    other = topics.create([[1, 2]])
    mine = move(other, 0, (1, 2), (3, 2))
    additional = replace(REQUEST, additional=True)

    (finding,) = found(check(gateway, mine), "foreign reassignments")
    assert (finding.severity, finding.code) == (Severity.ERROR, None)  # no broker refuses it
    (finding,) = found(check(gateway, mine, request=additional), "foreign reassignments")
    assert finding.severity is Severity.INFO

    touching = check(gateway, move(foreign.topic, 0, (1, 2), (4, 2)), request=additional)
    (finding,) = found(touching, "foreign reassignments")
    assert finding.severity is Severity.ERROR
    assert "is reassigning it to [3, 2]" in finding.message


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
    (finding,) = found(check(gateway, mine, settings=settings), "throttle")
    assert (finding.severity, finding.subject) == (Severity.WARNING, "broker 3")
    assert finding.message.startswith("already has follower rate 5 kB/s")
    assert re.search(r"expect the 10\d kB through it to take about 4\d s", finding.message)
    configure(ConfigResource.broker(3), FOLLOWER_RATE, "0")
    (finding,) = found(check(gateway, mine), "throttle")
    assert finding.severity is Severity.ERROR


def test_a_throttle_below_the_inflow_would_never_end(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2], [1, 2]])
    snapshot = snapshot_of(gateway)
    topics.fill(topic, 2000)
    # As if the 2 MB a partition had come in 20 s.
    past = replace(snapshot, taken_at=datetime.now(UTC) - timedelta(seconds=20))
    moves = [move(topic, 0, (1, 2), (3, 2)), move(topic, 1, (1, 2), (3, 2))]

    def severities(rate: int, slots: int, wake_s: float = 0.0) -> list[tuple[str, Severity]]:
        request = replace(REQUEST, max_moves_per_broker=slots)
        settings = Settings(
            min_free_disk_fraction=0.0, throttle_efficiency=1.0, poll_interval_s=1e-3, wake_s=wake_s
        )
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
    one_at_a_time = [("broker 3", Severity.WARNING), ("broker 1", Severity.WARNING)]
    assert severities(150_000, slots=1) == one_at_a_time
    assert severities(150_000, slots=1, wake_s=60) == both  # small enough to share the slot
    assert severities(1_000_000, slots=2) == []


def test_copies_that_leave_too_little_disk_are_refused(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 1000)
    settings = Settings(min_free_disk_fraction=0.999)
    result = check(gateway, move(topic, 0, (1, 2), (3, 2)), settings=settings)
    (finding,) = found(result, "disk")
    assert (finding.severity, finding.subject) == (Severity.ERROR, "broker 3")


def test_the_stricter_of_the_planned_and_the_current_disk_cap_counts(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 1000)
    some = move(topic, 0, (1, 2), (3, 2))
    strict, loose = (read_caps({"default": {"disk_fraction": part}}) for part in (0.001, 1))
    for then, now in ((strict, loose), (loose, strict)):
        request = replace(REQUEST, caps=then)
        (finding,) = found(check(gateway, some, request=request, caps_now=now), "disk")
        assert (finding.severity, finding.subject) == (Severity.ERROR, "broker 3")
    request = replace(REQUEST, caps=loose)
    assert not found(check(gateway, some, request=request, caps_now=loose), "disk")


def test_a_cordoned_destination_passes_the_controller_and_not_the_dry_run(
    gateway: ClusterGateway, topics: Topics, configure: Configure
) -> None:
    topic = topics.create([[1, 2]])
    configure(ConfigResource.broker(4), "cordoned.log.dirs", "*")
    wait_until(lambda: all(d.cordoned for d in gateway.describe_log_dirs([4]).value), "the cordon")
    result = check(gateway, move(topic, 0, (1, 2), (4, 2)))
    assert not found(result, "verdict")
    (finding,) = found(result, "brokers")
    assert "has its log dirs cordoned" in finding.message
    partition = TopicPartition(topic, 0)
    assert gateway.alter_reassignments({partition: [4, 2]}) == {partition: None}


def test_the_dry_run_reports_drained_brokers_that_cannot_be_cordoned(
    gateway: ClusterGateway, topics: Topics
) -> None:
    drain = replace(REQUEST, action=Action.DRAIN, brokers=(2, 99), cordon=Cordon.UNDO)
    result = check(gateway, move(topics.create([[1, 2]]), 0, (1, 2), (1, 3)), request=drain)
    (finding,) = found(result, "cordon")
    assert (finding.severity, finding.subject) == (Severity.WARNING, "broker 99")
    assert all(not d.cordoned for d in gateway.describe_log_dirs([2]).value), "nothing is changed"


def test_a_target_below_min_insync_replicas_would_stop_producers(
    gateway: ClusterGateway, topics: Topics
) -> None:
    topic = topics.create([[1, 2]], config={"min.insync.replicas": "2"})
    result = check(gateway, move(topic, 0, (1, 2), (1,)))
    (finding,) = found(result, "in-sync replicas")
    assert finding.severity is Severity.ERROR
    assert "min.insync.replicas=2" in finding.message


def test_another_active_plan_stops_this_one_and_its_own_retry_does_not(
    gateway: ClusterGateway, topics: Topics
) -> None:
    mine = move(topics.create([[1, 2]]), 0, (1, 2), (3, 2))
    (finding,) = check(gateway, mine, active_plan="another").findings
    assert (finding.check, finding.subject) == ("active plan", "another")
    assert check(gateway, mine, active_plan="dry").ok


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
        assert f"{len(others)} items, which leave room for " in item.message
        assert "so 1 move could not be throttled" in item.message

    where = ConfigResource.topic(topic)
    ours = {(where, key): set(others) for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)}
    assert check(gateway, mine, ours=ours).ok


def test_kafkas_own_tool_takes_the_command_for_a_reassignment_that_hangs(
    gateway: ClusterGateway,
    cluster: LocalCluster,
    in_flight: Callable[[Sequence[int], Sequence[int]], TopicPartition],
    tmp_path: Path,
) -> None:
    foreign = in_flight([1, 2], [3, 2])
    remedy = cancel_command(foreign, gateway.list_reassignments([foreign])[foreign])
    file = tmp_path / "cancel.json"
    file.write_text(remedy[remedy.index("{") : remedy.rindex("}") + 1])
    done = cluster.run_tool(
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        *("--cancel", "--preserve-throttles", "--reassignment-json-file", str(file)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    wait_until(lambda: not gateway.list_reassignments([foreign]), "the tool's cancel")
