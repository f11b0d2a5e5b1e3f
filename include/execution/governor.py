"""Which rate to tell the brokers, so that they deliver what was asked for. Pure.

Brokers deliver less than the rate that they are told (they look at their quota only between
fetches), so the nominal rate is corrected by what was measured. State is what the ledger holds:
the changes of the rate, and the samples of what brokers copied. See docs/execution.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from include.cluster.model import BrokerId
from include.execution.model import LedgerView, Policy, SetRate
from include.execution.rates import (
    FETCH_BYTES,
    QUOTA_WINDOW_S,
    BrokerFlow,
    FlowSample,
    RateChange,
    RateReason,
    Strain,
)

MEASURED_S, MEASURED_AT_MOST_S = 20.0, 120.0
"""The least time that anything is concluded from, and the most."""
LOOK_S = 0.5
"""Brokers look at their quotas about that often: what is copied between two looks blurs figures."""
FIRST_PART = 0.95
"""Of a rate that has just been set brokers deliver 0.73 to 0.98 (measured): reckon with this."""
VARIES = 0.08
"""The less of a rate brokers deliver, the more that varies: aim lower by this part of the rest."""
_WINDOW = timedelta(seconds=QUOTA_WINDOW_S)
DEADBAND = 0.02
"""So far off the target, and further than fetches blur the measurement, a rate is corrected."""
LARGEST_RAISE = 1.15
"""A raise is followed by a burst of what it adds in the quota window: 15 % by 5 % of 30 s."""
FULFILLED = 0.4
"""A raise that brings less than this part of itself has not met the throttle but another limit."""
TELLING_RAISE = 1.08
"""Of smaller raises nobody can tell."""
LEAST_EFFICIENCY, MOST_EFFICIENCY = 0.6, 1.25
"""Bounds of delivered over nominal: beyond them it is not the throttle that shows."""
RETRY_AFTER = timedelta(minutes=5)
"""So long a raise that brought nothing is not tried again, unless more is delivered by itself."""
CUT = 0.5
GROWTH = 0.1
"""Under strain the target is halved; afterwards it grows by a tenth of what was asked for."""
CALM_S = 30.0
"""Between two cuts, and before each growth."""
SMALLEST_SHARE = 0.1
"""Strain alone does not bring the target below this part of what was asked for."""
RISING_LOOKS = 3
LAG_FACTOR, LAG_MESSAGES = 2.0, 100
"""In-sync followers fall behind when they lack more and more, and this much more than usual."""
INFLOW_MARGIN = 1.25
"""The target stays above the growth of what is copied by this factor, or copies never end."""

_Slot = tuple[str, BrokerId]


def first_rate(target_bytes_per_s: int) -> int:
    """The nominal rate to begin with: brokers never deliver all of it."""
    return round(target_bytes_per_s / FIRST_PART)


def govern(view: LedgerView, now: datetime, policy: Policy) -> SetRate | None:
    """The change of the rate that is due, with its cause; None = it stays.

    In this order: what people asked for; others suffer; brokers deliver another rate than the
    target; others have been well for a while.

    :param policy: bounds of the target; the rate to govern is the one that the view tells.
    """
    standing = _standing(view, now)
    if standing is None:
        return None
    asked = view.requested_rate_bytes_per_s
    if asked is not None and asked != standing.limit_bytes_per_s:
        return _towards(standing, asked, asked, RateReason.REQUESTED, "requested")
    return (
        _cut(view, standing, now, policy)
        or _corrected(view, standing, now)
        or _grown(view, standing, now)
    )


def _standing(view: LedgerView, now: datetime) -> RateChange | None:
    """The rate that is set; one that the ledger knows no reason of, as if it were new."""
    rate = view.rate_bytes_per_s
    if rate is None:
        return None
    if view.rates and view.rates[-1].rate_bytes_per_s == rate:
        return view.rates[-1]
    return RateChange(now, rate, rate, rate, RateReason.SET_UP, "")


def _towards(
    standing: RateChange, target: int, limit: int, reason: RateReason, cause: str
) -> SetRate:
    """Another target, by brokers that deliver the same part of the nominal rate as before."""
    rate = round(target * standing.rate_bytes_per_s / standing.target_bytes_per_s)
    return SetRate(max(1, rate), cause, reason, target, limit)


# -- What is delivered -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a broker delivered in one direction while its throttle was all that limited it.

    :param part: of the nominal rates that it was told meanwhile.
    :param blur: how much of it may be due to the moments of the first and the last look.
    """

    direction: str
    broker: BrokerId
    bytes_per_s: float
    seconds: float
    part: float
    blur: float


