"""Dry runs on real brokers: every cause to refuse is found, and nothing is changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.actions import Action
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import Replicas, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.request.limits import read_caps
from rehome.domain.request.request import Cordon
from rehome.execution.dry_run.active_plan import ActivePlan
from rehome.execution.dry_run.dry_run import DryRunResult, Severity, describe
from rehome.execution.dry_run.throttle_checks import partition_findings
from rehome.execution.dry_run.typed_finding import FOREIGN_CHECK, FoundKind
from rehome.execution.dry_run.words.plan_words import cancel_command
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from rehome.settings import Settings
from tests.conftest import Topics
from tests.execution.conftest import Configure
from tests.execution.dry_run.checked import REQUEST, beside_versions, check, everything, found
from tests.ledger.small_plans import move
from tests.versions.since import RELEASE, cordons, honours_default

DEFAULT = ConfigResource.cluster_default()
LOOKS_ONLY = replace(REQUEST, dry_run=True)


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
    assert beside_versions(result) == []
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
    by_operators = {"settings", "policies", "alerts", "partitions"}
    assert {kind.check for kind in FoundKind} - by_operators <= set(result.checks)
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
    assert "from 1 MB to 3" in finding.detail
    assert result.ok


@honours_default
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


@cordons
def test_a_cordoned_destination_does_not_pass_the_dry_run_though_controllers_of_4_3_take_it(
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
    (verdict,) = gateway.alter_reassignments({partition: [4, 2]}).values()
    assert (verdict.code if verdict else 0) == (39 if RELEASE >= (4, 4) else 0)


@cordons
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
    (finding,) = beside_versions(check(gateway, mine, active=ActivePlan("another", dict)))
    assert (finding.check, finding.subject) == ("active plan", "another")
    assert check(gateway, mine, active=ActivePlan("dry", dict)).ok


@honours_default
def test_what_the_active_plan_has_in_flight_is_its_own_and_another_target_another_clients(
    gateway: ClusterGateway,
    topics: Topics,
    in_flight: Callable[[Sequence[int], Sequence[int]], TopicPartition],
) -> None:
    """It had begun before the cluster was read, began meanwhile, or has ended meanwhile."""
    moving = in_flight([1, 2], [3, 2])
    mine = move(topics.create([[1, 2]]), 0, (1, 2), (3, 2))
    touching = move(moving.topic, 0, (1, 2), (4, 2))
    none: dict[TopicPartition, Replicas] = {}
    known, other = {moving: (3, 2)}, {moving: (4, 2)}

    def tried(wanted: Move, *readings: Mapping[TopicPartition, Replicas]) -> DryRunResult:
        read = iter(readings)
        active = ActivePlan("night", lambda: next(read))
        return check(gateway, wanted, request=LOOKS_ONLY, active=active)

    for readings in ((none, {moving: (2, 3)}), (known, none)):
        result = tried(mine, *readings)
        assert (found(result, FOREIGN_CHECK), result.ok) == ([], True)

    result = tried(touching, known, known)
    assert found(result, FOREIGN_CHECK) == []
    (finding, _) = found(result, "active plan")
    assert (finding.severity, finding.subject) == (Severity.ERROR, str(moving))
    assert "plan night is reassigning it to [3, 2]" in finding.message

    (finding,) = found(tried(touching, other, none), FOREIGN_CHECK)
    assert "another client is reassigning it to [3, 2]" in finding.message

    def ended() -> Mapping[TopicPartition, Replicas]:
        gateway.alter_reassignments({moving: None})
        wait_until(lambda: not gateway.list_reassignments([moving]), "its end")
        return none

    calls = iter([dict, ended])

    def read_ended() -> Mapping[TopicPartition, Replicas]:
        return next(calls)()

    active = ActivePlan("night", read_ended)
    result = check(gateway, mine, request=LOOKS_ONLY, active=active)
    assert found(result, FOREIGN_CHECK) == []


def test_what_is_only_tried_out_is_not_refused_beside_another_active_plan(
    gateway: ClusterGateway, topics: Topics
) -> None:
    mine = move(topics.create([[1, 2]]), 0, (1, 2), (3, 2))
    looked_at = check(
        gateway, mine, active=ActivePlan("another", dict), request=replace(REQUEST, dry_run=True)
    )
    (finding,) = beside_versions(looked_at)
    assert (finding.check, finding.severity) == ("active plan", Severity.WARNING)
    assert looked_at.ok


def test_kafkas_own_tool_takes_the_command_for_a_reassignment_that_hangs(
    gateway: ClusterGateway,
    cluster: LocalCluster,
    in_flight: Callable[[Sequence[int], Sequence[int]], TopicPartition],
    tmp_path: Path,
) -> None:
    foreign = in_flight([1, 2], [3, 2])
    remedy = cancel_command(foreign, gateway.list_reassignments([foreign])[foreign].target)
    file = tmp_path / "cancel.json"
    file.write_text(remedy[remedy.index("{") : remedy.rindex("}") + 1])
    done = cluster.run_tool(
        "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
        *("--cancel", "--preserve-throttles", "--reassignment-json-file", str(file)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    wait_until(lambda: not gateway.list_reassignments([foreign]), "the tool's cancel")
