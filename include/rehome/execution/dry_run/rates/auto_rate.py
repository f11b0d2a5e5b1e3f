"""The rate of ``throttle="auto"``: what the brokers can spare, and what the window needs. Pure."""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.kafka import BrokerId, ReplicaId, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.execution.admission.slots import Direction, Slot
from rehome.execution.dry_run.cluster_state import ClusterState

USABLE = 0.8
"""Part of a broker's capacity that traffic and copies together may take."""
WITHOUT_WINDOW = 0.5
"""Part of what is spare that is used without a deadline: the rest is for peaks of the traffic."""
WINDOW_MARGIN = 1.2
"""How much faster than the window needs: partitions grow, and traffic does."""
LEAST_PART_OF_SPARE = 0.25
"""Part of what is spare below which a lower rate does not help clients."""
_MINIMUM_SPAN_S = 1.0


class RateWhy(enum.StrEnum):
    """Why an automatic rate is what it is."""

    NOTHING_COPIED = "nothing_copied"
    TRAFFIC_NOT_KNOWN = "traffic_not_known"
    """So the setting holds."""
    NO_DEADLINE = "no_deadline"
    """It is a part of what is spare."""
    WINDOW = "window"
    """The window has to hold all copies."""


@dataclass(frozen=True, slots=True)
class RateCause:
    """Why, with its values in bytes per second.

    :param tightest: the broker and direction that can spare least; ``spare_bytes_per_s``: how much,
        of ``capacity_bytes_per_s``.
    :param needed_bytes_per_s: by the window.
    """

    why: RateWhy
    tightest: Slot | None = None
    spare_bytes_per_s: float = 0.0
    capacity_bytes_per_s: float = 0.0
    needed_bytes_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class AutoRate:
    """A rate in bytes per second, per broker and direction (0 = nothing is spare), and why."""

    rate_bytes_per_s: int
    cause: RateCause


def traffic_bytes_per_s(snapshot: Snapshot, now: ClusterState) -> dict[Slot, float] | None:
    """What each broker takes in and sends for producers and in-sync followers.

    By how much its replicas have grown since the snapshot. What consumers read is not seen.

    :returns: None where snapshot and reading are too close in time.
    """
    span_s = (now.taken_at - snapshot.taken_at).total_seconds()
    if span_s < _MINIMUM_SPAN_S:
        return None
    sizes = {
        ReplicaId(*partition, log_dir.broker): replica.size_bytes
        for log_dir in now.log_dirs.value
        for partition, replica in log_dir.replicas.items()
        if not replica.is_future
    }
    traffic: defaultdict[Slot, float] = defaultdict(float)
    leaders: dict[TopicPartition, tuple[BrokerId, float]] = {}
    followers: Counter[TopicPartition] = Counter()
    columns = ["topic", "partition", "broker", "size_bytes", "is_leader"]
    for row in snapshot.replicas.select(columns).to_pylist():
        replica = ReplicaId(row["topic"], row["partition"], row["broker"])
        size, before = sizes.get(replica), row["size_bytes"]
        if size is None or before is None:
            continue
        rate = max(0, size - before) / span_s
        traffic[Slot(Direction.IN, replica.broker)] += rate
        if row["is_leader"]:
            leaders[replica.topic_partition] = (replica.broker, rate)
        else:
            followers[replica.topic_partition] += 1
    for partition, (broker, rate) in leaders.items():
        traffic[Slot(Direction.OUT, broker)] += rate * followers[partition]
    return dict(traffic)


def auto_rate(
    plan: Plan,
    now: ClusterState,
    traffic: Mapping[Slot, float],
    capacity_bytes_per_s: float,
    *,
    window_left_s: float | None,
    at_least: int | None = None,
    at_most: int | None = None,
) -> AutoRate:
    """The rate for a plan, by the broker and direction that can spare least of it.

    :param capacity_bytes_per_s: what a broker can take in, and can send.
    :param window_left_s: time in which all copies must end; None = no deadline.
    :param at_least, at_most: the user's bounds.
    """
    loads = _loads(plan, now)
    if not loads:
        usable = at_most or round(capacity_bytes_per_s * USABLE)
        return AutoRate(usable, RateCause(RateWhy.NOTHING_COPIED))
    spare = {slot: USABLE * capacity_bytes_per_s - traffic.get(slot, 0.0) for slot in loads}
    tightest = min(spare, key=lambda slot: (spare[slot], slot.direction.value, slot.broker))
    least = max(0.0, spare[tightest])
    rate, needed = WITHOUT_WINDOW * least, 0.0
    if window_left_s is not None:
        needed = WINDOW_MARGIN * max(loads.values()) / max(window_left_s, 1.0)
        rate = min(least, max(needed, LEAST_PART_OF_SPARE * least))
    bounded = min(max(rate, at_least or 0), at_most or inf) if least else 0.0
    why = RateWhy.NO_DEADLINE if window_left_s is None else RateWhy.WINDOW
    cause = RateCause(why, tightest, least, capacity_bytes_per_s, needed)
    return AutoRate(round(bounded), cause)


def _loads(plan: Plan, now: ClusterState) -> Counter[Slot]:
    """Bytes that the plan copies, by broker and direction."""
    loads: Counter[Slot] = Counter()
    for move in plan.moves:
        size, leader = now.size_bytes(move), now.leader(move)
        for broker in move.adding:
            loads[Slot(Direction.IN, broker)] += size
        if leader is not None and move.adding:
            loads[Slot(Direction.OUT, leader)] += size * len(move.adding)
    return loads