def delivered(
    flows: Sequence[FlowSample], rates: Sequence[RateChange], since: datetime | None = None
) -> Delivered | None:
    """Of the broker that delivers the largest part of its rate; None = not known yet.

    Counted are only spells in which a broker always had something left to copy, from a quota
    window after their beginning on, and after each change of the rate: what it had saved up by
    then has been spent. The newest two minutes of that count.

    :param flows: oldest first; so are the rates.
    :param since: what was before does not count.
    """
    run = _unbroken(flows, since or rates[0].at)
    slots = {(flow.direction, flow.broker) for flow in run[-1].flows} if run else set()
    found = (_of_slot(run, slot, rates) for slot in slots)
    return max((one for one in found if one is not None), key=_by_part, default=None)


def _by_part(one: Delivered) -> tuple[float, str, BrokerId]:
    return one.part, one.direction, one.broker


def _unbroken(flows: Sequence[FlowSample], since: datetime) -> list[FlowSample]:
    """The newest samples, without any look missing between them."""
    run: list[FlowSample] = []
    for sample in reversed(flows):
        if sample.since < since or (run and sample.at != run[-1].since):
            break
        run.append(sample)
    return run[::-1]


def _of_slot(
    run: Sequence[FlowSample], slot: _Slot, rates: Sequence[RateChange]
) -> Delivered | None:
    seconds = copied = told = 0.0
    copies = 0
    for sample, flow in _spell(run, slot, rates[-1].target_bytes_per_s):
        rate = _settled_rate(sample, rates)
        if rate is not None and seconds < MEASURED_AT_MOST_S:
            seconds += sample.seconds
            copied += flow.copied_bytes
            told += rate * sample.seconds
            copies = max(copies, flow.copies)
    if seconds < MEASURED_S or not copied:
        return None
    blur = FETCH_BYTES * copies / copied + LOOK_S / seconds
    return Delivered(*slot, copied / seconds, seconds, copied / told, blur)


def _spell(
    run: Sequence[FlowSample], slot: _Slot, rate_bytes_per_s: int
) -> list[tuple[FlowSample, BrokerFlow]]:
    """The newest samples in which the broker never was without work, newest first."""
    spell: list[tuple[FlowSample, BrokerFlow]] = []
    for sample in reversed(run):
        flow = next((f for f in sample.flows if (f.direction, f.broker) == slot), None)
        # A second's worth left at a look: it was busy all the time until then.
        if (
            flow is None
            or flow.left_bytes < rate_bytes_per_s
            or _stood(sample, flow, rate_bytes_per_s)
        ):
            break
        spell.append((sample, flow))
    begun = spell[-1][0].since if spell else None
    return [(s, flow) for s, flow in spell if begun and s.since - begun >= _WINDOW]


def _stood(sample: FlowSample, flow: BrokerFlow, rate_bytes_per_s: int) -> bool:
    """Whether a broker copied nothing for longer than its fetch before had to be waited for."""
    return not flow.copied_bytes and FETCH_BYTES * flow.copies < rate_bytes_per_s * sample.seconds


def _settled_rate(sample: FlowSample, rates: Sequence[RateChange]) -> int | None:
    """The rate that the brokers went by; None where they had just been told another one."""
    told = [change for change in rates if change.at < sample.at]
    if len(told) > 1:
        ratio = told[-1].rate_bytes_per_s / told[-2].rate_bytes_per_s
        small = 1 / LARGEST_RAISE <= ratio <= LARGEST_RAISE
        if sample.since - told[-1].at < _WINDOW * (1 if small else 2):
            return None  # after a great change burst and silence alternate for a while
    return told[-1].rate_bytes_per_s if told else None


def _corrected(view: LedgerView, standing: RateChange, now: datetime) -> SetRate | None:
    rates = view.rates or (standing,)
    since_change = delivered(view.flows, rates, standing.at)
    if since_change is not None and _brought_nothing(rates, since_change):
        before = rates[-2].rate_bytes_per_s
        cause = f"{_told(since_change)}: the raise brought nothing, something else limits"
        return _set(standing, before, RateReason.UNBOUND, cause, since_change)
    found = delivered(view.flows, rates)
    if found is None or since_change is None:
        return None  # one change at a time
    nominal, target = standing.rate_bytes_per_s, standing.target_bytes_per_s
    aimed_at = target * (1 - VARIES * max(0.0, 1 - found.part))
    lacking = aimed_at / (nominal * found.part) - 1
    if abs(lacking) <= DEADBAND + found.blur:
        return None
    if lacking > 0 and not _may_raise(standing, found, now):
        return None
    certain = lacking - found.blur if lacking > 0 else lacking + found.blur
    wanted = round(nominal * min(1 + certain, LARGEST_RAISE))
    wanted = min(max(wanted, round(target / MOST_EFFICIENCY)), round(target / LEAST_EFFICIENCY))
    if abs(wanted - nominal) < nominal * 0.01:
        return None
    reason = RateReason.RAISED if wanted > nominal else RateReason.LOWERED
    return _set(standing, wanted, reason, f"{_told(found)}, {target} B/s are wanted", found)


