"""The rates of a plan, each governed by itself: the one of most brokers, and those of brokers that
have one of their own. Pure.

Strain is the cluster's: it cuts all of them. What brokers deliver is measured, and corrected, for
each by the brokers that have it. See docs/decisions/085.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from rehome.domain.broker_rates import BrokerRates, RateKey
from rehome.domain.run.flows import FlowSample, OwnRate, RateChange, RateReason
from rehome.domain.run.ledger_view import LedgerView
from rehome.execution.actions import SetRate

Wanted = Callable[[RateKey], bool]
_DOES = {"in": "receives", "out": "sends"}


def own_rates_of(
    limits: BrokerRates, now: datetime, part: float, own_rates: Collection[OwnRate] = ()
) -> tuple[OwnRate, ...]:
    """Rates of brokers that are to have one of their own.

    :param limits: what they are to deliver.
    :param part: of a nominal rate that brokers deliver, as far as it is known.
    :param own_rates: those that they have: one with the same limit goes on as it is.
    """
    before = {each.key: each for each in own_rates}
    rates = []
    for (direction, broker), limit in limits.by_key().items():
        own = before.get((direction, broker))
        if own is None or own.limit_bytes_per_s != limit:
            reason = RateReason.SET_UP if part and not own_rates else RateReason.REQUESTED
            nominal = max(1, round(limit / part))
            own = OwnRate(direction, broker, now, nominal, limit, limit, reason, "it was asked for")
        rates.append(own)
    return tuple(rates)


def asked_change(view: LedgerView, last: RateChange, now: datetime) -> SetRate | None:
    """What a person has asked for since the last change; None = nothing."""
    rate, by_broker = view.requested_rate_bytes_per_s, view.requested_rates_by_broker
    part = last.target_bytes_per_s / last.rate_bytes_per_s
    own = last.own
    if by_broker is not None:
        own = own_rates_of(by_broker, now, part, last.own)
    if rate is not None and rate != last.limit_bytes_per_s:
        nominal = max(1, round(rate / part))
        return SetRate(nominal, "requested", RateReason.REQUESTED, rate, rate, own=own)
    if own == last.own:
        return None
    return replace(_as_it_is(last), cause="requested for single brokers", own=own)


def of_one(view: LedgerView, own: OwnRate) -> LedgerView:
    """The view of a broker and direction with a rate of its own."""
    changes_by_time = {
        each.at: each for change in view.rates for each in change.own if each.key == own.key
    }
    rates = tuple(_as_change(each) for _, each in sorted(changes_by_time.items()))
    flows = tuple(_only(sample, lambda key: key == own.key) for sample in view.flows)
    return replace(
        view,
        rate_bytes_per_s=own.rate_bytes_per_s,
        requested_rate_bytes_per_s=None,
        rates=rates,
        flows=flows,
    )


def of_others(view: LedgerView) -> LedgerView:
    """The view of all brokers and directions that have the plan's rate."""
    if not any(change.own for change in view.rates):
        return view
    rates: list[RateChange] = []
    for change in view.rates:
        if not rates or _figures(rates[-1]) != _figures(change):
            rates.append(replace(change, own=()))
    flows = tuple(_without_own(sample, view.rates) for sample in view.flows)
    return replace(view, rates=tuple(rates), flows=flows)


def together(last: RateChange, changed: Mapping[RateKey | None, SetRate], now: datetime) -> SetRate:
    """One change of all rates that are due.

    :param changed: by whose it is; None = the plan's.
    """
    base = changed.get(None, _as_it_is(last))
    own = tuple(_apply_change(each, changed.get(each.key), now) for each in last.own)
    return replace(base, cause="; ".join(_causes(changed)), own=own)


def _causes(changed: Mapping[RateKey | None, SetRate]) -> Iterator[str]:
    said = set()
    for key, change in changed.items():
        if key is None or not _of_one_alone(change):
            text = change.cause
        else:
            text = f"broker {key[1]} {_DOES[key[0]]} at {change.target_bytes_per_s} B/s: "
            text += change.cause
        if text not in said:
            said.add(text)
            yield text


def _of_one_alone(change: SetRate) -> bool:
    """Whether a cause is of one broker alone: strain is of the whole cluster."""
    return change.reason not in (RateReason.STRAIN, RateReason.RECOVERY)


def _apply_change(own: OwnRate, change: SetRate | None, now: datetime) -> OwnRate:
    if change is None:
        return own
    return replace(
        own,
        at=now,
        rate_bytes_per_s=change.rate_bytes_per_s,
        target_bytes_per_s=change.target_bytes_per_s or change.rate_bytes_per_s,
        limit_bytes_per_s=change.limit_bytes_per_s or own.limit_bytes_per_s,
        reason=change.reason,
        cause=change.cause,
        delivered_bytes_per_s=change.delivered_bytes_per_s,
    )


def _as_it_is(last: RateChange) -> SetRate:
    return SetRate(
        last.rate_bytes_per_s,
        last.cause,
        last.reason,
        last.target_bytes_per_s,
        last.limit_bytes_per_s,
        last.delivered_bytes_per_s,
        last.own,
    )


def _as_change(own: OwnRate) -> RateChange:
    return RateChange(
        own.at,
        own.rate_bytes_per_s,
        own.target_bytes_per_s,
        own.limit_bytes_per_s,
        own.reason,
        own.cause,
        own.delivered_bytes_per_s,
    )


def _figures(change: RateChange) -> tuple[int, int, int]:
    return change.rate_bytes_per_s, change.target_bytes_per_s, change.limit_bytes_per_s


def _without_own(sample: FlowSample, rates: Sequence[RateChange]) -> FlowSample:
    """Less brokers that had a rate of their own at any time of it."""
    ends = [*(change.at for change in rates[1:]), None]
    own = {
        each.key
        for change, end in zip(rates, ends, strict=True)
        if change.at <= sample.at and (end is None or end > sample.since)
        for each in change.own
    } | {each.key for each in rates[-1].own}
    return _only(sample, lambda key: key not in own)


def _only(sample: FlowSample, is_included: Wanted) -> FlowSample:
    flows = tuple(flow for flow in sample.flows if is_included((flow.direction, flow.broker)))
    return replace(sample, flows=flows)
