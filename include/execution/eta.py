"""How long a plan still takes: what its busiest broker lacks, at the pace measured there.

Not all bytes over the rate of all: that rate falls when brokers with little to do have ended,
while the busiest one, which decides when the plan ends, goes on as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise

from include.execution.backlog import Backlog
from include.execution.model import LedgerView, Observation, Policy, ProgressSample
from include.execution.slots import Slot, slots_of
from include.planning.pace import Pace
from include.planning.plan import Move

WINDOW = timedelta(seconds=120)
"""The pace is measured over this time: many of the brokers' own windows (11 samples of 1 s)."""
TRUSTED_AFTER_S = 30.0
"""What was measured for less than this is mixed with what was expected: a broker may deliver
nothing for 10 s, and then all of it at once."""


GOVERNED_PART = 0.95
"""The governor approaches its target from below."""


@dataclass(frozen=True, slots=True)
class Throttle:
    """What is asked of brokers now, per broker and direction, and the part that they deliver.

    :param expected_part: before it has been measured.
    """

    bytes_per_s: int
    expected_part: float

    @classmethod
    def of(cls, view: LedgerView, policy: Policy) -> Throttle:
        """The governor's target; without one, the rate that is set."""
        if view.rates:
            return cls(view.rates[-1].target_bytes_per_s, GOVERNED_PART)
        return cls(view.rate_bytes_per_s or policy.rate_bytes_per_s, policy.throttle_efficiency)


@dataclass(frozen=True, slots=True)
class Remaining:
    """What is left of a plan, by what limits it.

    :param busiest_bytes: bytes left at the broker and direction where most are left, every copy
        with no less than what its smallest part of a slot stands for.
    :param waiting: moves that have not been admitted.
    :param in_flight: moves that have been, and have not ended.
    """

    busiest_bytes: int
    waiting: int
    in_flight: int

    @classmethod
    def of(cls, backlog: Backlog, seen: Observation, pace: Pace) -> Remaining:
        """From the open moves and the sizes of the copies in flight."""
        least = pace.least_bytes
        left: Counter[Slot] = Counter(backlog.pending_bytes)
        for slot, waiting in backlog.by_slot.items():
            if slot is not None:
                left[slot] += waiting.lacking(least)
        for move, ends in backlog.admitted.values():
            if _has_arrived(move, seen):
                continue
            for slot, left_bytes in slots_of(move, seen, ends).items():
                left[slot] += max(left_bytes, least)
        return cls(max(left.values(), default=0), backlog.pending_count, len(backlog.admitted))


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
    part = delivered_part([*history, sample], throttle.expected_part)
    return replace(sample, eta_s=_eta_s(left, part * rate, policy))


def delivered_part(samples: Sequence[ProgressSample], expected: float) -> float:
    """What the busiest broker gets of the throttle, measured over the last two minutes.

    Each span between two samples counts at the throttle of its time, so that a change of the
    throttle changes the ETA at once. Spans in which nothing was in flight do not count.

    :param samples: oldest first; the newest one is now.
    :param expected: the part that stands in for what has not been measured for long enough.
    """
    now = samples[-1]
    asked = passed = covered_s = 0.0
    for earlier, later in pairwise(samples):
        if earlier.busiest_bytes is None or later.busiest_bytes is None:
            continue
        if not earlier.in_flight or now.sampled_at - earlier.sampled_at > WINDOW:
            continue
        seconds = (later.sampled_at - earlier.sampled_at).total_seconds()
        covered_s += seconds
        asked += seconds * (earlier.throttle_bytes_per_s or 0)
        passed += earlier.busiest_bytes - later.busiest_bytes
    unmeasured = max(0.0, TRUSTED_AFTER_S - covered_s) * (now.throttle_bytes_per_s or 0)
    possible = asked + unmeasured
    return max(0.0, passed + expected * unmeasured) / possible if possible else expected


def _eta_s(left: Remaining, bytes_per_s: float, policy: Policy) -> float | None:
    """Until the plan's end is noticed; None while nothing comes through."""
    if not left.waiting and not left.in_flight:
        return 0.0
    if bytes_per_s <= 0:
        return None
    started_s = left.waiting * policy.reaction_s / policy.max_partitions_in_flight
    # Half a poll passes on average until somebody looks.
    noticed_s = max(policy.poll_interval_s, policy.reaction_s) - policy.poll_interval_s / 2
    return max(left.busiest_bytes / bytes_per_s, started_s) + noticed_s


@dataclass(frozen=True, slots=True)
class EtaError:
    """How far off the ETA was while one tenth of the bytes was copied.

    :param tenth: 0 = the first one.
    :param worst: the foretold end less the true one, over the whole time from the start to the
        end, where that was largest: 0.1 = ten per cent of the whole time too late.
    """

    tenth: int
    worst: float


def eta_errors(samples: Sequence[ProgressSample]) -> tuple[EtaError, ...]:
    """The error of the recorded ETAs by tenths of the bytes; tenths without a sample are left out.

    The end is the last sample's time. Of a plan that has paused, only what came after counts:
    nobody foretells a pause.

    :param samples: all of a plan that is done, oldest first.
    """
    stretch = _last_stretch(samples)
    if len(stretch) < 2:
        return ()
    end, whole = stretch[-1], stretch[-1].sampled_at - stretch[0].sampled_at
    worst: dict[int, float] = {}
    for sample in stretch[:-1]:
        if sample.eta_s is None or not sample.bytes_total or not whole:
            continue
        tenth = min(9, 10 * sample.bytes_done // sample.bytes_total)
        foretold = sample.sampled_at + timedelta(seconds=sample.eta_s)
        error = (foretold - end.sampled_at) / whole
        worst[tenth] = max(worst.get(tenth, 0.0), error, key=abs)
    return tuple(EtaError(tenth, error) for tenth, error in sorted(worst.items()))


def _last_stretch(samples: Sequence[ProgressSample]) -> Sequence[ProgressSample]:
    starts = [
        place
        for place, (earlier, later) in enumerate(pairwise(samples), start=1)
        if later.sampled_at - earlier.sampled_at > WINDOW
    ]
    return samples[starts[-1] :] if starts else samples