def _brought_nothing(rates: Sequence[RateChange], found: Delivered) -> bool:
    """Whether the last change was a raise, and brokers deliver no more than before it."""
    if len(rates) < 2 or rates[-1].reason is not RateReason.RAISED:
        return False
    before = rates[-1].delivered_bytes_per_s
    ratio = rates[-1].rate_bytes_per_s / rates[-2].rate_bytes_per_s
    if before is None or ratio < TELLING_RAISE:
        return False
    return found.bytes_per_s * (1 + 2 * found.blur) < before * (1 + FULFILLED * (ratio - 1))


def _may_raise(standing: RateChange, found: Delivered, now: datetime) -> bool:
    if found.part < LEAST_EFFICIENCY:
        return False  # no throttle delivers so little: something else limits
    if standing.reason is not RateReason.UNBOUND:
        return True
    before = standing.delivered_bytes_per_s or 0.0
    return now - standing.at >= RETRY_AFTER or found.bytes_per_s >= 1.1 * before


def _set(
    standing: RateChange, rate: int, reason: RateReason, cause: str, found: Delivered
) -> SetRate:
    target, limit = standing.target_bytes_per_s, standing.limit_bytes_per_s
    return SetRate(rate, cause, reason, target, limit, found.bytes_per_s)


def _told(found: Delivered) -> str:
    way = {"in": "receives", "out": "sends"}.get(found.direction, "moves between log dirs")
    return (
        f"broker {found.broker} {way} {found.bytes_per_s:.0f} B/s, {100 * found.part:.0f} % of "
        f"the rate, measured over {found.seconds:.0f} s"
    )


# -- How others are --------------------------------------------------------------------------


def inflow_bytes_per_s(flows: Sequence[FlowSample]) -> float:
    """How fast what is copied grows: of the broker and direction where it grows most.

    :param flows: samples, oldest first; the newest minute of them counts.
    """
    recent = [s for s in flows if flows[-1].at - s.at < timedelta(seconds=60)]
    seconds = sum(sample.seconds for sample in recent)
    grown: dict[_Slot, int] = {}
    for sample in recent:
        for flow in sample.flows:
            slot = (flow.direction, flow.broker)
            grown[slot] = grown.get(slot, 0) + flow.grown_bytes
    return max(grown.values(), default=0) / seconds if seconds > 0 else 0.0


def strain(flows: Sequence[FlowSample]) -> str | None:
    """What partitions outside the plan suffer at the newest look; None = nothing that is known.

    :param flows: oldest first; what the older ones show is what is usual.
    """
    told = [sample.strain for sample in flows if sample.strain is not None]
    if len(told) < RISING_LOOKS or flows[-1].strain is None:
        return None
    out = told[-1].outside_isr - min(item.outside_isr for item in told)
    if out > 0:
        return f"{out} replicas of partitions outside the plan have left the ISR"
    return _falling_behind(told)


def _falling_behind(told: Sequence[Strain]) -> str | None:
    lags = [item.messages_behind for item in told]
    newest, earlier = lags[-RISING_LOOKS:], lags[: 1 - RISING_LOOKS]
    rising = all(one < other for one, other in pairwise(newest))
    usual = median(earlier)
    if not rising or lags[-1] < LAG_FACTOR * usual + LAG_MESSAGES:
        return None
    return (
        f"in-sync followers of partitions outside the plan fall behind: {lags[-1]} messages, "
        f"usually {usual:.0f}"
    )


def _cut(view: LedgerView, standing: RateChange, now: datetime, policy: Policy) -> SetRate | None:
    if standing.reason is RateReason.STRAIN and not _calm_for(standing, now):
        return None  # what the last cut brings is not to be seen yet
    cause = strain(view.flows)
    if cause is None:
        return None
    limit, target = standing.limit_bytes_per_s, standing.target_bytes_per_s
    least = max(_least(policy, limit), round(INFLOW_MARGIN * inflow_bytes_per_s(view.flows)))
    wanted = max(round(target * CUT), least)
    if wanted >= target:
        return None
    return _towards(standing, wanted, limit, RateReason.STRAIN, cause)


def _least(policy: Policy, limit: int) -> int:
    return min(policy.min_rate_bytes_per_s or round(SMALLEST_SHARE * limit), limit)


def _grown(view: LedgerView, standing: RateChange, now: datetime) -> SetRate | None:
    limit, target = standing.limit_bytes_per_s, standing.target_bytes_per_s
    if target >= limit or not _calm_for(standing, now) or strain(view.flows) is not None:
        return None
    wanted = min(limit, target + round(GROWTH * limit))
    cause = f"no partition outside the plan has suffered for {CALM_S:.0f} s"
    return _towards(standing, wanted, limit, RateReason.RECOVERY, cause)


def _calm_for(standing: RateChange, now: datetime) -> bool:
    return (now - standing.at).total_seconds() >= CALM_S
