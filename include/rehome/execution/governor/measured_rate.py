"""What brokers deliver of the rate set, and how fast what they copy grows. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rehome.domain.broker_rates import RateKey
from rehome.domain.kafka import BrokerId
from rehome.domain.run.flows import (
    FETCH_BYTES,
    QUOTA_WINDOW_S,
    BrokerFlow,
    FlowSample,
    RateChange,
)

MEASURED_S, MEASURED_AT_MOST_S = 20.0, 120.0
"""The least time that anything is concluded from, and the most."""
BEGINNING_S, BEGINNING_AT_LEAST_S = 17.0, 10.0
"""The first guess is made from what came between a plan's second poll and this time: about one
quota window, for within each brokers deliver more and then less."""
STARTED_AFTER_S = 2.0
"""Time until a plan's first fetches arrive."""
QUOTA_CHECK_S = 0.5
"""Brokers check their quotas about that often: what is copied in between blurs figures."""
LARGEST_RAISE = 1.15
"""A raise is followed by a burst of what it adds in the quota window: 15 % by 5 % of 30 s."""
_WINDOW = timedelta(seconds=QUOTA_WINDOW_S)

_Slot = tuple[str, BrokerId]


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a broker delivered in one direction while its throttle was all that limited it.

    :param bytes_per_s: that part of the newest rate.
    :param part: of the nominal rates that were set meanwhile.
    :param blur: how much of it may be due to the moments of the first and the last poll.
    """

    direction: str
    broker: BrokerId
    bytes_per_s: float
    seconds: float
    part: float
    blur: float


def measure_delivered(
    flows: Sequence[FlowSample],
    rates: Sequence[RateChange],
    since: datetime | None = None,
    *,
    settled_s: float = QUOTA_WINDOW_S,
    at_least_s: float = MEASURED_S,
) -> Delivered | None:
    """Of the broker that delivers the largest part of its rate; None = not known yet.

    Counted are only spells in which a broker always had something left to copy, from a quota window
    after their beginning on, and after each change of the rate: quota that was unused by then has
    been used up. The newest two minutes of that count.

    :param flows: oldest first; so are the rates.
    :param since: what was before does not count.
    :param settled_s: nor do so many seconds from the beginning of a spell on.
    :param at_least_s: of a broker that was measured for less, nothing is known.
    """
    run = _newest_run(flows, since or rates[0].at)
    slots = {(flow.direction, flow.broker) for flow in run[-1].flows} if run else set()
    measurements = (_of_slot(run, slot, rates, timedelta(seconds=settled_s)) for slot in slots)
    candidates = (one for one in measurements if one is not None and one.seconds >= at_least_s)
    return max(candidates, key=_by_part, default=None)


def beginning(flows: Sequence[FlowSample], begun: RateChange) -> Delivered | None:
    """The same of a plan's first quarter of a minute, before which no quota was left unused.

    :param begun: the rate that was set up.
    """
    run = [sample for sample in flows if sample.since >= begun.at]
    until = run[0].since + timedelta(seconds=BEGINNING_S) if run else begun.at
    return measure_delivered(
        [sample for sample in run if sample.at <= until],
        (begun,),
        settled_s=STARTED_AFTER_S,
        at_least_s=BEGINNING_AT_LEAST_S,
    )


def _by_part(one: Delivered) -> tuple[float, str, BrokerId]:
    return one.part, one.direction, one.broker


def _newest_run(flows: Sequence[FlowSample], since: datetime) -> list[FlowSample]:
    """The newest samples, without any poll missing between them."""
    run: list[FlowSample] = []
    for sample in reversed(flows):
        if sample.since < since or (run and sample.at != run[-1].since):
            break
        run.append(sample)
    return run[::-1]


def _of_slot(
    run: Sequence[FlowSample], slot: _Slot, rates: Sequence[RateChange], settled: timedelta
) -> Delivered | None:
    seconds = copied = nominal = 0.0
    copies = 0
    for sample, flow in _spell(run, slot, rates, settled):
        rate = _settled_rate(sample, rates)
        if rate is not None and seconds < MEASURED_AT_MOST_S:
            seconds += sample.seconds
            copied += flow.copied_bytes
            nominal += rate * sample.seconds
            copies = max(copies, flow.copies)
    if not copied:
        return None
    blur = FETCH_BYTES * copies / copied + QUOTA_CHECK_S / seconds
    part = copied / nominal
    return Delivered(*slot, part * rates[-1].rate_bytes_per_s, seconds, part, blur)


def _spell(
    run: Sequence[FlowSample], slot: _Slot, rates: Sequence[RateChange], settled: timedelta
) -> list[tuple[FlowSample, BrokerFlow]]:
    """The newest samples in which the broker never was without work, newest first."""
    spell: list[tuple[FlowSample, BrokerFlow]] = []
    target = rates[-1].target_bytes_per_s
    for sample in reversed(run):
        flow = next((f for f in sample.flows if (f.direction, f.broker) == slot), None)
        # A second's worth left at a poll: it was busy all the time until then.
        if flow is None or flow.left_bytes < target:
            break
        # After a cut nothing is copied until the quota window has passed: that is no measurement.
        if _stood(sample, flow, target) and _settled_rate(sample, rates) is not None:
            break
        spell.append((sample, flow))
    begun = spell[-1][0].since if spell else None
    return [(s, flow) for s, flow in spell if begun and s.since - begun >= settled]


def _stood(sample: FlowSample, flow: BrokerFlow, rate_bytes_per_s: int) -> bool:
    """Whether a broker copied nothing for longer than its fetch before had to be waited for."""
    return not flow.copied_bytes and FETCH_BYTES * flow.copies < rate_bytes_per_s * sample.seconds


def _settled_rate(sample: FlowSample, rates: Sequence[RateChange]) -> int | None:
    """The rate that the brokers went by; None where another one had just been set."""
    earlier = [change for change in rates if change.at < sample.at]
    if len(earlier) > 1:
        ratio = earlier[-1].rate_bytes_per_s / earlier[-2].rate_bytes_per_s
        small = 1 / LARGEST_RAISE <= ratio <= LARGEST_RAISE
        if sample.since - earlier[-1].at < _WINDOW * (1 if small else 2):
            return None  # after a great change burst and silence alternate for a while
    return earlier[-1].rate_bytes_per_s if earlier else None


def inflow_bytes_per_s(
    flows: Sequence[FlowSample],
    *,
    only: RateKey | None = None,
    without: Collection[RateKey] = (),
) -> float:
    """How fast what is copied grows: of the broker and direction where it grows most.

    :param flows: samples, oldest first; the newest minute of them counts.
    :param only: the one that is asked about; ``without``: those that do not count.
    """
    recent = [s for s in flows if flows[-1].at - s.at < timedelta(seconds=60)]
    seconds = sum(sample.seconds for sample in recent)
    grown: dict[_Slot, int] = {}
    for sample in recent:
        for flow in sample.flows:
            slot = (flow.direction, flow.broker)
            if only in (None, slot) and slot not in without:
                grown[slot] = grown.get(slot, 0) + flow.grown_bytes
    return max(grown.values(), default=0) / seconds if seconds > 0 else 0.0
