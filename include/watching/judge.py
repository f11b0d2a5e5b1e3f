"""Problems that one snapshot shows. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from include.cluster.snapshot.model import Snapshot
from include.domain.kafka import BrokerId
from include.load_history.forecast import DiskForecast
from include.watching.columns import Columns
from include.watching.finding import Seen
from include.watching.kinds import FindingKind
from include.watching.rules import WatchRules

NAMED = 20
"""The most partitions or topics that are named; the count covers all."""
_RATES = ("leader_throttled_rate", "follower_throttled_rate", "log_dir_throttled_rate")
TRAFFIC = ("bytes_in", "bytes_out")
_BY_LOG_DIRS = frozenset(
    {
        FindingKind.OFFLINE_LOG_DIR,
        FindingKind.IMBALANCE,
        FindingKind.SLOW_BROKER,
        FindingKind.SLOW_LOG_DIR,
    }
)
_BY_SETTLED_PARTITIONS = frozenset(
    {
        FindingKind.UNDER_REPLICATED,
        FindingKind.UNDER_MIN_ISR,
        FindingKind.RACK_VIOLATION,
        FindingKind.REPLICATION_FACTOR,
        FindingKind.LEADER_SKEW,
    }
)
"""Kinds that ignore partitions in reassignment, so a snapshot with some proves no absence: an
ignored partition may have the problem.
"""
_BY_TOPICS = _BY_SETTLED_PARTITIONS | {FindingKind.IMBALANCE, FindingKind.DEAD_BROKER}
_LISTS = ("leader_throttled_replicas", "follower_throttled_replicas")


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Facts from the ledger that a snapshot does not have.

    :param active: a plan runs or is paused: its throttles are no leftovers.
    :param moving: partitions that plans of Rehome are moving.
    :param drained: brokers that a drain has emptied on purpose.
    :param owed: throttle settings of Rehome that the sweep still has to remove, as text: ``broker
        3`` or ``topic orders``, and the name of the snapshot's column.
    """

    active: bool = False
    moving: Collection[tuple[str, int]] = frozenset()
    drained: Collection[BrokerId] = frozenset()
    owed: Collection[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The problems that a snapshot shows.

    :param unknown: kinds, or kinds with subject, that this snapshot cannot rule out: such findings
        stay as they are.
    :param incomplete: brokers or topics are missing, so the gate refuses to plan on it.
    """

    seen: tuple[Seen, ...]
    unknown: frozenset[FindingKind | tuple[FindingKind, str]] = field(default_factory=frozenset)
    incomplete: bool = False


def judge(
    snapshot: Snapshot,
    rules: WatchRules,
    facts: ClusterFacts,
    forecast: Iterable[DiskForecast] | None = None,
    traffic: Mapping[str, Mapping[BrokerId, float]] | None = None,
) -> Judgement:
    """All problems that one snapshot shows. Whether a finding opens depends on earlier snapshots.

    Replicas of partitions in reassignment are ignored.

    :param forecast: forecast of the brokers' disks; None = growth is not known.
    :param traffic: ``bytes_in`` and ``bytes_out`` → bytes per second of each broker; what is left
        out is not known.
    """
    columns = Columns.of(snapshot)
    live = {
        r["broker"] for r in snapshot.brokers.select(["broker", "live"]).to_pylist() if r["live"]
    }
    found = [
        *_brokers(snapshot, columns, live, facts),
        *_partitions(columns, rules),
        *_racks(snapshot, columns, live),
        *_factors(snapshot, columns, rules),
        *_imbalance(snapshot, columns, live, rules, traffic or {}),
        *_slow(columns, rules),
        *_others(snapshot, columns, facts),
    ]
    unknown: set[FindingKind | tuple[FindingKind, str]] = {
        (FindingKind.IMBALANCE, name) for name in TRAFFIC if name not in (traffic or {})
    }
    forecast = None if forecast is None else tuple(forecast)
    if forecast is None:
        unknown.add(FindingKind.DISK_FULL_SOON)
    else:
        found += _disks(forecast, rules)
        unknown |= {
            (FindingKind.DISK_FULL_SOON, f"broker {row.broker}")
            for row in forecast
            if row.free_bytes is None
        }
    silent = any(row["live"] and not row["answered"] for row in snapshot.brokers.to_pylist())
    hidden = bool(snapshot.hidden_topics)
    unknown |= _unclear(columns, facts, silent=silent, hidden=hidden)
    return Judgement(tuple(found), frozenset(unknown), silent or not live or hidden)


def _unclear(
    columns: Columns, facts: ClusterFacts, *, silent: bool, hidden: bool
) -> set[FindingKind]:
    """Kinds that this snapshot cannot rule out.

    :param silent: a live broker did not report its log dirs; ``hidden``: topics may not be seen.
    """
    unclear: set[FindingKind] = set()
    if silent:
        unclear |= _BY_LOG_DIRS
    if hidden:
        unclear |= _BY_TOPICS
    if columns.in_flight.any():
        unclear |= _BY_SETTLED_PARTITIONS
    if columns.in_flight.any() or facts.active:
        unclear.add(FindingKind.LEFTOVER_THROTTLE)
    return unclear


def _brokers(
    snapshot: Snapshot, columns: Columns, live: Collection[int], facts: ClusterFacts
) -> Iterator[Seen]:
    replicas = dict(zip(columns.ids.tolist(), columns.replicas.tolist(), strict=True))
    listed = set(snapshot.brokers["broker"].to_pylist())
    for broker in sorted({*listed, *replicas} - set(live)):
        if replicas.get(broker):
            yield Seen(FindingKind.DEAD_BROKER, f"broker {broker}", {"replicas": replicas[broker]})
    cordoned = set()
    for row in snapshot.log_dirs.to_pylist():
        if row["cordoned"]:
            cordoned.add(row["broker"])
        if row["broker"] in live and (row["offline"] or row["error"]):
            about = {"error": row["error"], "offline": row["offline"]}
            subject = f"broker {row['broker']} {row['log_dir']}"
            yield Seen(FindingKind.OFFLINE_LOG_DIR, subject, {"broker": row["broker"], **about})
    for broker in sorted(set(live) - cordoned - set(facts.drained)):
        if not replicas.get(broker):
            yield Seen(FindingKind.EMPTY_BROKER, f"broker {broker}", {"broker": broker})


def _partitions(columns: Columns, rules: WatchRules) -> Iterator[Seen]:
    settled = ~columns.in_flight
    under = settled & (columns.in_sync < columns.factor)
    if under.any():
        yield Seen(FindingKind.UNDER_REPLICATED, "", _named(columns, under))
    below = settled & (columns.in_sync < columns.min_isr)
    if below.any():
        yield Seen(FindingKind.UNDER_MIN_ISR, "", _named(columns, below))
    skewed = settled & columns.preferred_in_sync & (columns.leader != columns.preferred)
    skewed &= columns.leader >= 0
    part = skewed.mean() if len(skewed) else 0.0
    if part > rules.leader_skew_fraction:
        facts = {**_named(columns, skewed), "part": round(float(part), 4)}
        yield Seen(FindingKind.LEADER_SKEW, "", facts)


def _racks(snapshot: Snapshot, columns: Columns, live: Collection[int]) -> Iterator[Seen]:
    """A partition is badly spread if one rack holds at least two replicas more than a sibling rack
    that has a live broker without one.
    """
    rows = snapshot.brokers.select(["broker", "rack_path"]).to_pylist()
    paths = {row["broker"]: tuple(row["rack_path"]) for row in rows}
    bad = np.zeros(len(columns.factor), bool)
    for level in range(max(map(len, paths.values()), default=0)):
        parents: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for path in paths.values():
            if len(path) > level:
                parents.setdefault(path[:level], set()).add(path[: level + 1])
        for racks in parents.values():
            names = sorted(racks)
            counts, free = [], []
            for rack in names:
                inside = [b for b, path in paths.items() if path[: level + 1] == rack]
                held = columns.held_by(inside)
                counts.append(held)
                free.append(
                    columns.held_by([b for b in inside if b in live])
                    < len([b for b in inside if b in live])
                )
            most = np.max(counts, axis=0)
            least = np.min(
                [np.where(f, c, 1 << 20) for c, f in zip(counts, free, strict=True)], axis=0
            )
            bad |= most - least >= 2
    bad &= ~columns.in_flight
    if bad.any():
        yield Seen(FindingKind.RACK_VIOLATION, "", _named(columns, bad))


def _factors(snapshot: Snapshot, columns: Columns, rules: WatchRules) -> Iterator[Seen]:
    wrong: dict[str, set[str]] = {}
    if not rules.replication_factors:
        return
    internal = set(snapshot.topics.filter(snapshot.topics["internal"])["topic"].to_pylist())
    declared: dict[int, str] = {}
    for code, topic in enumerate(columns.topics):
        for pattern in rules.replication_factors:
            if topic == pattern or (topic not in internal and fnmatchcase(topic, pattern)):
                declared[code] = pattern
                break
    wanted = np.zeros(len(columns.topics), np.int64)
    for code, pattern in declared.items():
        wanted[code] = rules.replication_factors[pattern]
    asked = wanted[columns.topic_of]
    off = (asked > 0) & (columns.factor != asked) & ~columns.in_flight
    for code in np.unique(columns.topic_of[off]).tolist():
        wrong.setdefault(declared[code], set()).add(columns.topics[code])
    for pattern, topics in sorted(wrong.items()):
        facts = {
            "replication_factor": rules.replication_factors[pattern],
            "count": len(topics),
            "topics": sorted(topics)[:NAMED],
        }
        yield Seen(FindingKind.REPLICATION_FACTOR, pattern, facts)


def _imbalance(
    snapshot: Snapshot,
    columns: Columns,
    live: Collection[int],
    rules: WatchRules,
    traffic: Mapping[str, Mapping[BrokerId, float]],
) -> Iterator[Seen]:
    """Imbalance of live brokers that hold something; empty brokers are a finding of their own."""
    chosen = np.isin(columns.ids, list(live)) & (columns.replicas > 0)
    if chosen.sum() < 2:
        return
    ids = columns.ids[chosen]
    capacity = np.array([_capacity(snapshot).get(b, 0.0) for b in ids.tolist()])
    share = capacity if capacity.all() else np.ones(len(ids))
    yield from _off("bytes", ids, columns.bytes[chosen], share, rules.balance_tolerance)
    if rules.traffic_tolerance is not None:
        for name, rates in traffic.items():
            values = np.array([rates.get(broker, 0.0) for broker in ids.tolist()])
            yield from _off(name, ids, values, share, rules.traffic_tolerance)
    if rules.count_tolerance is not None:
        replicas, leaders = columns.replicas[chosen], columns.leaders[chosen]
        yield from _off("replicas", ids, replicas, share, rules.count_tolerance, numbers=True)
        alike = np.ones(len(ids))
        yield from _off("leaders", ids, leaders, alike, rules.count_tolerance, numbers=True)


def _off(
    name: str, ids: Any, values: Any, share: Any, tolerance: float, *, numbers: bool = False
) -> Iterator[Seen]:
    """Brokers off their share by more than the tolerance.

    :param numbers: of replicas or leaders, of which a plan at half the tolerance may leave one more
        or less than that: such a broker is no finding.
    """
    if not values.sum():
        return
    fair = values.sum() * share / share.sum()
    allowed = tolerance * fair
    if numbers:
        allowed = np.maximum(allowed, min(tolerance, 1.0) / 2 * fair + 1)
    deviation = values / fair - 1
    outside = np.abs(values - fair) > allowed
    if outside.any():
        pairs = zip(ids[outside].tolist(), deviation[outside].tolist(), strict=True)
        worst = sorted(pairs, key=lambda each: -abs(each[1]))[:NAMED]
        off = {str(broker): round(by, 4) for broker, by in worst}
        yield Seen(FindingKind.IMBALANCE, name, {"count": int(outside.sum()), "deviation": off})


def _capacity(snapshot: Snapshot) -> dict[int, float]:
    """Bytes of each broker's log dirs; 0 where one does not report them."""
    found: dict[int, float] = {}
    unknown = set()
    for row in snapshot.log_dirs.to_pylist():
        if row["total_bytes"] is None:
            unknown.add(row["broker"])
        else:
            found[row["broker"]] = found.get(row["broker"], 0.0) + row["total_bytes"]
    return {broker: 0.0 if broker in unknown else total for broker, total in found.items()}


def _slow(columns: Columns, rules: WatchRules) -> Iterator[Seen]:
    for kind, groups in (
        (FindingKind.SLOW_BROKER, columns.followers_by_broker()),
        (FindingKind.SLOW_LOG_DIR, columns.followers_by_log_dir()),
    ):
        lagging = {name: int((lag > rules.slow_lag_messages).sum()) for name, lag in groups.items()}
        all_of, all_lag = sum(map(len, groups.values())), sum(lagging.values())
        for name, lag in sorted(groups.items()):
            others, theirs = all_of - len(lag), all_lag - lagging[name]
            if len(lag) < rules.slow_followers or not others:
                continue
            part, elsewhere = lagging[name] / len(lag), theirs / others
            if part > rules.slow_lag_fraction and elsewhere < rules.slow_lag_fraction / 2:
                facts = {
                    "followers": len(lag),
                    "part": round(part, 3),
                    "others": round(elsewhere, 3),
                }
                yield Seen(kind, name, facts)


def _others(snapshot: Snapshot, columns: Columns, facts: ClusterFacts) -> Iterator[Seen]:
    flying = columns.names(columns.in_flight)
    ours = set(facts.moving)
    foreign = [each for each in flying if each not in ours]
    if foreign:
        named = [f"{topic}-{partition}" for topic, partition in foreign[:NAMED]]
        about = {"count": len(foreign), "partitions": named}
        yield Seen(FindingKind.FOREIGN_REASSIGNMENT, "", about)
    if flying or facts.active:
        return
    left = [
        f"broker {row['broker']} {name}"
        for row in snapshot.brokers.to_pylist()
        for name in _RATES
        if row[name] is not None
    ]
    for name in _LISTS:
        pairs = zip(
            snapshot.topics["topic"].to_pylist(), snapshot.topics[name].to_pylist(), strict=True
        )
        left += [f"topic {topic} {name}" for topic, value in pairs if value]
    left = [each for each in left if each not in facts.owed]
    if left:
        about = {"count": len(left), "throttles": left[:NAMED]}
        yield Seen(FindingKind.LEFTOVER_THROTTLE, "", about)


def _disks(forecast: Iterable[DiskForecast], rules: WatchRules) -> Iterator[Seen]:
    for row in forecast:
        if row.days_until_full is not None and row.days_until_full < rules.disk_days:
            about = {"days": row.days_until_full, "growth_bytes_per_s": row.growth_bytes_per_s}
            yield Seen(FindingKind.DISK_FULL_SOON, f"broker {row.broker}", about)


def _named(columns: Columns, chosen: Any) -> dict[str, Any]:
    first = columns.names(chosen, NAMED)
    named = [f"{topic}-{partition}" for topic, partition in first]
    return {"count": int(chosen.sum()), "partitions": named}
