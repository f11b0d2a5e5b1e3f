"""Bytes of a plan: planned, grown, in place, received, left. Pure.

What is in place may fall, and what is to be copied in all may grow; both follow from figures that
are named beside them. What was received never falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rehome.account.evidence import PlanEvidence
from rehome.account.known import Fact, Known, NotKnown, Source, Unknown
from rehome.domain.run.ledger_view import MoveSums
from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.states import MoveState
from rehome.ledger.base.records import PlanRecord

_NOT_RECORDED = Unknown(NotKnown.NOT_RECORDED)


@dataclass(frozen=True, slots=True)
class Copying:
    """How far the copies of a plan are. ``in_place`` is what the new replicas hold.

    :param grown: by how much those moves together are larger than planned that are larger;
        ``shrunk``: that are smaller. Of what waits, the planned size counts.
    :param total: what is in place in the end: planned, less ``PlanBytes.dropped``, with what has
        grown and without what has shrunk.
    """

    in_place: int
    grown: int
    shrunk: int
    total: int

    @property
    def left(self) -> int:
        """What is still to be copied."""
        return max(0, self.total - self.in_place)

    @property
    def fraction(self) -> float:
        """Part of the total that is in place; of nothing, everything is."""
        return min(1.0, self.in_place / self.total) if self.total else 1.0


@dataclass(frozen=True, slots=True)
class PlanBytes:
    """Bytes of a plan, over all its parts, pauses between them or not.

    :param planned: what was to be copied when the plan was made.
    :param dropped: of these, what is not to be copied any more: its moves were cancelled, failed,
        were taken over by another client, or are gone.
    :param received: traffic since the plan's start, by what polls have seen.
    :param taken_back: what cancelled copies had brought, as last read: it counts in ``received``,
        and is not in place.
    :param by_moves: part of the planned bytes whose moves are done; of the moves, where there are
        no bytes to copy: what there is to show where nothing else is known.
    """

    planned: int
    dropped: int
    copying: Fact[Copying]
    received: Fact[int]
    taken_back: Fact[int]
    by_moves: float

    @property
    def fraction(self) -> float:
        """Part of the bytes that is in place; by the moves that are done where these are not known,
        or there are none to copy.
        """
        if isinstance(self.copying, Known) and self.copying.value.total:
            return self.copying.value.fraction
        return self.by_moves

    @property
    def has_bytes(self) -> bool:
        """Whether there is anything to copy, or that is not known."""
        return not isinstance(self.copying, Known) or self.copying.value.total > 0


def bytes_of(evidence: PlanEvidence) -> PlanBytes:
    """By the moves that have ended, and while something is in flight by the newest poll."""
    record, sums, sample = evidence.record, evidence.sums, evidence.sample
    dropped = sum(each.bytes_to_copy for state, each in sums.items() if _is_dropped(state))
    moves = sum(each.moves for state, each in sums.items() if not _is_dropped(state))
    done = sums.get(MoveState.DONE, MoveSums())
    to_copy = record.bytes_total - dropped
    at = record.ended_at or record.last_progress_at or record.created_at
    copying: Fact[Copying]
    if done.not_recorded:
        copying = _NOT_RECORDED
    elif record.state.active and sums.get(MoveState.ADMITTED, MoveSums()).moves:
        copying = _at_poll(sample, to_copy)
    else:
        total = to_copy + done.grown - done.shrunk
        settled = Copying(done.in_place, done.grown, done.shrunk, total)
        copying = Known(settled, at, Source.LEDGER)
    return PlanBytes(
        record.bytes_total,
        dropped,
        copying,
        _received_bytes(record, sample),
        _fact_of(record.bytes_taken_back, at, Source.LEDGER),
        _part(done.bytes_to_copy, to_copy) if to_copy else _part(done.moves, moves),
    )


def bytes_at_poll(planned: int, taken_back: int | None, sample: ProgressSample) -> PlanBytes:
    """What a poll has found, before it is read from the ledger: the same figures.

    :param planned: of the whole plan.
    :param taken_back: by the plan's record.
    """
    grown, shrunk = sample.grown_bytes or 0, sample.shrunk_bytes or 0
    to_copy = sample.bytes_total - grown + shrunk
    return PlanBytes(
        planned,
        planned - to_copy,
        _at_poll(sample, to_copy),
        _fact_of(sample.received_bytes, sample.sampled_at, Source.POLL),
        _fact_of(taken_back, sample.sampled_at, Source.LEDGER),
        sample.fraction,
    )


def byte_facts(plan_bytes: PlanBytes) -> dict[str, int | None]:
    """For programs; None = not known."""
    names = ("grown", "shrunk", "in_place", "total", "left")
    copying = plan_bytes.copying.value if isinstance(plan_bytes.copying, Known) else None
    return {
        "planned": plan_bytes.planned,
        "dropped": plan_bytes.dropped,
        **{name: getattr(copying, name, None) for name in names},
        "received": _value(plan_bytes.received),
        "taken_back": _value(plan_bytes.taken_back),
    }


def _part(done: int, total: int) -> float:
    return done / total if total else 1.0


def _value(fact: Fact[int]) -> int | None:
    return fact.value if isinstance(fact, Known) else None


def _is_dropped(state: MoveState) -> bool:
    return state.ended and state is not MoveState.DONE


def _at_poll(sample: ProgressSample | None, to_copy: int) -> Fact[Copying]:
    """While something is in flight.

    :param to_copy: as planned, without what was dropped.
    """
    if sample is None:
        return Unknown(NotKnown.NOT_POLLED)
    grown, shrunk = sample.grown_bytes, sample.shrunk_bytes
    if grown is None or shrunk is None:
        return _NOT_RECORDED
    copying = Copying(sample.bytes_done, grown, shrunk, to_copy + grown - shrunk)
    return Known(copying, sample.sampled_at, Source.POLL)


def _received_bytes(record: PlanRecord, sample: ProgressSample | None) -> Fact[int]:
    if sample is not None:
        return _fact_of(sample.received_bytes, sample.sampled_at, Source.POLL)
    if record.started_at is None:
        return Known(0, record.created_at, Source.LEDGER)
    return Unknown(NotKnown.NOT_POLLED)


def _fact_of(value: int | None, at: datetime, source: Source) -> Fact[int]:
    return _NOT_RECORDED if value is None else Known(value, at, source)
