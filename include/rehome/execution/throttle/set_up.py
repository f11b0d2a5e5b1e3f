"""Setting throttles up, so that they hold for our moves and can be taken down after any crash.

Earlier values are in the ledger before anything changes. See docs/decisions/001 for
where the rate goes, and for what holds where another client has set one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.flows import OwnRate, RateReason
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.actions import SetRate
from rehome.execution.throttle.clear import Cleared, clear_throttle, sweep
from rehome.execution.throttle.configs import ThrottleError, goes_by_broker
from rehome.execution.throttle.plan_throttle import RatesSet, Setting
from rehome.execution.throttle.rate_scope import set_up_by_broker
from rehome.ledger.base.records import ThrottleEntry
from rehome.ledger.store import Ledger

__all__ = [
    "Cleared",
    "ThrottleError",
    "ThrottleSetUp",
    "change_rate",
    "clear_throttle",
    "set_up_throttle",
    "sweep",
]


@dataclass(frozen=True)
class ThrottleSetUp:
    """What was set up.

    :param entries: configuration keys that now hold something of ours.
    :param foreign_rates: rates that another client has set, that hold instead of ours:
        "broker 3 follower.replication.throttled.rate" → bytes per second.
    :param in_waves: topics whose lists would be too long as a whole: their replicas are listed
        when their moves start.
    """

    entries: tuple[ThrottleEntry, ...]
    foreign_rates: Mapping[str, int]
    in_waves: tuple[str, ...] = ()


def set_up_throttle(
    plan: Plan,
    ledger: Ledger,
    cluster: OwnCluster,
    rate_bytes_per_s: int,
    target_bytes_per_s: int | None = None,
    cause: str = "",
    own: Collection[OwnRate] = (),
) -> ThrottleSetUp:
    """Claim the cluster for the plan and throttle its moves. A retry changes nothing.

    What earlier plans still owe is taken back first: it must not be mistaken for another client's.

    :param rate_bytes_per_s: nominal rate, per broker and direction.
    :param target_bytes_per_s: what brokers are to deliver of it; None = all of it.
    :param cause: why it is this rate; "" = it was asked for.
    :param own: nominal rates and targets of brokers that have some of their own.
    :raises PlanConflictError: another plan holds the cluster; nothing was changed.
    :raises RehomeError: a throttle was refused, or does not read back as set. What was set is
        in the ledger: clear_throttle takes it back.
    """
    ledger.claim(plan.plan_id)
    sweep(ledger, cluster)
    by_broker = goes_by_broker(cluster)
    setting = Setting(plan, ledger, cluster)
    rates = setting.rates(plan.moves, rate_bytes_per_s, by_broker=by_broker, own_rates=own)
    _tell(plan, ledger, rates)
    ledger.set_rate(
        plan.plan_id,
        rate_bytes_per_s,
        cause or RateReason.SET_UP,
        reason=RateReason.SET_UP,
        target_bytes_per_s=target_bytes_per_s,
        own=own,
    )
    still_open = ledger.view_of_open(plan.plan_id).moves
    shown = cluster.current_topics({partition.topic for partition in still_open})
    ids = {name: topic.topic_id for name, topic in shown.items() if topic.error is None}
    unfinished = [
        move
        for move in plan.moves
        if move.partition in still_open and move.is_of(ids.get(move.partition.topic, ""))
    ]
    in_waves = setting.lists(unfinished, trim=False).too_long
    entries = tuple(ledger.throttles(plan.plan_id, open_only=True))
    return ThrottleSetUp(entries, rates.foreign, tuple(sorted(in_waves)))


def begin_unthrottled(plan: Plan, ledger: Ledger, cluster: OwnCluster) -> None:
    """Claim the cluster for a plan that runs without a throttle. A retry changes nothing.

    No configuration is changed, and what is in flight is not looked for on any list: the ledger
    holds no rate for the plan. What earlier plans still owe is taken back first, as always.

    :raises PlanConflictError: another plan holds the cluster; nothing was changed.
    """
    ledger.claim(plan.plan_id)
    sweep(ledger, cluster)
    ledger.without_rate(plan.plan_id)


def change_rate(plan: Plan, ledger: Ledger, cluster: OwnCluster, change: SetRate) -> None:
    """Change the rate in mid-run (KIP-179).

    A broker that refuses, or does not answer, may keep the rate it has, until a poll can read it
    (``throttle.coverage``).

    :raises RehomeError: the brokers' default could not be read or set; the next call tries again.
    """
    by_broker, rate = needs_rates_by_broker(plan, ledger, cluster), change.rate_bytes_per_s
    if by_broker:
        sweep(ledger, cluster)
    setting = Setting(plan, ledger, cluster)
    rates = setting.rates(plan.moves, rate, by_broker=by_broker, own_rates=change.own)
    _tell(plan, ledger, rates)
    ledger.set_rate(
        plan.plan_id,
        rate,
        change.cause,
        reason=change.reason,
        target_bytes_per_s=change.target_bytes_per_s,
        limit_bytes_per_s=change.limit_bytes_per_s,
        delivered_bytes_per_s=change.delivered_bytes_per_s,
        own=change.own,
    )


def needs_rates_by_broker(plan: Plan, ledger: Ledger, cluster: OwnCluster) -> bool:
    """Whether brokers need rates of their own: as the plan began, or as the cluster is now."""
    if set_up_by_broker(ledger.throttles(plan.plan_id, open_only=True)):
        return True
    return goes_by_broker(cluster)


def _tell(plan: Plan, ledger: Ledger, rates: RatesSet) -> None:
    for what, rate in rates.foreign.items():
        detail = f"{what} was set to {rate} B/s by another client and holds"
        ledger.add_event(EventKind.FOREIGN_RATE, detail, plan_id=plan.plan_id)
    for resource, error in rates.unset.items():
        detail = f"{resource} is not known to have the rate until it can be read: {error}"
        ledger.add_event(EventKind.RATE_NOT_SET, detail, plan_id=plan.plan_id)
