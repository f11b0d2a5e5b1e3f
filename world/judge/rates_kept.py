"""No broker copies for a plan at more than its rate, by direction: what was asked for, of single
brokers and of all others, at the beginning and in mid-run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from rehome.domain.configs import ConfigResource
from world.history import ConfigKey, ConfigWrite, History
from world.judge.configs import Configs
from world.judge.flights import (
    ACTUAL,
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    UNSEEN_S,
    Span,
    is_listed,
    rate_of,
)
from world.judge.living import Alive, states_of, stays
from world.judge.placement import Partitions, target_of
from world.judge.plan_seen import OwnRate, PlanSeen, RatesAsked
from world.judge.violations import Kind, Violation
from world.kafka.metadata import PartitionKey

LEAST_DELIVERED = 0.6
"""Brokers deliver this part of the rate that is set, or more: so the one that is set is above what
was asked for by no more than that.
"""
ROUNDED = 1.01
PASSING_S = 1.0
"""Brokers take up what the controller has committed by then."""
LISTS_OF = {LEADER_RATE: LEADER_LIST, FOLLOWER_RATE: FOLLOWER_LIST}


@dataclass(frozen=True, slots=True)
class _Copy:
    """One side of a copy: of which partition, and the broker's rate that limits it."""

    key: PartitionKey
    side: OwnRate


@dataclass
class _Limits:
    """What brokers may be set to, at each time."""

    asked: Collection[RatesAsked]
    ran: Collection[Span]
    _rates: list[RatesAsked] = field(init=False)
    _owns: list[RatesAsked] = field(init=False)

    def __post_init__(self) -> None:
        self._rates = [each for each in self.asked if each.rate is not None]
        self._owns = [each for each in self.asked if each.own is not None]

    @property
    def times(self) -> set[float]:
        """When what may be set changes."""
        return {
            time
            for each in self.asked
            for time in (each.since, self._seen_at(each))
            if 0 < time < inf
        }

    def of(self, side: OwnRate, when: float) -> float:
        """The highest that may hold."""
        plans = max((each.rate or 0 for each in self._holding(self._rates, when)), default=inf)
        owns = [(each.own or {}).get(side) for each in self._holding(self._owns, when)] or [None]
        return max(plans if own is None else own for own in owns)

    def _holding(self, asked: Collection[RatesAsked], when: float) -> list[RatesAsked]:
        """What may hold at a time: it was asked for, and nothing that was asked for after its
        answer was agreed to since, and has been seen.
        """
        known = [each for each in asked if each.since <= when]
        agreed = [each for each in known if each.agreed and self._seen_at(each) <= when]
        return [each for each in known if not any(o.since > each.ended for o in agreed)]

    def _seen_at(self, asked: RatesAsked) -> float:
        """When a process of the run has been alive for as long after the answer as it may take; the
        next one begins anew. Infinite = each has died before.
        """
        seen = (max(span.since, asked.ended) + UNSEEN_S for span in self.ran)
        ends = zip(seen, (span.until for span in self.ran), strict=True)
        return min((at for at, until in ends if at <= until), default=inf)


def over_their_rates(
    partitions: Partitions,
    configs: Configs,
    history: History,
    plan: PlanSeen,
) -> Iterator[Violation]:
    """Brokers that could send or receive more for a plan than was asked for. Where another client
    has changed what limits them, that is not judged: such a copy is throttled, or it is not.
    A rate of a single broker is set by a request to itself: of one that was away it is judged from
    when its return can have been seen.
    """
    if not plan.rates or not plan.ran:
        return
    others = {
        (write.resource, write.key)
        for write in history.writes
        if isinstance(write, ConfigWrite) and write.owner != plan.by
    }
    limits = _Limits(plan.rates, plan.ran)
    found: dict[_Copy, list[Span]] = {}
    for key in plan.lists:
        changes = {placed.at for placed in partitions.states.get(key, ())} | limits.times
        changes |= {moment.at for known in configs.keys.values() for moment in known.moments}
        times = sorted(changes)
        for since, until in pairwise(times):
            for side in _limited(partitions, plan, key, since):
                if not others & _keys(partitions, key, side) and _lets_more(
                    partitions, configs, key, side, limits, since
                ):
                    _add(found.setdefault(_Copy(key, side), []), Span(since, until))
    alive = states_of(history.log) if found else []
    singly = {side for each in plan.rates for side in each.own or ()}
    for copy, spans in found.items():
        for span in _settable(alive, copy, spans) if copy.side in singly else spans:
            while_it_ran = [_common(span, ran) for ran in plan.ran]
            longest = max(while_it_ran, default=0.0)
            if longest > PASSING_S:
                yield _violation(partitions, copy, limits, span, longest)
                break


def _settable(alive: Sequence[Alive], copy: _Copy, spans: Sequence[Span]) -> Iterator[Span]:
    """When the broker's own rate could have been set."""
    for since, until in stays(alive, copy.side[0]):
        seen = since if since <= alive[0].at else since + UNSEEN_S
        for span in spans:
            part = Span(max(span.since, seen), min(span.until, until))
            if part.since < part.until:
                yield part


def _keys(partitions: Partitions, key: PartitionKey, side: OwnRate) -> set[ConfigKey]:
    """All that limits one side of a copy."""
    broker, rate = side
    topic = ConfigResource.topic(partitions.names[key.topic_id])
    brokers = {ConfigResource.broker(broker), ConfigResource.cluster_default()}
    return {(topic, LISTS_OF[rate]), *((resource, rate) for resource in brokers)}


def _limited(
    partitions: Partitions, plan: PlanSeen, key: PartitionKey, when: float
) -> Iterator[OwnRate]:
    """Who sends and who receives a move's copies. A replica that came to lead after it was added is
    on no list of leaders: it has none to send, but for those that still come.
    """
    state = partitions.at(key, when) if key in partitions.states else None
    if state is None or target_of(state) not in plan.lists[key]:
        return
    copying = set(state.adding) - set(state.isr)
    for broker in sorted(copying):
        yield broker, FOLLOWER_RATE
    if copying and state.leader is not None and state.leader not in state.adding:
        yield state.leader, LEADER_RATE


def _lets_more(
    partitions: Partitions,
    configs: Configs,
    key: PartitionKey,
    side: OwnRate,
    limits: _Limits,
    when: float,
) -> bool:
    broker, rate_key = side
    topic = partitions.names[key.topic_id]
    if not is_listed(configs, (topic, LISTS_OF[rate_key]), key.number, broker, when, ACTUAL):
        return limits.of(side, when) < inf
    rate = rate_of(configs, rate_key, broker, when, ACTUAL)
    most = limits.of(side, when) / LEAST_DELIVERED * ROUNDED
    return (inf if rate is None else float(rate)) > most


def _add(spans: list[Span], span: Span) -> None:
    if spans and spans[-1].until == span.since:
        spans[-1] = Span(spans[-1].since, span.until)
    else:
        spans.append(span)


def _common(one: Span, other: Span) -> float:
    return min(one.until, other.until) - max(one.since, other.since)


def _violation(
    partitions: Partitions, copy: _Copy, limits: _Limits, span: Span, lasted_s: float
) -> Violation:
    broker, rate_key = copy.side
    name = f"{partitions.names[copy.key.topic_id]}-{copy.key.number}"
    does = "sends" if rate_key == LEADER_RATE else "receives"
    text = (
        f"for {lasted_s:.0f} s broker {broker} {does} {name}, and may do so at more than "
        f"{limits.of(copy.side, span.since):.0f} B/s"
    )
    return Violation(Kind.OVER_ITS_RATE, f"{broker} {does}", text, span.since)
