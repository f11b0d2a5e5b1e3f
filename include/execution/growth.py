"""What has been written since the snapshot: inflow against the throttle, sizes, the time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

import pyarrow.compute as pc

from include.cluster.model import BrokerId, ReplicaId, TopicPartition
from include.cluster.snapshot import Snapshot
from include.execution.findings import Finding, Severity
from include.execution.reading import Reading
from include.planning.explanation import bytes_text
from include.planning.plan import Plan

_MINIMUM_SPAN_S = 1.0
_GREW_FRACTION = 0.2
_GREW_BYTES = 1_000_000


def inflow_findings(
    plan: Plan,
    snapshot: Snapshot,
    now: Reading,
    *,
    rate_bytes_per_s: float,
    max_moves_per_broker: int,
) -> Iterator[Finding]:
    """A copy that its partition outgrows never ends: the throttle must exceed the inflow.

    Inflow is how fast each leader's log has grown between the snapshot and now. The rule is
    careful: per broker and direction, the busiest partitions that may be in flight at once
    (``max_moves_per_broker``) together must stay below what the throttle delivers.

    :param rate_bytes_per_s: what the throttle delivers per broker and direction.
    """
    inflow = inflow_bytes_per_s(plan, snapshot, now)
    flows: dict[tuple[str, BrokerId], list[float]] = {}
    for move in plan.moves:
        rate, leader = inflow.get(move.partition, 0.0), now.leader(move)
        for broker in move.adding:
            flows.setdefault(("receive", broker), []).append(rate)
        if leader is not None and move.adding:
            flows.setdefault(("send", leader), []).append(rate * len(move.adding))
    for (direction, broker), rates in sorted(flows.items()):
        together = sum(heapq.nlargest(max_moves_per_broker, rates))
        if together <= rate_bytes_per_s / 2:
            continue
        ends = together < rate_bytes_per_s
        yield Finding(
            Severity.WARNING if ends else Severity.ERROR,
            "inflow",
            f"broker {broker}",
            f"the partitions it is to {direction} at once grow by {bytes_text(together)}/s, of "
            f"{bytes_text(rate_bytes_per_s)}/s that the throttle delivers: "
            + ("more than half is lost on them" if ends else "the copies would never end"),
            "Raise the throttle or lower max_moves_per_broker.",
        )


def inflow_bytes_per_s(
    plan: Plan, snapshot: Snapshot, now: Reading
) -> Mapping[TopicPartition, float]:
    """Bytes per second that each partition has grown by since the snapshot.

    Empty when the snapshot is less than a second old. A partition whose leader has changed
    since, or whose log has become shorter, is not in it, or 0.
    """
    span_s = (now.taken_at - snapshot.taken_at).total_seconds()
    if span_s < _MINIMUM_SPAN_S:
        return {}
    grown: dict[TopicPartition, float] = {}
    leaders = snapshot.replicas.filter(pc.field("is_leader"))
    for row in leaders.select(["topic", "partition", "broker", "size_bytes"]).to_pylist():
        replica = ReplicaId(row["topic"], row["partition"], row["broker"])
        size = now.sizes.get(replica)  # holds the plan's partitions only
        if size is not None and row["size_bytes"] is not None:
            grown[replica.topic_partition] = max(size - row["size_bytes"], 0) / span_s
    return grown


def size_findings(plan: Plan, now: Reading) -> Iterator[Finding]:
    """Partitions that have grown so much that the plan's numbers no longer hold."""
    for move in plan.moves:
        size = now.size_bytes(move)
        grown = size - move.size_bytes
        if move.adding and grown > max(_GREW_BYTES, _GREW_FRACTION * move.size_bytes):
            yield Finding(
                Severity.WARNING,
                "drift",
                str(move.partition),
                f"has grown from {bytes_text(move.size_bytes)} to {bytes_text(size)} since the "
                "snapshot",
                "Its copy takes longer than predicted; trigger again for a plan of its new size.",
            )


def predicted_s(plan: Plan, now: Reading, rate_bytes_per_s: float) -> float:
    """Seconds the plan takes with today's sizes and leaders: the busiest broker's bytes.

    :param rate_bytes_per_s: what the throttle delivers per broker and direction.
    """
    load: dict[tuple[str, BrokerId | None], int] = {}
    for move in plan.moves:
        size, leader = now.size_bytes(move), now.leader(move)
        for broker in move.adding:
            load["in", broker] = load.get(("in", broker), 0) + size
            load["out", leader] = load.get(("out", leader), 0) + size
    return max(load.values(), default=0) / rate_bytes_per_s
