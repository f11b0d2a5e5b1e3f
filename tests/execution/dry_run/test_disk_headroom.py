"""Free space on disks, from readings made by hand: real disks of every size are hard to get."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rehome.domain.kafka import (
    ANY_LOG_DIR,
    ClusterDescription,
    LogDir,
    Partial,
    PartitionState,
    ReplicaId,
    ReplicaOnDisk,
    TopicDescription,
    TopicPartition,
)
from rehome.domain.plan.move import Move
from rehome.domain.run.findings import Severity
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.disk_headroom import disk_findings
from tests.ledger.small_plans import make_plan, move

ERROR, WARNING = Severity.ERROR, Severity.WARNING


def log_dir(broker: int, path: str, total: int | None, usable: int | None, **more: Any) -> LogDir:
    values: dict[str, Any] = {"cordoned": False, "error": None, "replicas": {}}
    return LogDir(broker, path, total, usable, **(values | more))


def findings(
    *moves: Move,
    dirs: list[LogDir],
    min_free: float = 0.0,
    sizes: dict[ReplicaId, int] | None = None,
) -> list[tuple[str, Severity]]:
    state = PartitionState(1, (1, 2), frozenset({1, 2}))
    topic = TopicDescription("t", "id", False, dict.fromkeys(range(10), state))
    now = ClusterState(
        taken_at=datetime.now(UTC),
        cluster=ClusterDescription("c", None, {}, None),
        topics={"t": topic},
        ongoing={},
        log_dirs=Partial(dirs),
        missing_rights=(),
        min_isr={},
        sizes=sizes or {},
    )
    found = disk_findings(make_plan("p", *moves), now, lambda _: min_free)
    return [(item.subject, item.severity) for item in found]


def test_copies_that_fit_are_no_finding() -> None:
    dirs = [log_dir(3, "/a", 1000, 500)]
    moves = [move("t", number, (1, 2), (3, 2), 100) for number in range(5)]
    assert findings(*moves, dirs=dirs) == []
    assert findings(*moves, dirs=dirs, min_free=0.01) == [("broker 3", ERROR)]


def test_a_replica_that_leaves_later_does_not_free_space_for_earlier_copies() -> None:
    dirs = [log_dir(1, "/a", 1000, 150), log_dir(3, "/b", 1000, 150)]
    swap = [move("t", 0, (1, 2), (3, 2), 200), move("t", 1, (3, 2), (1, 2), 200)]
    assert findings(*swap, dirs=dirs) == [("broker 1", ERROR), ("broker 3", ERROR)]


def test_sizes_of_today_count_not_those_of_the_plan() -> None:
    dirs = [log_dir(3, "/a", 1000, 500)]
    grown = {ReplicaId("t", 0, 1): 600}
    assert findings(move("t", 0, (1, 2), (3, 2), 100), dirs=dirs, sizes=grown) == [
        ("broker 3", ERROR)
    ]


def test_log_dirs_that_seem_to_be_one_volume_are_counted_once() -> None:
    alike = [log_dir(3, "/a", 1000, 500), log_dir(3, "/b", 1000, 500)]
    apart = [log_dir(3, "/a", 1000, 500), log_dir(3, "/b", 1000, 499)]
    moves = [move("t", number, (1, 2), (3, 2), 300) for number in range(2)]
    assert findings(*moves, dirs=alike) == [("broker 3", ERROR)]
    assert findings(*moves, dirs=apart) == [("broker 3", WARNING)]  # both may go into one


def test_log_dirs_that_hold_more_than_one_volume_has_used_are_disks_that_seem_alike() -> None:
    held = {"replicas": {TopicPartition("u", 0): ReplicaOnDisk(400, 0, is_future=False)}}
    disks = [log_dir(3, "/a", 1000, 500, **held), log_dir(3, "/b", 1000, 500, **held)]
    moves = [move("t", number, (1, 2), (3, 2), 300) for number in range(2)]
    assert findings(*moves, dirs=disks) == [("broker 3", WARNING)]


def test_copies_that_fit_together_but_into_no_log_dir_each_are_an_error() -> None:
    dirs = [log_dir(3, "/a", 10_000, 8_000), log_dir(3, "/b", 10_000, 7_900)]
    moves = [move("t", number, (1, 2), (3, 2), 5_000) for number in range(3)]
    assert findings(*moves, dirs=dirs) == [("broker 3", ERROR)]
    assert findings(*moves[:2], dirs=dirs) == [("broker 3", WARNING)]
    named = [replace(moves[0], target_log_dirs=("/a", "any")), moves[1]]
    assert findings(*named, dirs=dirs) == [("broker 3", WARNING)]
    named[1] = replace(moves[1], target_log_dirs=("/b", "any"))
    assert findings(*named, dirs=dirs) == []


def test_named_log_dirs_of_one_volume_share_its_free_space() -> None:
    dirs = [log_dir(3, "/a", 1000, 500), log_dir(3, "/b", 1000, 500)]
    moves = [
        move("t", number, (1, 2), (3, 2), 300, target_log_dirs=(path, "any"))
        for number, path in enumerate(("/a", "/b"))
    ]
    assert ("broker 3, /a, /b", ERROR) in findings(*moves, dirs=dirs)


def test_a_copy_that_fits_in_one_log_dir_only_is_a_warning() -> None:
    dirs = [log_dir(3, "/a", 1000, 500), log_dir(3, "/b", 1000, 50)]
    assert findings(move("t", 0, (1, 2), (3, 2), 100), dirs=dirs) == [("broker 3", WARNING)]


def test_cordoned_and_offline_log_dirs_give_no_free_space() -> None:
    copy = move("t", 0, (1, 2), (3, 2), 100)
    cordoned = [log_dir(3, "/a", 1000, 500, cordoned=True), log_dir(3, "/b", 1000, 50)]
    assert findings(copy, dirs=cordoned) == [("broker 3", ERROR)]


def test_a_named_log_dir_must_hold_what_is_named_for_it() -> None:
    dirs = [log_dir(3, "/a", 1000, 500), log_dir(3, "/b", 1000, 90)]
    into_b = move("t", 0, (1, 2), (3, 2), 100, target_log_dirs=("/b", ANY_LOG_DIR))
    assert ("broker 3, /b", ERROR) in findings(into_b, dirs=dirs)


def test_a_move_between_log_dirs_of_a_broker_needs_space_there_and_one_that_stays_does_not() -> (
    None
):
    dirs = [log_dir(1, "/a", 1000, 10), log_dir(1, "/b", 1000, 90)]
    before = ("/a", "/x")
    within = move("t", 0, (1, 2), (1, 2), 100, before, ("/b", ANY_LOG_DIR))
    assert ("broker 1, /b", ERROR) in findings(within, dirs=dirs)
    stays = move("t", 0, (1, 2), (1, 2), 100, before, ("/a", ANY_LOG_DIR))
    assert findings(stays, dirs=dirs) == []


def test_a_broker_that_does_not_report_its_disk_space_is_not_judged() -> None:
    assert findings(move("t", 0, (1, 2), (3, 2)), dirs=[log_dir(3, "/a", None, None)]) == []


def test_only_the_plans_own_partitions_are_counted() -> None:
    dirs = [log_dir(3, "/a", 1000, 500)]
    leader_only = move("t", 0, (1, 2), (2, 1), 10_000)
    assert findings(leader_only, dirs=dirs) == []
    assert TopicPartition("t", 0) == leader_only.partition
