"""Rates that the brokers have now, and which would hold while a plan runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.broker_rates import NO_OWN_RATES, BrokerRates
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerError, BrokerId, ConfigValue
from rehome.domain.plan.plan import Plan
from rehome.execution.admission.slots import Direction, Slot
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.throttle.configs import goes_by_broker
from rehome.execution.throttle.keys import FOLLOWER_RATE, LEADER_RATE, LOG_DIR_RATE, rate_keys
from rehome.execution.throttle.ownership.marks import DEFAULT
from rehome.execution.throttle.rate_scope import (
    RateChoice,
    choose_rates,
    own_by_key,
)

_LIMITS: Mapping[str, Direction] = {
    LEADER_RATE: Direction.OUT,
    FOLLOWER_RATE: Direction.IN,
    LOG_DIR_RATE: Direction.ACROSS,
}


@dataclass(frozen=True, slots=True)
class RatesFound:
    """What the plan's brokers have.

    :param choices: of each resource that could be read; ``unreadable``: the others, and why.
    :param lower_rates: that would hold instead of the plan's, in bytes per second: leftovers,
        other clients' and another Rehome's.
    """

    choices: Sequence[RateChoice] = ()
    unreadable: Mapping[ConfigResource, BrokerError] = field(default_factory=dict)
    lower_rates: Mapping[Slot, int] = field(default_factory=dict)


def find_rates(
    plan: Plan,
    cluster: ClusterPort,
    now: ClusterState,
    rate_bytes_per_s: int,
    own: BrokerRates = NO_OWN_RATES,
) -> RatesFound:
    """Read them.

    :param rate_bytes_per_s: that the plan is to have.
    :param own: of brokers that are to have one of their own.
    """
    keys = rate_keys(plan.moves)
    if not keys:
        return RatesFound()
    involved = {b for m in plan.moves for b in (*m.current, *m.target)} & now.cluster.brokers.keys()
    resources = [DEFAULT, *map(ConfigResource.broker, sorted(involved))]
    readable: dict[ConfigResource, Mapping[str, ConfigValue]] = {DEFAULT: {}}
    unreadable = {}
    for resource, configs in cluster.describe_configs(resources, keys).items():
        if isinstance(configs, BrokerError):
            unreadable[resource] = configs
        else:
            readable[resource] = configs
    by_broker = goes_by_broker(cluster)
    singly = own_by_key(own.by_key())
    choices = tuple(choose_rates(readable, keys, rate_bytes_per_s, by_broker=by_broker, own=singly))
    limits = _rates_by_slot(choices, sorted(involved), rate_bytes_per_s)
    for (direction, broker), rate in own.by_key().items():
        slot = Slot(Direction(direction), broker)
        if broker in involved:
            limits[slot] = min(rate, limits[slot]) if slot in limits else rate
    return RatesFound(choices, unreadable, limits)


def _rates_by_slot(
    choices: Sequence[RateChoice], brokers: Sequence[BrokerId], rate_bytes_per_s: int
) -> dict[Slot, int]:
    """A broker's own rate goes before their default."""
    rates = {(each.resource, each.key): _in_force(each) for each in choices}
    limits = {}
    for key in {each.key for each in choices}:
        for broker in brokers:
            own = rates.get((ConfigResource.broker(broker), key))
            rate = rates.get((DEFAULT, key)) if own is None else own
            if rate is not None and rate < rate_bytes_per_s:
                limits[Slot(_LIMITS[key], broker)] = rate
    return limits


def _in_force(choice: RateChoice) -> int | None:
    """Of a resource, while the plan runs; None = it has none of its own."""
    if choice.holds is not None:
        return choice.holds
    return next((int(rate) for rate in (choice.rate, choice.current) if rate is not None), None)
