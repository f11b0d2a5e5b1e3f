"""Setting throttles up, so that they hold for our moves and can be taken down after any crash.

What stood there before is in the ledger before anything changes. See docs/decisions/001 for the
choice of the cluster-wide rate, and for what holds where somebody else has set a rate.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from include.cluster.port import ClusterPort, ConfigChange, ConfigOperation, ConfigResource
from include.errors import RehomeError
from include.execution.model import MoveState
from include.execution.throttle_clearing import Cleared, clear_throttle, sweep
from include.execution.throttle_configs import named, put, read, read_settled
from include.execution.throttle_items import (
    EVERY_REPLICA,
    LIST_LIMIT,
    LISTS,
    list_items,
    own_value,
    rate_keys,
    source_of,
    split,
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
    plan: Plan, ledger: Ledger, cluster: ClusterPort, rate_bytes_per_s: int
) -> ThrottleSetUp:
    """Claim the cluster for the plan and throttle its moves. A retry changes nothing.

    Debts of earlier plans are paid first: what they left must not pass for somebody else's.

    :param rate_bytes_per_s: per broker and direction.
    :raises PlanConflictError: another plan holds the cluster; nothing was changed.
    :raises RehomeError: a throttle was refused, or does not read back as set. What was set is
        in the ledger: clear_throttle takes it back.
    """
    ledger.claim(plan.plan_id)
    sweep(ledger, cluster)
    foreign = _set_rates(plan, ledger, cluster, rate_bytes_per_s)
    ledger.set_rate(plan.plan_id, rate_bytes_per_s, "set up")
    states = ledger.view(plan.plan_id).moves
    unfinished = [move for move in plan.moves if not states[move.partition].ended]
    in_waves = _set_lists(plan, ledger, cluster, unfinished, trim=False)
    entries = tuple(ledger.throttles(plan.plan_id, open_only=True))
    return ThrottleSetUp(entries, foreign, tuple(sorted(in_waves)))


def cover(plan: Plan, ledger: Ledger, cluster: ClusterPort, moves: Collection[Move]) -> None:
    """See to it that these moves, about to start, are on the throttle lists.

    Normally they are, since the set-up; not where a list would have been too long as a whole,
    or where somebody has deleted it meanwhile (Kafka's own tool does that).

    :raises RehomeError: a list was refused; these moves must not start.
    """
    if ledger.plan(plan.plan_id).rate_bytes_per_s is None:
        return
    too_long = _set_lists(plan, ledger, cluster, moves, trim=True)
    if too_long:
        raise RehomeError(
            f"The throttle list of topic {min(too_long)} would exceed {LIST_LIMIT} characters",
            state_left="The moves in flight go on, throttled.",
            next_step="Remove what others have left on that list, or allow fewer partitions "
            "in flight (max_partitions_in_flight).",
        )


def change_rate(
    plan: Plan, ledger: Ledger, cluster: ClusterPort, rate_bytes_per_s: int, cause: str
) -> None:
    """Change the rate in mid-run (KIP-179).

    :raises RehomeError: the change was refused; the next call tries again.
    """
    _set_rates(plan, ledger, cluster, rate_bytes_per_s)
    ledger.set_rate(plan.plan_id, rate_bytes_per_s, cause)


def _set_rates(
    plan: Plan, ledger: Ledger, cluster: ClusterPort, rate_bytes_per_s: int
) -> dict[str, int]:
    """Set the cluster-wide rate, and a broker's own where a higher one of its own would win."""
    keys = rate_keys(plan.moves)
    involved = {broker for move in plan.moves for broker in (*move.current, *move.target)}
    live = sorted(involved & set(cluster.describe_cluster().brokers))
    resources = [ConfigResource.cluster_default(), *map(ConfigResource.broker, live)]
    found = read_settled(cluster, resources, keys) if keys else {}
    journal = ledger.throttles(plan.plan_id, open_only=True)
    known = {(entry.resource, entry.key): entry for entry in journal}
    entries, foreign = [], {}
    for resource, key in [(resource, key) for resource in found for key in keys]:
        standing = own_value(resource, found[resource].get(key))
        wanted = _wanted_rate(resource, standing, known.get((resource, key)), rate_bytes_per_s)
        if wanted is not None:
            entries.append(_entry(plan, resource, key, (wanted,), standing))
        elif standing is not None:
            foreign[f"{named(resource)} {key}"] = int(standing)
    set_them = [ConfigChange(e.resource, e.key, ConfigOperation.SET, e.ours[0]) for e in entries]
    put(ledger, cluster, entries, set_them)
    for what, rate in foreign.items():
        detail = f"{what} was set to {rate} B/s by somebody else and holds"
        ledger.add_event("foreign rate", detail, plan_id=plan.plan_id)
    return foreign


def _wanted_rate(
    resource: ConfigResource,
    standing: str | None,
    known: ThrottleEntry | None,
    rate_bytes_per_s: int,
) -> str | None:
    """The value to set; None where what stands there is to stay.

    The lower of somebody else's rate and ours holds: ours would otherwise either unthrottle
    what is not ours, or move faster than was asked for.
    """
    default = resource == ConfigResource.cluster_default()
    if known is None:
        before = standing
    elif standing in known.ours or standing == known.prior_value:
        before = known.prior_value
    else:
        return None  # somebody has changed it since
    if before is None:
        return str(rate_bytes_per_s) if default or known else None
    if int(before) > rate_bytes_per_s:
        return str(rate_bytes_per_s)
    return None if standing == before else before


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
