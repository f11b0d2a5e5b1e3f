"""What each broker has copied between two looks, from the sizes of the replicas in flight. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from include.cluster.model import BrokerId, ReplicaId
from include.execution.model import LedgerView, Observation
from include.execution.outcome import relocating
from include.execution.playout import Copy, copies_of, granted
from include.execution.rates import BrokerFlow, FlowSample, Strain
from include.execution.slots import Direction, Slot, slots_of
from include.execution.trend import Trend
from include.planning.explanation import bytes_text
from include.planning.plan import Move


class Copied(NamedTuple):
    """A copy at a look, and the replica that it is made from (None = unknown), in bytes."""

    size_bytes: int
    source_bytes: int | None = None


NOTHING = Copied(0)


def flow_sample(
    moves: Collection[Move],
    seen: Observation,
    before: Mapping[ReplicaId, Copied],
    since: datetime | None,
    strain: Strain | None = None,
    known: Trend | None = None,
) -> FlowSample | None:
    """What these moves, in flight at either look, have copied since the one before.

    :param before: each copy at the look before; what is not in it had not begun.
    :param since: when that was; None = never.
    :param known: what brokers were found to deliver until then; None = nobody asks for what
        they were allowed to.
    :returns: None where it cannot be told: at the first look, or when a broker did not answer.
    """
    if since is None or seen.missing or seen.taken_at <= since:
        return None
    copied: Counter[Slot] = Counter()
    grown: Counter[Slot] = Counter()
    left: Counter[Slot] = Counter()
    copies: Counter[Slot] = Counter()
    seconds = (seen.taken_at - since).total_seconds()
    allowed = {} if known is None else _allowed(moves, seen, before, seconds, known)
    for move in moves:
        for slot, size, source_grown in _copied(move, seen, before):
            copied[slot] += size
            grown[slot] += source_grown
        for slot, size in slots_of(move, seen).items():
            left[slot] += size
            copies[slot] += size > 0
    flows = (
        BrokerFlow(
            slot.direction.value,
            slot.broker,
            copied[slot],
            left[slot],
            copies[slot],
            grown[slot],
            allowed.get(slot, 0),
        )
        for slot in sorted(copied.keys() | left.keys(), key=lambda s: (s.direction.value, s.broker))
        if copied[slot] or left[slot]
    )
    return FlowSample(since, seen.taken_at, tuple(flows), strain)


def _allowed(
    moves: Collection[Move],
    seen: Observation,
    before: Mapping[ReplicaId, Copied],
    seconds: float,
    known: Trend,
) -> dict[Slot, int]:
    """What the whole throttle would have let through each broker, by ``BrokerFlow``.

    Shares follow from what brokers deliver. Who delivers all that its copies' other ends leave
    has shown nothing but what is known of it: so much counts as allowed.
    """
    begun = [
        copy._replace(left_bytes=_left_before(copy, move, seen, before))
        for move in moves
        for copy in copies_of(move, seen)
    ]
    passed = granted([copy for copy in begun if copy.left_bytes > 0], seconds, known.bytes_per_s)
    return {slot: round(size / known.part_of(slot)) for slot, size in passed.items()}


def _left_before(
    copy: Copy, move: Move, seen: Observation, before: Mapping[ReplicaId, Copied]
) -> int:
    source = ReplicaId(*move.partition, copy.read_from)
    was = before.get(copy.replica, NOTHING)
    whole = was.source_bytes
    return (seen.sizes.get(source, move.size_bytes) if whole is None else whole) - was.size_bytes


def _copied(
    move: Move, seen: Observation, before: Mapping[ReplicaId, Copied]
) -> Iterator[tuple[Slot, int, int]]:
    state = seen.partitions.get(move.partition)
    leader = None if state is None else state.leader
    source = None if leader is None else seen.sizes.get(ReplicaId(*move.partition, leader))
    for broker in move.adding:
        replica = ReplicaId(*move.partition, broker)
        size = seen.sizes.get(replica)
        if size is None:  # not hosted yet, or whole and not measured any more
            size = move.size_bytes if state is not None and broker in state.isr else 0
        was = before.get(replica, NOTHING)
        more = max(0, size - was.size_bytes)
        grown = 0
        if source is not None and was.source_bytes is not None:
            grown = max(0, source - was.source_bytes)
        yield Slot(Direction.IN, broker), more, grown
        if leader is not None:
            yield Slot(Direction.OUT, leader), more, grown
    for broker in relocating(move):
        replica = ReplicaId(*move.partition, broker)
        if replica in seen.future_sizes:
            more = seen.future_sizes[replica] - before.get(replica, NOTHING).size_bytes
            yield Slot(Direction.ACROSS, broker), max(0, more), 0


def throttle_text(view: LedgerView, flows: FlowSample | None) -> str:
    """What brokers are told and what they deliver, in one line; "" without a throttle."""
    if not view.rates:
        return ""
    last = view.rates[-1]
    recent = [*view.flows[-5:], *([flows] if flows else [])]
    seconds = sum(sample.seconds for sample in recent)
    best = max((sum(copied) for copied in _by_broker(recent).values()), default=0)
    told = f"{bytes_text(best / seconds)}/s" if seconds > 0 else "unknown yet"
    least = (
        ""
        if last.target_bytes_per_s == last.limit_bytes_per_s
        else (f" of {bytes_text(last.limit_bytes_per_s)}/s asked for")
    )
    return (
        f"Throttle: {bytes_text(last.target_bytes_per_s)}/s{least} wanted, brokers are told "
        f"{bytes_text(last.rate_bytes_per_s)}/s ({last.reason}), the busiest delivers {told}"
    )


def _by_broker(samples: Collection[FlowSample]) -> dict[tuple[str, BrokerId], list[int]]:
    copied: dict[tuple[str, BrokerId], list[int]] = {}
    for sample in samples:
        for flow in sample.flows:
            copied.setdefault((flow.direction, flow.broker), []).append(flow.copied_bytes)
    return copied
