"""What each broker has copied between two polls, from the sizes of the replicas in flight. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Set
from datetime import datetime
from typing import NamedTuple

from rehome.domain.kafka import BrokerId, ReplicaId
from rehome.domain.plan.move import Move
from rehome.domain.run.flows import BrokerFlow, FlowSample, Strain, complete_samples
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.text import bytes_text
from rehome.execution.admission.fair_share import Copy, grant, source_of
from rehome.execution.admission.slots import Direction, Slot, slots_of
from rehome.execution.estimate.rate_regression import Trend
from rehome.execution.observation.log_dir_copies import wanted_log_dirs
from rehome.execution.observation.move_status import relocating


class Copied(NamedTuple):
    """A copy at a poll, and the replica that it is made from (None = unknown), in bytes."""

    size_bytes: int
    source_bytes: int | None = None


NOTHING = Copied(0)


class _CopyProgress(NamedTuple):
    """What became of a copy between two polls.

    :param slots: what it took; only its destination's where the partition has no leader.
    :param copy: with the bytes that it lacked at the first poll; None where it could not go on.
    :param copied: bytes since then; ``grown``: what its source has grown by.
    """

    slots: tuple[Slot, ...]
    copy: Copy | None
    copied: int
    grown: int


def flow_sample(
    moves: Collection[Move],
    observation: Observation,
    before: Mapping[ReplicaId, Copied],
    since: datetime | None,
    strain: Strain | None = None,
    trend: Trend | None = None,
    silent: frozenset[BrokerId] = frozenset(),
) -> FlowSample | None:
    """What these moves, in flight at either poll, have copied since the one before.

    Brokers that a copy links to one which did not answer at either poll are left out: it
    knows what all of their copies did.

    :param before: each copy at the poll before; what is not in it had not begun.
    :param since: when that was; None = never.
    :param trend: what brokers were found to deliver until then; None = not needed for what
        they were allowed to.
    :param silent: who did not answer at the poll before.
    :returns: None at the first poll.
    """
    if since is None or observation.taken_at <= since:
        return None
    spans = [span for move in moves for span in _spans(move, observation, before)]
    copied: Counter[Slot] = Counter()
    grown: Counter[Slot] = Counter()
    left: Counter[Slot] = Counter()
    copies: Counter[Slot] = Counter()
    for span in spans:
        for slot in span.slots:
            copied[slot] += span.copied
            grown[slot] += span.grown
    for move in moves:
        for slot, size in slots_of(move, observation).items():
            left[slot] += size
            copies[slot] += size > 0
    seconds = (observation.taken_at - since).total_seconds()
    allowed = {} if trend is None else _bytes_allowed(spans, seconds, trend)
    unknown = _linked_to(silent | observation.missing.keys(), moves, observation)
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
        if (copied[slot] or left[slot]) and slot not in unknown
    )
    return FlowSample(
        since, observation.taken_at, tuple(flows), strain, tuple(sorted(observation.missing))
    )


def _linked_to(
    silent: Set[BrokerId], moves: Collection[Move], observation: Observation
) -> set[Slot]:
    """Slots that a copy takes together with one of a broker that did not answer."""
    if not silent:
        return set()
    taken = [slots_of(move, observation).keys() for move in moves]
    linked = (slots for slots in taken if any(slot.broker in silent for slot in slots))
    return {slot for slots in linked for slot in slots}


def _bytes_allowed(
    spans: Collection[_CopyProgress], seconds: float, trend: Trend
) -> dict[Slot, int]:
    """What the whole throttle would have let through each broker, by ``BrokerFlow``.

    Shares follow from what brokers deliver. Who delivers all that its copies' other ends leave
    has shown nothing but what is known of it: so much counts as allowed.
    """
    begun = [span.copy for span in spans if span.copy is not None and span.copy.left_bytes > 0]
    passed = grant(begun, seconds, trend.bytes_per_s)
    return {slot: round(size / trend.part_of(slot)) for slot, size in passed.items()}


def _spans(
    move: Move, observation: Observation, before: Mapping[ReplicaId, Copied]
) -> Iterator[_CopyProgress]:
    leader = source_of(move, observation)
    state = observation.partitions.get(move.partition)
    source = None if leader is None else observation.sizes.get(ReplicaId(*move.partition, leader))
    for broker in move.adding:
        replica = ReplicaId(*move.partition, broker)
        size = observation.sizes.get(replica)
        if size is None:  # not hosted yet, or whole and not measured any more
            size = move.size_bytes if state is not None and broker in state.isr else 0
        read_from = None if leader == broker else leader
        yield _span(replica, read_from, (size, source, move.size_bytes), before, observation)
    target_dirs = wanted_log_dirs(move) if move.target_log_dirs else {}
    for broker in relocating(move):
        replica = ReplicaId(*move.partition, broker)
        whole, future = observation.sizes.get(replica), observation.future_sizes.get(replica)
        if (
            future is None
            and replica in before
            and observation.log_dirs.get(replica) == target_dirs.get(replica)
        ):
            future = whole  # it has taken the old one's place
        if future is not None:
            yield _span(replica, broker, (future, whole, move.size_bytes), before, observation)


def _span(
    replica: ReplicaId,
    read_from: BrokerId | None,
    sizes: tuple[int, int | None, int],
    before: Mapping[ReplicaId, Copied],
    observation: Observation,
) -> _CopyProgress:
    """Of a copy from the broker that it is read from.

    :param sizes: of the copy, of what it is made from (None = unknown), and as planned.
    """
    size, source, planned = sizes
    was = before.get(replica, NOTHING)
    whole = next(size for size in (was.source_bytes, source, planned) if size is not None)
    grown = 0 if source is None or was.source_bytes is None else max(0, source - was.source_bytes)
    if read_from is None:
        slots: tuple[Slot, ...] = (Slot(Direction.IN, replica.broker),)
        return _CopyProgress(slots, None, max(0, size - was.size_bytes), grown)
    copy = Copy(replica, read_from, max(0, whole - was.size_bytes))
    if size < was.size_bytes:  # retention has cut it, or it has begun anew: that is not known
        return _CopyProgress(copy.slots, None, 0, 0)
    alive = observation.live_brokers.issuperset((replica.broker, read_from))
    return _CopyProgress(copy.slots, copy if alive else None, size - was.size_bytes, grown)


def throttle_text(view: LedgerView, flows: FlowSample | None) -> str:
    """What the rate set is and what they deliver, in one line; "" without a throttle."""
    if not view.rates:
        return ""
    last = view.rates[-1]
    recent = complete_samples([*view.flows, *([flows] if flows else [])])[-6:]
    seconds = sum(sample.seconds for sample in recent)
    best = max((sum(copied) for copied in _by_broker(recent).values()), default=0)
    busiest = f"{bytes_text(best / seconds)}/s" if seconds > 0 else "unknown yet"
    least = (
        ""
        if last.target_bytes_per_s == last.limit_bytes_per_s
        else (f" of {bytes_text(last.limit_bytes_per_s)}/s asked for")
    )
    return (
        f"Throttle: {bytes_text(last.target_bytes_per_s)}/s{least} wanted, the rate set is "
        f"{bytes_text(last.rate_bytes_per_s)}/s ({last.reason}), the busiest delivers {busiest}"
    )


def _by_broker(samples: Collection[FlowSample]) -> dict[tuple[str, BrokerId], list[int]]:
    copied: dict[tuple[str, BrokerId], list[int]] = {}
    for sample in samples:
        for flow in sample.flows:
            copied.setdefault((flow.direction, flow.broker), []).append(flow.copied_bytes)
    return copied
