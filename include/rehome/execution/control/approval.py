"""What an approval is of, how long it holds, and why it does not hold any more. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from rehome.domain.broker_rates import BrokerRates, RateSide
from rehome.domain.kafka import BrokerId
from rehome.domain.request.cluster_values import Change, changes
from rehome.domain.run.approval_terms import Approval, Terms


class Lapse(enum.StrEnum):
    """Why an approval does not hold: what it names is another, or it is none."""

    NEVER_GIVEN = "never_given"
    EXPIRED = "expired"
    HASH = "plan_hash"
    RATE = "rate"
    RATES_BY_BROKER = "rates_by_broker"
    NEW_REPLICAS = "new_replicas_at_once"
    LEAST_RATE = "least_rate"
    WINDOW = "window"
    ADDITIONAL = "additional"
    UNTHROTTLED = "unthrottled"
    SETTINGS = "settings"
    REPLICATION_FACTOR = "replication_factor"
    LEADERS = "leaders"
    CORDON = "cordon"
    FOLLOW_UP = "follow_up"
    EVIDENCE = "evidence"
    NO_PERSON = "no_person"
    BEFORE_UPGRADE = "before_upgrade"


def changed_settings(was: Terms, now: Terms) -> tuple[Change, ...]:
    """Caps, broker sets and targets that differ; () = none, or it is not known. Pure."""
    if was.settings is None or now.settings is None:
        return ()
    return tuple(changes(was.settings, now.settings))


def changed_evidence(was: Terms, now: Terms) -> tuple[str, ...]:
    """Files that differ of those that an approver was shown the contents of. Pure."""
    if was.evidence is None or now.evidence is None:
        return ()
    names = sorted(was.evidence.keys() | now.evidence.keys())
    return tuple(name for name in names if was.evidence.get(name) != now.evidence.get(name))


def _changed_effects(was: Terms, now: Terms) -> Iterator[Lapse]:
    """What a plan would do besides its moves that was not approved."""
    before, after = was.effects, now.effects
    if before is None or after is None:
        return
    if before.replication_factor != after.replication_factor:
        yield Lapse.REPLICATION_FACTOR
    if before.leaders != after.leaders:
        yield Lapse.LEADERS
    if (before.cordon, before.cordoned) != (after.cordon, after.cordoned):
        yield Lapse.CORDON
    if before.follow_up != after.follow_up:
        yield Lapse.FOLLOW_UP


def changed_terms(was: Terms, now: Terms) -> tuple[Lapse, ...]:
    """What of the terms differs. Pure."""
    differences = {
        Lapse.HASH: now.plan_hash != was.plan_hash,
        Lapse.RATE: now.rate_bytes_per_s != was.rate_bytes_per_s,
        Lapse.RATES_BY_BROKER: now.rates_by_broker != was.rates_by_broker,
        Lapse.NEW_REPLICAS: now.new_replicas_at_once != was.new_replicas_at_once,
        Lapse.LEAST_RATE: (now.least_rate_bytes_per_s or 0) != (was.least_rate_bytes_per_s or 0),
        Lapse.WINDOW: (now.window_end, now.on_window_end) != (was.window_end, was.on_window_end),
        Lapse.ADDITIONAL: now.additional != was.additional,
        Lapse.UNTHROTTLED: now.unthrottled != was.unthrottled,
        Lapse.SETTINGS: bool(changed_settings(was, now)),
        Lapse.EVIDENCE: bool(changed_evidence(was, now)),
    }
    return (*(lapse for lapse, holds in differences.items() if holds), *_changed_effects(was, now))


def lapses(
    approval: Approval | None,
    terms: Terms,
    now: datetime | None,
    *,
    requested_rate_bytes_per_s: int | None = None,
    requested_rates_by_broker: BrokerRates | None = None,
    begun: bool = False,
    needs_person: bool = False,
) -> tuple[Lapse, ...]:
    """Why what would be run now is not what was approved; empty = it is. Pure.

    :param terms: of the run that is about to act.
    :param now: None = the plan runs already: its approval was in time then, and of the cluster's
        caps, broker sets and targets at that time.
    :param requested_rate_bytes_per_s: what a person has asked for since, which holds instead of
        the run's own rate. A lower one needs no other approval; nor does a higher one where no
        person was asked to approve.
    :param requested_rates_by_broker: the same of single brokers: those hold for the run.
    :param begun: whether the plan has begun before, and goes on: its dry run is of what is left
        then, and another one than the approver has seen.
    :param needs_person: whether a person has to have approved.
    """
    if approval is None:
        return (Lapse.NEVER_GIVEN,)
    was, asked_for = approval.terms, requested_rate_bytes_per_s is not None
    terms = as_asked(terms, requested_rate_bytes_per_s, requested_rates_by_broker)
    kinds = set(changed_terms(was, terms))
    if asked_for and (terms.rate_bytes_per_s <= was.rate_bytes_per_s or not approval.by_person):
        kinds.discard(Lapse.RATE)
    asked_for = asked_for or requested_rates_by_broker is not None
    if (asked_for and not approval.by_person) or (
        (asked_for or now is None) and not any(lets_more_through(terms, was))
    ):
        kinds.discard(Lapse.RATES_BY_BROKER)
    if now is None:
        kinds -= {Lapse.SETTINGS, Lapse.EVIDENCE}
        if _no_higher(was, terms):
            kinds.discard(Lapse.LEAST_RATE)
    elif now >= approval.expires_at:
        kinds.add(Lapse.EXPIRED)
    if begun:
        kinds.discard(Lapse.EVIDENCE)
    if now is not None and approval.by_person and approval.question_id is None:
        kinds.add(Lapse.BEFORE_UPGRADE)
    if now is not None and needs_person and not approval.by_person:
        kinds.add(Lapse.NO_PERSON)
    return tuple(lapse for lapse in Lapse if lapse in kinds)


def as_asked(terms: Terms, rate: int | None, by_broker: BrokerRates | None) -> Terms:
    """Of a run, with what a person has asked for since; None = nothing."""
    own = terms.rates_by_broker if by_broker is None else by_broker
    rate = rate or terms.rate_bytes_per_s
    return replace(terms, rate_bytes_per_s=rate, rates_by_broker=own)


def lets_more_through(now: Terms, was: Terms) -> Iterator[tuple[RateSide, BrokerId]]:
    """Where a broker's rate would be above the one that was approved for it. One that had a rate of
    its own, and has none any more, would have the plan's.
    """
    own, others = now.rates_by_broker, now.rate_bytes_per_s
    for side in RateSide:
        rates = {**dict.fromkeys(was.rates_by_broker.of(side), others), **own.of(side)}
        for broker, rate in sorted(rates.items()):
            if rate > was.rates_by_broker.of(side).get(broker, was.rate_bytes_per_s):
                yield side, broker


def _no_higher(was: Terms, now: Terms) -> bool:
    """Whether what runs spares partitions that suffer as much as was approved, or more: a policy
    that allows less by now lowers the bound. What an earlier Rehome has begun, it recorded without.
    """
    before, after = was.least_rate_bytes_per_s, now.least_rate_bytes_per_s
    return before is None or 0 < (after or 0) < before
