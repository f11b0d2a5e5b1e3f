"""Copies and time: what has been written since the snapshot, sizes, and the end of the window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import pyarrow.compute as pc

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.kafka import ReplicaId, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import OnWindowEnd, ReassignmentRequest
from rehome.domain.run.pace import Pace
from rehome.domain.time_range import TimeRange
from rehome.execution.admission.slots import WHOLE_SLOT, Direction, Slot, part_of_slot
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding

_MINIMUM_SPAN_S = 1.0
_GREW_FRACTION = 0.2
_GREW_BYTES = 1_000_000


def inflow_findings(
    plan: Plan, inflow: Mapping[TopicPartition, float], now: ClusterState, pace: Pace
) -> Iterator[TypedFinding]:
    """A copy that its partition outgrows never ends: the throttle must exceed the inflow.

    Inflow is how fast each leader's log has grown between the snapshot and now. The rule is
    careful: per broker and direction, the busiest partitions that may be in flight at once
    (as many as share the slots, see ``slots.part_of_slot``) together must stay below what the
    throttle delivers. On the leader's side brokers count what in-sync followers fetch as well.
    """
    flows: dict[Slot, list[_Flow]] = {}
    for move in plan.moves:
        size, rate, leader = now.size_bytes(move), inflow.get(move.partition, 0.0), now.leader(move)
        copies = len(move.adding)
        for broker in move.adding:
            flows.setdefault(Slot(Direction.IN, broker), []).append(_Flow.of(size, rate, pace))
        if leader is not None and copies:
            flow = _Flow.of(size * copies, rate * (copies + now.followers(move)), pace)
            flows.setdefault(Slot(Direction.OUT, leader), []).append(flow)
        for broker in move.relocating:
            flow = _Flow.of(now.replica_bytes(move, broker), rate, pace)
            flows.setdefault(Slot(Direction.ACROSS, broker), []).append(flow)
    for slot in sorted(flows, key=lambda slot: (slot.direction.value, slot.broker)):
        together = _busiest_together(flows[slot], pace.max_moves_per_broker)
        delivered = pace.own.get((slot.direction.value, slot.broker), pace.bytes_per_s)
        if together <= delivered / 2:
            continue
        yield TypedFinding(
            FoundKind.INFLOW_SLOWS if together < delivered else FoundKind.INFLOW_OUTPACES,
            f"broker {slot.broker}",
            direction=slot.direction,
            rate_bytes_per_s=together,
            delivered=delivered,
        )


def window_findings(
    plan: Plan,
    request: ReassignmentRequest,
    now: ClusterState,
    pace: Pace,
    predicted: TimeRange | None,
) -> Iterator[TypedFinding]:
    """A plan that may take longer than its window has left. A copy that does is not started in it:
    in a window of that length, never.

    :param predicted: time of the plan; None = it would never end.
    """
    if request.window_end is None:
        return
    left_s = (request.window_end - now.taken_at).total_seconds()
    if predicted is not None and predicted.most_s > left_s:
        yield TypedFinding(FoundKind.PAST_WINDOW, "plan", takes=predicted, left_s=left_s)
    if request.on_window_end is not OnWindowEnd.FINISH:
        return
    for move in plan.moves:
        least_s = now.size_bytes(move) * len(move.adding) / pace.bytes_per_s
        if least_s > left_s:
            about = FoundKind.FITS_NO_WINDOW, str(move.partition)
            yield TypedFinding(*about, least_s=least_s, left_s=left_s)


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


def size_findings(plan: Plan, now: ClusterState) -> Iterator[TypedFinding]:
    """Partitions that have grown so much that the plan's numbers no longer hold."""
    for move in plan.moves:
        size = now.size_bytes(move)
        grown = size - move.size_bytes
        if move.adding and grown > max(_GREW_BYTES, _GREW_FRACTION * move.size_bytes):
            about = FoundKind.GROWN, str(move.partition)
            yield TypedFinding(*about, before_bytes=move.size_bytes, size_bytes=size)
