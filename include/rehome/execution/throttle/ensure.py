"""See to it that moves are throttled: before they start, and at each poll while they are in flight.

What another client deleted, or could not be set before, is set again.
"""

from __future__ import annotations

from collections.abc import Collection

from rehome.cluster.interface.errors import ClusterError
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.throttle.clear import sweep
from rehome.execution.throttle.configs import Refusals, ThrottleError
from rehome.execution.throttle.keys import LIST_LIMIT
from rehome.execution.throttle.plan_throttle import RatesSet, Setting
from rehome.execution.throttle.set_up import needs_rates_by_broker
from rehome.ledger.store import Ledger


def ensure(
    plan: Plan,
    ledger: Ledger,
    cluster: OwnCluster,
    moves: Collection[Move],
    *,
    in_flight: bool = False,
) -> dict[TopicPartition, str]:
    """See to it that these moves, about to start, will be throttled.

    Normally they are, since the set-up; not where a list would have been too long as a whole,
    where another client has deleted a list or a rate meanwhile (Kafka's own tool does that), or
    where a broker that needs a rate of its own was away.

    A topic or a broker that refuses concerns the moves that need it: all others are seen to.

    :param in_flight: they have started. What is gone is read twice, counted and reported, and lists
        are set again even where the brokers' default cannot be read or set.
    :returns: moves of which it is not known that they will be, and why: a topic or a broker of
        theirs refuses its configuration, or does not answer. They must not start.
    :raises ClusterError: the cluster did not answer, or refused to show the brokers' default.
    :raises ThrottleError: the brokers' default was refused, or a list would be too long; none must
        start.
    """
    rate = ledger.plan(plan.plan_id).rate_bytes_per_s
    if rate is None:
        return {}
    own = ledger.own_rates(plan.plan_id)
    by_broker = needs_rates_by_broker(plan, ledger, cluster)
    if by_broker:
        sweep(ledger, cluster)
    setting, refusal = Setting(plan, ledger, cluster), None
    try:
        rates = setting.rates(moves, rate, by_broker=by_broker, in_flight=in_flight, own_rates=own)
    except (ClusterError, ThrottleError) as error:
        if not in_flight:
            raise
        rates, refusal = RatesSet(), error  # lists need none of what was refused
    lists = setting.lists(moves, trim=True, in_flight=in_flight)
    if refusal is not None:
        raise refusal
    if lists.too_long:
        raise ThrottleError(
            f"The throttle list of topic {min(lists.too_long)} "
            f"would exceed {LIST_LIMIT} characters",
            state_left="The moves in flight go on, throttled.",
            next_step="Remove what others have left on that list, or allow fewer partitions "
            "in flight (max_partitions_in_flight).",
        )
    return _unthrottled_moves(moves, {**rates.unset, **lists.unset})


def _unthrottled_moves(moves: Collection[Move], unset: Refusals) -> dict[TopicPartition, str]:
    """Moves that rely on one of these resources, and the reasons."""
    reasons = {}
    for move in moves:
        brokers = map(ConfigResource.broker, sorted({*move.current, *move.target}))
        needed = (ConfigResource.topic(move.partition.topic), *brokers)
        lacking = [f"{place}: {unset[place]}" for place in needed if place in unset]
        if lacking:
            reasons[move.partition] = f"the throttle of {'; of '.join(lacking)}"
    return reasons
