"""Which rate goes where: the brokers' default, or on each broker of its own. Pure.

See docs/decisions/001 for both ways and for what decides between them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from rehome.domain.broker_rates import RateKey, RateSide
from rehome.domain.configs import ConfigResource, Configs
from rehome.domain.kafka import ConfigValue, TopicDescription
from rehome.execution.throttle.keys import (
    CORDONED,
    FOLLOWER_RATE,
    LEADER_RATE,
    LISTS,
    own_value,
)
from rehome.execution.throttle.ownership.marks import DEFAULT, Held, Joining, Marks, lowest
from rehome.ledger.base.records import ThrottleEntry, ThrottleState

METADATA_VERSION = "metadata.version"
DEFAULT_HONOURED_SINCE = 21
"""Level of metadata.version 3.9-IV0. Brokers of 3.9 are the first to apply the default of these
rates (KAFKA-10190), and none that is older can join a cluster where this level is finalized."""

KnownEntries = Mapping[tuple[ConfigResource, str], ThrottleEntry]


def default_is_honoured(finalized_features: Mapping[str, int]) -> bool:
    """Whether every broker there is, and every one that may join, applies a default rate.

    :param finalized_features: level by name; without metadata.version (ZooKeeper, or a broker
        that does not know yet) nothing is certain, and rates of their own are right everywhere.
    """
    return finalized_features.get(METADATA_VERSION, 0) >= DEFAULT_HONOURED_SINCE


CRUISE_CONTROL_TOPICS = (
    "__CruiseControlMetrics",
    "__KafkaCruiseControlPartitionMetricSamples",
    "__KafkaCruiseControlModelTrainingSamples",
)
"""Names that Cruise Control gives its topics, where nobody has changed them."""


def hangs_on_default(topics: Mapping[str, TopicDescription]) -> bool:
    """Whether Cruise Control works on the cluster: at its end it deletes the rates of its brokers,
    then waits until they read as not set. Where a default is, they never do.

    :param topics: its topics, as far as there are any.
    """
    return any(topic.partitions for topic in topics.values())


OwnByKey = Mapping[tuple[ConfigResource, str], int]
"""Broker and key → the rate that it is to have of its own, in bytes per second."""
_KEYS = {RateSide.LEADER.direction: LEADER_RATE, RateSide.FOLLOWER.direction: FOLLOWER_RATE}


def own_by_key(rates: Mapping[RateKey, int]) -> OwnByKey:
    """Rates of single brokers, by what they are set on.

    :param rates: by direction and broker, bytes per second.
    """
    return {
        (ConfigResource.broker(broker), _KEYS[direction]): rate
        for (direction, broker), rate in rates.items()
    }


def set_up_by_broker(journal: Collection[ThrottleEntry]) -> bool:
    """Whether open entries of a plan hold rates on brokers of their own, and none on the default.

    A cluster whose upgrade is finalized in mid-run keeps them until the plan ends.
    """
    rates = {entry.resource for entry in journal if entry.key not in (*LISTS, CORDONED)}
    return bool(rates) and DEFAULT not in rates


@dataclass(frozen=True, slots=True)
class RateChoice:
    """The rate that one resource should have.

    :param current: the resource's own value now; None = not set.
    :param rate: the value to set; None = the present one stays.
    :param holds: another client's rate, in bytes per second, that holds instead of ours.
    :param done: ``rate`` is set already, and is known to be ours.
    :param overruled: another client has changed what we had set.
    :param need: what we need there; ``rate`` is lower where another Rehome needs less.
    :param theirs: what others than Rehomes want there.
    """

    resource: ConfigResource
    key: str
    current: str | None
    rate: str | None
    holds: int | None = None
    done: bool = False
    overruled: bool = False
    need: str | None = None
    theirs: str | None = None

    def joining(self, plan_id: str) -> Joining:
        """What a plan has to say of it."""
        return Joining(plan_id, self.need or "", self.rate or "", self.theirs)


def choose_rates(
    configs: Configs,
    keys: Collection[str],
    rate_bytes_per_s: int,
    *,
    by_broker: bool,
    entries: KnownEntries | None = None,
    marks: Marks | None = None,
    own: OwnByKey | None = None,
) -> Iterator[RateChoice]:
    """For each resource that was read and each rate: ours, or another client's lower one.

    Ours would otherwise either unthrottle what is not ours, or move faster than was asked for.

    :param configs: configs of the brokers concerned, and of their default.
    :param by_broker: brokers may not know the default, so each gets a rate of its own: ours, or
        another client's default where that is lower, for ours would override it on brokers that do.
    :param entries: the plan's open journal entries, which distinguish ours from theirs.
    :param marks: what Rehomes have set, all of them; None = that was not read.
    :param own: rates of brokers that are to have one of their own, whatever the default is.
    """
    entries, own = entries or {}, own or {}
    said = marks or Marks("")
    for key in keys:
        choosing = _Choosing(key, rate_bytes_per_s, by_broker, marks is not None)
        value, entry = configs[DEFAULT].get(key), entries.get((DEFAULT, key))
        default = _theirs(value, entry, said.at(DEFAULT, key))
        for resource in configs:
            value, entry = configs[resource].get(key), entries.get((resource, key))
            rate = own.get((resource, key))
            chooses = choosing if rate is None else choosing.of_its_own(rate)
            yield chooses.choose(value, entry, default, said.at(resource, key))


def is_gone(choice: RateChoice, entry: ThrottleEntry | None) -> bool:
    """Whether a resource has neither the rate that it should have nor another one that the plan has
    set.

    :param entry: the journal's open entry of it; None = nothing was set there.
    """
    if choice.rate is None or choice.current == choice.rate:
        return False
    return entry is None or choice.current not in entry.ours


def _theirs(value: ConfigValue | None, entry: ThrottleEntry | None, claims: Held) -> str | None:
    """The rate that another client has set on the resource, even if a Rehome's has replaced it."""
    current = own_value(claims.resource, value)
    if current in _of_rehomes(entry, claims):
        return claims.before(None if entry is None else entry.prior_value)
    return current


