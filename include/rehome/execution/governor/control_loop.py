"""Which rate to set, so that brokers deliver what was asked for. Pure.

Brokers deliver less than the rate that is set (they check their quota only between
fetches), so the nominal rate is corrected by what was measured. State is what the ledger holds:
the changes of the rate, and the samples of what brokers copied. See docs/throttling.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rehome.domain.broker_rates import BrokerRates, RateKey
from rehome.domain.run.flows import OwnRate, RateChange, RateReason, complete_samples
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.run_policy import Policy
from rehome.execution.actions import SetRate
from rehome.execution.governor.cluster_health import newest_harm, well_since
from rehome.execution.governor.measured_rate import (
    LARGEST_RAISE,
    Delivered,
    beginning,
    inflow_bytes_per_s,
    measure_delivered,
)
from rehome.execution.governor.rate_lines import (
    asked_change,
    of_one,
    of_others,
    own_rates_of,
    together,
)

FIRST_PART = 0.89
"""Of a new rate brokers deliver 0.73 to 0.95 (measured): begin where none exceeds the target by
more than 7 %, until its first correction."""
VARIES = 0.08
"""The smaller the part of a rate that brokers deliver, the more it varies: aim lower by this
fraction of what they do not deliver.
"""
DEADBAND, FIRST_DEADBAND = 0.02, 0.04
"""A rate is corrected if it is off the target by more than this part, and by more than the error
that fetches cause in the measurement; the second one is for a plan's beginning, of which less is
known.
"""
LARGEST_FIRST_RAISE = 1.08
"""Limit of the first raise. Should the first measurement be wrong, brokers that deliver 0.9 of a
rate stay below 1.1 of the target.
"""
FIRST_BLUR = 0.4
"""The error that fetches cause in a measurement is seldom as large as it can be. In the beginning,
where a raise is small, only this part of the largest error is allowed for: the rate of the first
minute depends on it.
"""
FULFILLED = 0.4
"""If a raise increases what is delivered by less than this part of it, the throttle was not the
limit.
"""
TELLING_RAISE = 1.08
"""The effect of smaller raises cannot be measured."""
LEAST_EFFICIENCY, MOST_EFFICIENCY = 0.6, 1.25
"""Bounds of delivered over nominal: outside of them, something other than the throttle limits the
rate.
"""
RETRY_AFTER = timedelta(minutes=5)
"""How long a raise that brought nothing is not tried again, unless brokers deliver more anyway."""
CUT = 0.5
RECOVERY_STEP = 0.1
"""Under strain the target is halved; afterwards it grows by a tenth of what was asked for."""
CALM_S = 30.0
"""Between two cuts, and before each growth."""
SMALLEST_SHARE = 0.1
"""Strain alone does not bring the target below this part of what was asked for."""
INFLOW_MARGIN = 1.25
"""The target stays above the growth of what is copied by this factor, or copies never end."""


def first_rate(target_bytes_per_s: int) -> int:
    """The nominal rate to begin with: brokers never deliver all of it."""
    return round(target_bytes_per_s / FIRST_PART)


def first_rates(targets: BrokerRates, now: datetime) -> tuple[OwnRate, ...]:
    """The same of brokers that are to have one of their own."""
    return own_rates_of(targets, now, FIRST_PART)


def govern(view: LedgerView, now: datetime, policy: Policy) -> SetRate | None:
    """The change of the rate that is due, with its cause; None = it stays.

    In this order: what people asked for; other partitions are under strain; brokers deliver another
    rate than the target; others have been well for a while.

    :param policy: bounds of the target; the rate to govern is the one in the view.
    """
    last = _last_change(view, now)
    if last is None:
        return None
    requested_change = asked_change(view, last, now)
    if requested_change is not None:
        return requested_change
    lines: dict[RateKey | None, SetRate | None] = {}
    lines[None] = _governed_rate(of_others(view), now, policy)
    for own in last.own:
        lines[own.key] = _governed_rate(of_one(view, own), now, policy)
    changed = {key: change for key, change in lines.items() if change is not None}
    if not last.own:
        return changed.get(None)
    return together(last, changed, now) if changed else None


def _governed_rate(view: LedgerView, now: datetime, policy: Policy) -> SetRate | None:
    """The change that is due of a rate, by what brokers deliver that have it."""
    last = _last_change(view, now)
    if last is None:
        return None
    compared = replace(view, flows=complete_samples(view.flows))
    return (
        _cut(view, compared, last, now, policy)
        or _corrected_rate(compared, last, now)
        or _grown(view, last, now)
    )


def _last_change(view: LedgerView, now: datetime) -> RateChange | None:
    """The rate that is set; one that the ledger knows no reason of, as if it were new."""
    rate = view.rate_bytes_per_s
    if rate is None:
        return None
    if view.rates and view.rates[-1].rate_bytes_per_s == rate:
        return view.rates[-1]
    return RateChange(now, rate, rate, rate, RateReason.SET_UP, "")


def _towards(last: RateChange, target: int, limit: int, reason: RateReason, cause: str) -> SetRate:
    """Another target, by brokers that deliver the same part of the nominal rate as before."""
    rate = round(target * last.rate_bytes_per_s / last.target_bytes_per_s)
    return SetRate(max(1, rate), cause, reason, target, limit)


def _corrected_rate(view: LedgerView, last: RateChange, now: datetime) -> SetRate | None:
    rates = view.rates or (last,)
    since_change = measure_delivered(view.flows, rates, last.at)
    if since_change is not None and _brought_nothing(rates, since_change):
        before = rates[-2].rate_bytes_per_s
        cause = f"{_measured_text(since_change)}: the raise brought nothing, something else limits"
        return _set(last, before, RateReason.UNBOUND, cause, since_change)
    measurement = measure_delivered(view.flows, rates)
    if measurement is not None and since_change is not None:  # one change at a time
        return _nearer(last, measurement, now, DEADBAND, LARGEST_RAISE)
    if last.reason is not RateReason.SET_UP:
        return None
    first = beginning(view.flows, last)
    if first is None:
        return None
    clear = replace(first, blur=first.blur * FIRST_BLUR)
    return _nearer(last, clear, now, FIRST_DEADBAND, LARGEST_FIRST_RAISE)


def _nearer(
    last: RateChange, measurement: Delivered, now: datetime, deadband: float, largest_raise: float
) -> SetRate | None:
    """The rate that brings the target, but for what the measurement may be off by."""
    nominal, target = last.rate_bytes_per_s, last.target_bytes_per_s
    aimed_at = target * (1 - VARIES * max(0.0, 1 - measurement.part))
    lacking, blur = aimed_at / (nominal * measurement.part) - 1, measurement.blur
    if abs(lacking) <= deadband + blur:
        return None
    if lacking > 0 and not _may_raise(last, measurement, now):
        return None
    certain = lacking - blur if lacking > 0 else lacking + blur
    rate = round(nominal * min(1 + certain, largest_raise))
    rate = min(max(rate, round(target / MOST_EFFICIENCY)), round(target / LEAST_EFFICIENCY))
    if abs(rate - nominal) < nominal * 0.01:
        return None
    reason = RateReason.RAISED if rate > nominal else RateReason.LOWERED
    return _set(
        last, rate, reason, f"{_measured_text(measurement)}, {target} B/s are wanted", measurement
    )


def _brought_nothing(rates: Sequence[RateChange], measurement: Delivered) -> bool:
    """Whether the last change was a raise, and brokers deliver no more than before it."""
    if len(rates) < 2 or rates[-1].reason is not RateReason.RAISED:
        return False
    before = rates[-1].delivered_bytes_per_s
    ratio = rates[-1].rate_bytes_per_s / rates[-2].rate_bytes_per_s
    if before is None or ratio < TELLING_RAISE:
        return False
    return measurement.bytes_per_s * (1 + 2 * measurement.blur) < before * (
        1 + FULFILLED * (ratio - 1)
    )


def _may_raise(last: RateChange, measurement: Delivered, now: datetime) -> bool:
    if measurement.part < LEAST_EFFICIENCY:
        return False  # no throttle delivers so little: something else limits
    if last.reason is not RateReason.UNBOUND:
        return True
    before = last.delivered_bytes_per_s or 0.0
    return now - last.at >= RETRY_AFTER or measurement.bytes_per_s >= 1.1 * before


def _set(
    last: RateChange, rate: int, reason: RateReason, cause: str, measurement: Delivered
) -> SetRate:
    target, limit = last.target_bytes_per_s, last.limit_bytes_per_s
    return SetRate(rate, cause, reason, target, limit, measurement.bytes_per_s)


def _measured_text(measurement: Delivered) -> str:
    way = {"in": "receives", "out": "sends"}.get(measurement.direction, "moves between log dirs")
    return (
        f"broker {measurement.broker} {way} {measurement.bytes_per_s:.0f} B/s, "
        f"{100 * measurement.part:.0f} % of the rate, measured over {measurement.seconds:.0f} s"
    )


def _cut(
    view: LedgerView, compared: LedgerView, last: RateChange, now: datetime, policy: Policy
) -> SetRate | None:
    if last.reason is RateReason.STRAIN and not _calm_for(last, now):
        return None  # the effect of the last cut is not visible yet
    harm = newest_harm(view.flows)
    if harm is None:
        return None
    limit, target = last.limit_bytes_per_s, last.target_bytes_per_s
    least = max(_least(policy, limit), round(INFLOW_MARGIN * inflow_bytes_per_s(compared.flows)))
    new_target = max(round(target * CUT), least)
    if new_target >= target:
        return None
    return _towards(last, new_target, limit, RateReason.STRAIN, str(harm))


def _least(policy: Policy, limit: int) -> int:
    return min(policy.min_rate_bytes_per_s or round(SMALLEST_SHARE * limit), limit)


def _grown(view: LedgerView, last: RateChange, now: datetime) -> SetRate | None:
    limit, target = last.limit_bytes_per_s, last.target_bytes_per_s
    if target >= limit or not _calm_for(last, now):
        return None
    if not well_since(view.flows, now - timedelta(seconds=CALM_S)):
        return None
    new_target = min(limit, target + round(RECOVERY_STEP * limit))
    cause = f"no watched partition has suffered for {CALM_S:.0f} s"
    return _towards(last, new_target, limit, RateReason.RECOVERY, cause)


def _calm_for(last: RateChange, now: datetime) -> bool:
    return (now - last.at).total_seconds() >= CALM_S
