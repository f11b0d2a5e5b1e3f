"""Copies and time: what has been written since the snapshot, sizes, and the end of the window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import pyarrow.compute as pc

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.broker_rates import RateSide
from rehome.domain.kafka import BrokerId, ReplicaId, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import OnWindowEnd, ReassignmentRequest
from rehome.domain.run.findings import Finding, Severity
from rehome.domain.run.pace import Pace
from rehome.domain.text import bytes_text, duration_text
from rehome.domain.time_range import TimeRange
from rehome.execution.admission.slots import WHOLE_SLOT, part_of_slot
from rehome.execution.dry_run.cluster_state import ClusterState

INFLOW_CHECK = "inflow"
_MINIMUM_SPAN_S = 1.0
_GREW_FRACTION = 0.2
_GREW_BYTES = 1_000_000
_DIRECTIONS = {
    "receive": RateSide.FOLLOWER.direction,
    "send": RateSide.LEADER.direction,
}


def inflow_findings(
    plan: Plan, inflow: Mapping[TopicPartition, float], now: ClusterState, pace: Pace
) -> Iterator[Finding]:
    """A copy that its partition outgrows never ends: the throttle must exceed the inflow.

    Inflow is how fast each leader's log has grown between the snapshot and now. The rule is
    careful: per broker and direction, the busiest partitions that may be in flight at once
    (as many as share the slots, see ``slots.part_of_slot``) together must stay below what the
    throttle delivers. On the leader's side brokers count what in-sync followers fetch as well.
    """
    flows: dict[tuple[str, BrokerId], list[_Flow]] = {}
    for move in plan.moves:
        size, rate, leader = now.size_bytes(move), inflow.get(move.partition, 0.0), now.leader(move)
        copies = len(move.adding)
        for broker in move.adding:
            flows.setdefault(("receive", broker), []).append(_Flow.of(size, rate, pace))
        if leader is not None and copies:
            flow = _Flow.of(size * copies, rate * (copies + now.followers(move)), pace)
            flows.setdefault(("send", leader), []).append(flow)
        for broker in move.relocating:
            flow = _Flow.of(now.replica_bytes(move, broker), rate, pace)
            flows.setdefault(("copy between its log dirs", broker), []).append(flow)
    for (direction, broker), found in sorted(flows.items()):
        together = _busiest_together(found, pace.max_moves_per_broker)
        delivered = pace.own.get((_DIRECTIONS.get(direction, ""), broker), pace.bytes_per_s)
        if together <= delivered / 2:
            continue
        ends = together < delivered
        yield Finding(
            Severity.WARNING if ends else Severity.ERROR,
            INFLOW_CHECK,
            f"broker {broker}",
            f"the partitions it is to {direction} at once grow by {bytes_text(together)}/s, of "
            f"{bytes_text(delivered)}/s that the throttle delivers: "
            + ("more than half is lost on them" if ends else "the copies would never end"),
            "Raise the throttle or lower max_moves_per_broker.",
        )


def window_findings(
    plan: Plan,
    request: ReassignmentRequest,
    now: ClusterState,
    pace: Pace,
    predicted: TimeRange | None,
) -> Iterator[Finding]:
    """A plan that may take longer than its window has left. A copy that does is not started in it:
    in a window of that length, never.

    :param predicted: time of the plan; None = it would never end.
    """
    if request.window_end is None:
        return
    left_s = (request.window_end - now.taken_at).total_seconds()
    if predicted is not None and predicted.most_s > left_s:
        yield Finding(
            Severity.INFO,
            "window",
            "plan",
            "may take longer than the window has left: what does not fit goes on in the next one",
            detail=f"{predicted}, and the window has {duration_text(left_s)} left",
        )
    if request.on_window_end is not OnWindowEnd.FINISH:
        return
    for move in plan.moves:
        least_s = now.size_bytes(move) * len(move.adding) / pace.bytes_per_s
        if least_s <= left_s:
            continue
        yield Finding(
            Severity.WARNING,
            "window",
            str(move.partition),
            "takes longer to copy than the window has left, and is not started in it",
            "Raise the throttle, give the cluster a longer window, or run the plan without a "
            "window.",
            detail=f"at least {duration_text(least_s)}, and the window has "
            f"{duration_text(left_s)} left",
        )


class _Flow(NamedTuple):
    """What a partition in flight takes of a broker in one direction."""

    bytes_per_s: float
    part: int

    @classmethod
    def of(cls, size_bytes: int, bytes_per_s: float, pace: Pace) -> _Flow:
        return cls(bytes_per_s, part_of_slot(size_bytes, pace.slot_bytes))


def _busiest_together(flows: Iterable[_Flow], slots: int) -> float:
    """The most that partitions which may be in flight at once can grow by."""
    together, taken = 0.0, 0
    for flow in sorted(flows, key=lambda flow: -flow.bytes_per_s / flow.part):
        if taken >= slots * WHOLE_SLOT:
            break
        together += flow.bytes_per_s
        taken += flow.part
    return together


def growth_bytes_per_s(
    plan: Plan, snapshot: Snapshot, now: ClusterState
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


def size_findings(plan: Plan, now: ClusterState) -> Iterator[Finding]:
    """Partitions that have grown so much that the plan's numbers no longer hold."""
    for move in plan.moves:
        size = now.size_bytes(move)
        grown = size - move.size_bytes
        if move.adding and grown > max(_GREW_BYTES, _GREW_FRACTION * move.size_bytes):
            yield Finding(
                Severity.WARNING,
                "drift",
                str(move.partition),
                "has grown since the snapshot",
                "Its copy takes longer than predicted; trigger a new run for a plan with the "
                "new size.",
                detail=f"from {bytes_text(move.size_bytes)} to {bytes_text(size)}",
            )