def _of_rehomes(entry: ThrottleEntry | None, claims: Held) -> frozenset[str]:
    return claims.values | frozenset(() if entry is None else entry.ours)


@dataclass(frozen=True, slots=True)
class _Choosing:
    key: str
    rate_bytes_per_s: int
    by_broker: bool
    marked: bool
    is_own: bool = False

    def of_its_own(self, rate_bytes_per_s: int) -> _Choosing:
        """For a broker that is to have this rate, whatever their default is."""
        return replace(self, rate_bytes_per_s=rate_bytes_per_s, is_own=True)

    def choose(
        self,
        value: ConfigValue | None,
        entry: ThrottleEntry | None,
        default: str | None,
        claims: Held,
    ) -> RateChoice:
        resource = claims.resource
        current, before = own_value(resource, value), _theirs(value, entry, claims)
        needed = self.is_own or self.by_broker != (resource == DEFAULT)
        rate, holds = self.rate_bytes_per_s, None
        need: str | None = None
        changed = _changed_since(entry, current, claims)
        if changed and not (current is None and needed):
            holds = None if current is None else int(current)
        elif before is None:
            if needed or entry is not None:
                need = str(self._lowered_to(default) if resource != DEFAULT else rate)
        elif int(before) <= rate:
            need = None if current == before or entry is None else before
            holds = int(before) if int(before) < rate else None
        elif needed or entry is not None or resource != DEFAULT:
            need = str(rate)
        common_rate = need
        if need is not None and (others := claims.wanted_by_others) is not None:
            common_rate = lowest((need, others))
            holds = int(others) if int(others) < rate else holds
        choice = RateChoice(
            *(resource, self.key, current, common_rate, holds), False, changed, need, before
        )
        applied = entry is not None and entry.state is ThrottleState.APPLIED
        return replace(choice, done=applied and self._is_done(choice, entry, claims))

    def _is_done(self, choice: RateChoice, entry: ThrottleEntry | None, claims: Held) -> bool:
        if choice.rate != choice.current:
            return False
        if entry is None or choice.need is None or not self.marked:
            return True
        return claims.says(choice.joining(entry.plan_id))

    def _lowered_to(self, default: str | None) -> int:
        """Ours for a broker that had no rate of its own."""
        rate = self.rate_bytes_per_s
        overrides = self.by_broker or self.is_own
        return min(rate, int(default)) if overrides and default is not None else rate


def _changed_since(entry: ThrottleEntry | None, current: str | None, claims: Held) -> bool:
    """Whether another client has changed a rate of ours. Where they deleted it, nothing would
    throttle: then it is set again.
    """
    if entry is None:
        return False
    before = claims.before(entry.prior_value)
    return current not in {*_of_rehomes(entry, claims), entry.prior_value, before}
