"""Room for the copies: on disks at every moment of a move, and above the inflow in the throttle."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

import pyarrow.compute as pc

from include.cluster.model import BrokerId, TopicPartition
from include.cluster.snapshot import Snapshot
from include.execution.findings import Finding, Severity
from include.execution.reading import Reading
from include.planning.plan import ANY_LOG_DIR, Plan
from include.planning.request import ReassignmentRequest

_MINIMUM_SPAN_S = 1.0


def disk_findings(plan: Plan, now: Reading, min_free_fraction: float) -> Iterator[Finding]:
    """Brokers (and named log dirs) that cannot hold what comes before anything has left.

    The worst moment is assumed: every incoming copy complete, no outgoing one deleted yet.
    """
    incoming: dict[BrokerId, int] = {}
    into: dict[tuple[BrokerId, str], int] = {}
    for move in plan.moves:
        dirs = move.target_log_dirs or (ANY_LOG_DIR,) * len(move.target)
        for broker, path in zip(move.target, dirs, strict=True):
            if broker in move.adding:
                incoming[broker] = incoming.get(broker, 0) + move.size_bytes
            if path != ANY_LOG_DIR:
                into[broker, path] = into.get((broker, path), 0) + move.size_bytes
    room: dict[BrokerId, int] = {}
    for log_dir in now.log_dirs.value:
        if log_dir.usable_bytes is None or log_dir.total_bytes is None or log_dir.error:
            continue
        free = int(log_dir.usable_bytes - min_free_fraction * log_dir.total_bytes)
        room[log_dir.broker] = room.get(log_dir.broker, 0) + max(free, 0)
        needed = into.get((log_dir.broker, log_dir.path), 0)
        if needed > free:
            yield _too_little(f"broker {log_dir.broker}, {log_dir.path}", needed, free)
    for broker, needed in sorted(incoming.items()):
        if broker in room and needed > room[broker]:
            yield _too_little(f"broker {broker}", needed, room[broker])


def _too_little(subject: str, needed: int, free: int) -> Finding:
    return Finding(
        Severity.ERROR,
        "disk",
        subject,
        f"{needed} bytes would come, {max(free, 0)} may be used",
        "Free disk, or move less at a time.",
    )


def inflow_findings(
    plan: Plan,
    request: ReassignmentRequest,
    snapshot: Snapshot,
    now: Reading,
    rate_bytes_per_s: int,
) -> Iterator[Finding]:
    """A copy that its partition outgrows never ends: the rate must exceed the inflow.

    Inflow is how much each leader's log has grown between the snapshot and now. Per destination
    the busiest partitions that may be in flight at once (``max_moves_per_broker``) are added up.
    """
    inflow = _inflow(plan, snapshot, now)
    by_broker: dict[BrokerId, list[float]] = {}
    for move in plan.moves:
        for broker in move.adding:
            by_broker.setdefault(broker, []).append(inflow.get(move.partition, 0.0))
    for broker, rates in sorted(by_broker.items()):
        together = sum(heapq.nlargest(request.max_moves_per_broker, rates))
        if together >= rate_bytes_per_s:
            yield Finding(
                Severity.ERROR,
                "inflow",
                f"broker {broker}",
                f"the partitions it is to receive at once grow by {together:.0f} bytes per "
                f"second, the throttle allows {rate_bytes_per_s}: the copies would never end",
                "Raise the throttle or lower max_moves_per_broker.",
            )


def _inflow(plan: Plan, snapshot: Snapshot, now: Reading) -> Mapping[TopicPartition, float]:
    """Bytes per second that each partition of the plan grew by since the snapshot."""
    span_s = (now.taken_at - snapshot.taken_at).total_seconds()
    if span_s < _MINIMUM_SPAN_S:
        return {}
    leaders = snapshot.replicas.filter(pc.field("is_leader"))
    before = {
        (TopicPartition(row["topic"], row["partition"]), row["broker"]): row["size_bytes"]
        for row in leaders.select(["topic", "partition", "broker", "size_bytes"]).to_pylist()
        if TopicPartition(row["topic"], row["partition"]) in plan.by_partition
    }
    grown: dict[TopicPartition, float] = {}
    for log_dir in now.log_dirs.value:
        for partition, replica in log_dir.replicas.items():
            size = before.get((partition, log_dir.broker))
            if size is not None and not replica.is_future:
                grown[partition] = max(replica.size_bytes - size, 0) / span_s
    return grown
