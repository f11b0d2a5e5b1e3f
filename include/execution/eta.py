"""How long a plan still takes: what its busiest broker lacks, at the pace measured there.

Not all bytes over the rate of all: that rate falls when brokers with little to do have ended,
while the busiest one, which decides when the plan ends, goes on as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from include.execution.backlog import Backlog
from include.execution.model import LedgerView, Observation, Policy, ProgressSample
from include.execution.slots import Slot, slots_of
from include.execution.trend import WINDOW, trend
from include.planning.pace import Pace
from include.planning.plan import Move


@dataclass(frozen=True, slots=True)
class Throttle:
    """What brokers are told now, per broker and direction, and the part that they deliver.

    :param expected_part: before it has been measured.
    """

    bytes_per_s: int
    expected_part: float

    @classmethod
    def of(cls, view: LedgerView, policy: Policy) -> Throttle:
        """The nominal rate that is set, of which most of the governor's target is expected."""
        told = view.rate_bytes_per_s or policy.rate_bytes_per_s
        target = view.target_bytes_per_s or told
        return cls(told, policy.throttle_efficiency * target / told)


@dataclass(frozen=True, slots=True)
class Remaining:
    """What is left of a plan, by what limits it.

    :param busiest_bytes: bytes left at the broker and direction where most are left, every copy
        with no less than what its smallest part of a slot stands for.
    :param waiting: moves that have not been admitted.
    :param in_flight: moves that have been, and have not ended.
    :param copying: those of them that are not complete yet.
    """

    busiest_bytes: int
    waiting: int
    in_flight: int
    copying: int

    @classmethod
    def of(cls, backlog: Backlog, seen: Observation, pace: Pace) -> Remaining:
        """From the open moves and the sizes of the copies in flight."""
        least = pace.least_bytes
        left: Counter[Slot] = Counter(backlog.pending_bytes)
        for slot, waiting in backlog.by_slot.items():
            if slot is not None:
                left[slot] += waiting.lacking(least)
        copying = 0
        for move, _ in backlog.admitted.values():
            if _has_arrived(move, seen):
                continue
            copying += 1
            for slot, left_bytes in slots_of(move, seen).items():
                left[slot] += max(left_bytes, least)
        return cls(
            max(left.values(), default=0), backlog.pending_count, len(backlog.admitted), copying
        )


def _has_arrived(move: Move, seen: Observation) -> bool:
    """Whether its copies are complete, and nobody has settled it yet."""
    if move.partition in seen.ongoing or move.relocating:
        return False
    shown = seen.partitions.get(move.partition)
    return shown is not None and shown.replicas == move.target


def with_eta(
    sample: ProgressSample,
    history: Sequence[ProgressSample],
    left: Remaining,
    policy: Policy,
    throttle: Throttle,
) -> ProgressSample:
    """The sample with the time left, and with what later ones measure the pace by.

    :param history: earlier samples, oldest first.
    """
    rate = throttle.bytes_per_s
    sample = replace(sample, busiest_bytes=left.busiest_bytes, throttle_bytes_per_s=rate)
    return replace(sample, eta_s=_eta_s(left, [*history, sample], throttle, policy))


def _eta_s(
    left: Remaining, samples: Sequence[ProgressSample], throttle: Throttle, policy: Policy
) -> float | None:
    """Until the last copy is complete; None while nothing comes through."""
    if not left.waiting and not left.copying:
        return 0.0
    line = trend(samples, throttle.expected_part)
    if line.part <= 0:
        return None
    started_s = left.waiting * policy.reaction_s / policy.max_partitions_in_flight
    copied_s = (left.busiest_bytes + line.ahead_bytes) / (line.part * throttle.bytes_per_s)
    return max(copied_s, started_s, 0.0)


@dataclass(frozen=True, slots=True)
class EtaError:
    """How far off the ETA was while one tenth of the bytes was copied.

    :param tenth: 0 = the first one.
    :param worst: the foretold end less the true one, over the whole time from the start to the
        end, where that was largest: 0.1 = ten per cent of the whole time too late. The end is that
        of the last copy.
    """

    tenth: int
    worst: float


def eta_errors(samples: Sequence[ProgressSample]) -> tuple[EtaError, ...]:
    """The error of the recorded ETAs by tenths of the bytes; tenths without a sample are left out.

    Of a plan that has paused, only what came after counts: nobody foretells a pause.

    :param samples: all of a plan that is done, oldest first.
    """
    stretch = _last_stretch(samples)
    if len(stretch) < 2:
        return ()
    end, start = _copied_at(stretch), stretch[0].sampled_at
    worst: dict[int, float] = {}
    for sample in stretch:
        if sample.eta_s is None or not sample.bytes_total or sample.sampled_at >= end:
            continue
        tenth = min(9, 10 * sample.bytes_done // sample.bytes_total)
        foretold = sample.sampled_at + timedelta(seconds=sample.eta_s)
        error = (foretold - end) / (end - start)
        worst[tenth] = max(worst.get(tenth, 0.0), error, key=abs)
    return tuple(EtaError(tenth, error) for tenth, error in sorted(worst.items()))


def _copied_at(samples: Sequence[ProgressSample]) -> datetime:
    """When the last copy was complete: halfway between the looks before and after that."""
    copying = [place for place, sample in enumerate(samples) if sample.busiest_bytes != 0]
    before = min(copying[-1] if copying else 0, len(samples) - 2)
    earlier, later = samples[before].sampled_at, samples[before + 1].sampled_at
    return earlier + (later - earlier) / 2


def _last_stretch(samples: Sequence[ProgressSample]) -> Sequence[ProgressSample]:
    starts = [
        place
        for place, (earlier, later) in enumerate(pairwise(samples), start=1)
        if later.sampled_at - earlier.sampled_at > WINDOW
    ]
    return samples[starts[-1] :] if starts else samples
