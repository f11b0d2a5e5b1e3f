"""Setting throttles up, so that they hold for our moves and can be taken down after any crash.

What stood there before is in the ledger before anything changes. See docs/decisions/001 for
where the rate goes, and for what holds where somebody else has set one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from include.cluster.port import ClusterPort, ConfigChange, ConfigOperation, ConfigResource
from include.errors import RehomeError
from include.execution.model import MoveState, SetRate
from include.execution.rates import RateReason
from include.execution.throttle_clearing import Cleared, clear_throttle, sweep
from include.execution.throttle_configs import named, put, read, read_settled
from include.execution.throttle_items import (
    CHANGED_SINCE,
    EVERY_REPLICA,
    LIST_LIMIT,
    LISTS,
    list_items,
    own_value,
    rate_keys,
    source_of,
    split,
)
from include.execution.throttle_rates import (
    DEFAULT,
    choose_rates,
    default_is_honoured,
    set_up_by_broker,
)
from include.ledger.records import ThrottleEntry
from include.ledger.store import Ledger
from include.planning.plan import Move, Plan

__all__ = [
    "Cleared",
    "ThrottleSetUp",
    "change_rate",
    "clear_throttle",
    "cover",
    "set_up_throttle",
    "sweep",
]


@dataclass(frozen=True)
class ThrottleSetUp:
    """What was set up.

    :param entries: configuration keys that now hold something of ours.
    :param foreign_rates: rates that somebody else has set, that hold instead of ours:
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
    cluster: ClusterPort,
    rate_bytes_per_s: int,
    target_bytes_per_s: int | None = None,
    cause: str = "",
) -> ThrottleSetUp:
    """Claim the cluster for the plan and throttle its moves. A retry changes nothing.

    Debts of earlier plans are paid first: what they left must not pass for somebody else's.

    :param rate_bytes_per_s: nominal rate, per broker and direction.
    :param target_bytes_per_s: what brokers are to deliver of it; None = all of it.
    :param cause: why it is this rate; "" = it was asked for.
    :raises PlanConflictError: another plan holds the cluster; nothing was changed.
    :raises RehomeError: a throttle was refused, or does not read back as set. What was set is
        in the ledger: clear_throttle takes it back.
    """
    ledger.claim(plan.plan_id)
    sweep(ledger, cluster)
    by_broker = not default_is_honoured(cluster.finalized_features())
    rate = rate_bytes_per_s
    foreign = _set_rates(plan, ledger, cluster, plan.moves, rate, by_broker=by_broker)
    _tell(plan, ledger, foreign)
    ledger.set_rate(
        plan.plan_id,
        rate_bytes_per_s,
        cause or RateReason.SET_UP,
        reason=RateReason.SET_UP,
        target_bytes_per_s=target_bytes_per_s,
    )
    states = ledger.view(plan.plan_id).moves
    unfinished = [move for move in plan.moves if not states[move.partition].ended]
    in_waves = _set_lists(plan, ledger, cluster, unfinished, trim=False)
    entries = tuple(ledger.throttles(plan.plan_id, open_only=True))
    return ThrottleSetUp(entries, foreign, tuple(sorted(in_waves)))


def cover(plan: Plan, ledger: Ledger, cluster: ClusterPort, moves: Collection[Move]) -> None:
    """See to it that these moves, about to start, will be throttled.

    Normally they are, since the set-up; not where a list would have been too long as a whole,
    where somebody has deleted a list or a rate meanwhile (Kafka's own tool does that), or where a
    broker that needs a rate of its own was away.

    :raises RehomeError: a list or a rate was refused; these moves must not start.
    """
    rate = ledger.plan(plan.plan_id).rate_bytes_per_s
    if rate is None:
        return
    by_broker = _by_broker(plan, ledger, cluster)
    if by_broker:
        sweep(ledger, cluster)
    _set_rates(plan, ledger, cluster, moves, rate, by_broker=by_broker)
    too_long = _set_lists(plan, ledger, cluster, moves, trim=True)
    if too_long:
        raise RehomeError(
            f"The throttle list of topic {min(too_long)} would exceed {LIST_LIMIT} characters",
            state_left="The moves in flight go on, throttled.",
            next_step="Remove what others have left on that list, or allow fewer partitions "
            "in flight (max_partitions_in_flight).",
        )


def change_rate(plan: Plan, ledger: Ledger, cluster: ClusterPort, change: SetRate) -> None:
    """Change the rate in mid-run (KIP-179).

    :raises RehomeError: the change was refused; the next call tries again.
    """
    by_broker, rate = _by_broker(plan, ledger, cluster), change.rate_bytes_per_s
    if by_broker:
        sweep(ledger, cluster)
    foreign = _set_rates(plan, ledger, cluster, plan.moves, rate, by_broker=by_broker)
    _tell(plan, ledger, foreign)
    ledger.set_rate(
        plan.plan_id,
        rate,
        change.cause,
        reason=change.reason,
        target_bytes_per_s=change.target_bytes_per_s,
        limit_bytes_per_s=change.limit_bytes_per_s,
        delivered_bytes_per_s=change.delivered_bytes_per_s,
    )


def _by_broker(plan: Plan, ledger: Ledger, cluster: ClusterPort) -> bool:
    """Whether brokers need rates of their own: as the plan began, or as the cluster is now."""
    if set_up_by_broker(ledger.throttles(plan.plan_id, open_only=True)):
        return True
    return not default_is_honoured(cluster.finalized_features())


def _set_rates(
    plan: Plan,
    ledger: Ledger,
    cluster: ClusterPort,
    moves: Collection[Move],
    rate_bytes_per_s: int,
    *,
    by_broker: bool,
) -> dict[str, int]:
    """See to the rates that these moves need; those of somebody else that hold instead."""
    keys = rate_keys(moves)
    if not keys:
        return {}
    involved = {broker for move in moves for broker in (*move.current, *move.target)}
    live = sorted(involved & set(cluster.describe_cluster().brokers))
    brokers = [ConfigResource.broker(broker) for broker in live]
    known = {(e.resource, e.key): e for e in ledger.throttles(plan.plan_id, open_only=True)}
    ours = brokers if by_broker else [DEFAULT]
    journalled = all((resource, key) in known for resource in ours for key in keys)
    found = (read if journalled else read_settled)(cluster, [DEFAULT, *brokers], keys)
    choices = list(choose_rates(found, keys, rate_bytes_per_s, by_broker=by_broker, known=known))
    changes, entries = [], []
    for choice in choices:
        if choice.wanted is not None and not choice.done:
            where, wanted = (choice.resource, choice.key), choice.wanted
            changes.append(ConfigChange(*where, ConfigOperation.SET, wanted))
            entries.append(_entry(plan, *where, (wanted,), choice.standing))
        elif choice.overruled:
            entry = known[choice.resource, choice.key]
            ledger.mark_throttle(entry, entry.state, CHANGED_SINCE)
    put(ledger, cluster, entries, changes)
    return {f"{named(c.resource)} {c.key}": c.holds for c in choices if c.holds is not None}


def _tell(plan: Plan, ledger: Ledger, foreign: Mapping[str, int]) -> None:
    for what, rate in foreign.items():
        detail = f"{what} was set to {rate} B/s by somebody else and holds"
        ledger.add_event("foreign rate", detail, plan_id=plan.plan_id)


def _set_lists(
    plan: Plan, ledger: Ledger, cluster: ClusterPort, moves: Collection[Move], *, trim: bool
) -> set[str]:
    """Append what is missing; the topics whose lists would be too long are left and returned."""
    items = list_items(moves)
    resources = {ConfigResource.topic(topic) for topic, _ in items}
    reading = read if trim else read_settled
    found = reading(cluster, sorted(resources), LISTS) if resources else {}
    entries, too_long = [], set()
    for (topic, key), wanted in items.items():
        resource = ConfigResource.topic(topic)
        if resource not in found:
            continue  # the topic has gone; its moves are settled by the next look
        standing = own_value(resource, found[resource].get(key))
        missing = _missing(wanted, standing)
        entry = _entry(plan, resource, key, missing, standing)
        if trim and not _fits(standing, missing):
            standing = _trim(plan, ledger, cluster, entry, moves)
        if not _fits(standing, missing):
            too_long.add(topic)
        elif missing:
            entries.append(entry)
    add_them = [
        ConfigChange(entry.resource, entry.key, ConfigOperation.APPEND, ",".join(entry.ours))
        for entry in entries
    ]
    put(ledger, cluster, entries, add_them)
    return too_long


def _missing(wanted: Collection[str], standing: str | None) -> tuple[str, ...]:
    there = split(standing)
    return () if EVERY_REPLICA in there else tuple(i for i in wanted if i not in there)


def _fits(standing: str | None, missing: Collection[str]) -> bool:
    return not missing or len(",".join([*split(standing), *missing])) <= LIST_LIMIT


def _trim(
    plan: Plan,
    ledger: Ledger,
    cluster: ClusterPort,
    entry: ThrottleEntry,
    starting: Collection[Move],
) -> str | None:
    """Take what is ours of ended moves off a list; what stands there then."""
    states = ledger.view(plan.plan_id).moves
    needed = {str(move.partition.partition) for move in starting}
    needed |= {str(p.partition) for p, state in states.items() if state is MoveState.ADMITTED}
    standing = read(cluster, [entry.resource], [entry.key])[entry.resource].get(entry.key)
    there = own_value(entry.resource, standing)
    known = [
        item
        for other in ledger.throttles(plan.plan_id, open_only=True)
        if (other.resource, other.key) == (entry.resource, entry.key)
        for item in other.ours
    ]
    spare = [i for i in known if i in split(there) and i.partition(":")[0] not in needed]
    if spare:
        change = ConfigChange(entry.resource, entry.key, ConfigOperation.SUBTRACT, ",".join(spare))
        cluster.alter_configs([change])
    return ",".join(item for item in split(there) if item not in set(spare))


def _entry(
    plan: Plan,
    resource: ConfigResource,
    key: str,
    ours: tuple[str, ...],
    standing: str | None,
) -> ThrottleEntry:
    source = "NOT_SET" if standing is None else source_of(resource)
    return ThrottleEntry(plan.plan_id, plan.cluster_id, resource, key, ours, standing, source)
