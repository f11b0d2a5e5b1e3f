"""Problems that one snapshot shows. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from rehome.cluster.snapshot.model import Snapshot
from rehome.clusters.watch_rules import REMOVED, WatchRules
from rehome.domain.kafka import BrokerId
from rehome.domain.request.limits import BrokerSet
from rehome.domain.run.watched.finding import Seen
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.load_history.forecast import DiskForecast
from rehome.setting_problems import REMOVED_SETTINGS
from rehome.watching.judging.columns import Columns
from rehome.watching.judging.spread import MOST_NAMED, TopicGroups, badly_spread, off_their_share

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


LAGS_BEHIND, FEWEST_FOLLOWERS, LAGGING_PART = 1000, 5, 0.5
"""A follower lags that is so far behind. A broker is slow if a larger part of so many lags."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Facts from the ledger that a snapshot does not have.

    :param active: a plan runs or is paused: its throttles are no leftovers.
    :param moving: partitions that plans of Rehome are moving.
    :param drained: brokers that a drain has emptied on purpose.
    :param broker_sets: of the cluster: racks and shares are judged within them.
    :param ignore_racks: its targets say so: no spread over racks is expected.
    :param owed: throttle settings of Rehome that the sweep still has to remove, as text: ``broker
        3`` or ``topic orders``, and the name of the snapshot's column.
    :param domains_away: what is away as a whole, as people name it.
    :param forecast_days: a disk that is full before is a finding.
    :param removed_settings: that hold for the cluster, and that this version ignores.
    :param wrong_connections: name → what is wrong with it, of those through which nothing acts that
        lead to the cluster, or are bound to it.
    """

    active: bool = False
    moving: Collection[tuple[str, int]] = frozenset()
    drained: Collection[BrokerId] = frozenset()
    broker_sets: Sequence[BrokerSet] = ()
    ignore_racks: bool = False
    owed: Collection[str] = frozenset()
    domains_away: Sequence[str] = ()
    forecast_days: float = 14.0
    wrong_connections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    removed_settings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The problems that a snapshot shows.

    :param unknown: kinds, or kinds with subject, that this snapshot cannot rule out: such findings
        stay as they are.
    :param incomplete: brokers or topics are missing, so the gate refuses to plan on it.
    """

    sightings: tuple[Seen, ...]
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
        out is not known. With broker sets it is not judged: how much of it belongs to which set is
        not known.
    """
    columns = Columns.of(snapshot)
    live = {
        r["broker"] for r in snapshot.brokers.select(["broker", "live"]).to_pylist() if r["live"]
    }
    groups = TopicGroups.of(snapshot, columns, facts.broker_sets)
    traffic = {} if traffic is None or groups.several else traffic
    usable = live - set(facts.drained)
    findings = [
        *_brokers(snapshot, columns, live, facts),
        *_partitions(columns, rules),
        *_racks(snapshot, columns, groups, usable, facts),
        *_factors(snapshot, columns, rules),
        *off_their_share(snapshot, columns, groups, usable, rules, traffic),
        *_slow(columns),
        *_others(snapshot, columns, facts),
        *(
            Seen(FindingKind.WRONG_CONNECTION, f"connection {name}", {**about})
            for name, about in facts.wrong_connections.items()
        ),
        *(Seen(FindingKind.REMOVED_RULE, n, {"successor": REMOVED[n]}) for n in rules.removed),
        *(
            Seen(FindingKind.REMOVED_RULE, f"setting {n}", {"successor": REMOVED_SETTINGS[n]})
            for n in facts.removed_settings
        ),
    ]
    unknown: set[FindingKind | tuple[FindingKind, str]] = {
        (FindingKind.IMBALANCE, name) for name in TRAFFIC if name not in traffic
    }
    forecast = None if forecast is None else tuple(forecast)
    if forecast is None:
        unknown.add(FindingKind.DISK_FULL_SOON)
    else:
        findings += _disks(forecast, facts.forecast_days)
        unknown |= {
            (FindingKind.DISK_FULL_SOON, f"broker {row.broker}")
            for row in forecast
            if row.free_bytes is None
        }
    silent = any(row["live"] and not row["answered"] for row in snapshot.brokers.to_pylist())
    hidden = bool(snapshot.hidden_topics)
    unknown |= _unclear(columns, facts, silent=silent, hidden=hidden)
    return Judgement(tuple(findings), frozenset(unknown), silent or not live or hidden)


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
            about: dict[str, Any] = {"replicas": replicas[broker]}
            if facts.domains_away:
                about["domains_away"] = list(facts.domains_away)
            yield Seen(FindingKind.DEAD_BROKER, f"broker {broker}", about)
    cordoned = set()
    for row in snapshot.log_dirs.to_pylist():
        if row["cordoned"]:
            cordoned.add(row["broker"])
        if row["broker"] in live and (row["offline"] or row["error"]):
            about = {name: row[name] for name in ("broker", "error", "offline")}
            subject = f"broker {row['broker']} {row['log_dir']}"
            yield Seen(FindingKind.OFFLINE_LOG_DIR, subject, about)
    for broker in sorted(set(live) - cordoned - set(facts.drained)):
        if not replicas.get(broker):
            yield Seen(FindingKind.EMPTY_BROKER, f"broker {broker}", {"broker": broker})


def _partitions(columns: Columns, rules: WatchRules) -> Iterator[Seen]:
    settled = ~columns.in_flight
    under = settled & (columns.in_sync < columns.factor)
    if under.any():
        yield Seen(FindingKind.UNDER_REPLICATED, "", _named_facts(columns, under))
    below = settled & (columns.in_sync < columns.min_isr)
    if below.any():
        yield Seen(FindingKind.UNDER_MIN_ISR, "", _named_facts(columns, below))
    skewed = settled & columns.preferred_in_sync & (columns.leader != columns.preferred)
    skewed &= columns.leader >= 0
    part = skewed.mean() if len(skewed) else 0.0
    if part > rules.leader_skew_fraction:
        facts = {**_named_facts(columns, skewed), "part": round(float(part), 4)}
        yield Seen(FindingKind.LEADER_SKEW, "", facts)


def _racks(
    snapshot: Snapshot,
    columns: Columns,
    groups: TopicGroups,
    usable: Collection[BrokerId],
    facts: ClusterFacts,
) -> Iterator[Seen]:
    if facts.ignore_racks:
        return
    bad = badly_spread(snapshot, columns, groups, usable) & ~columns.in_flight
    if bad.any():
        yield Seen(FindingKind.RACK_VIOLATION, "", _named_facts(columns, bad))


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
    factors = np.zeros(len(columns.topics), np.int64)
    for code, pattern in declared.items():
        factors[code] = rules.replication_factors[pattern]
    target_factor = factors[columns.topic_of]
    off = (target_factor > 0) & (columns.factor != target_factor) & ~columns.in_flight
    for code in np.unique(columns.topic_of[off]).tolist():
        wrong.setdefault(declared[code], set()).add(columns.topics[code])
    more = np.unique(columns.topic_of[off & (columns.factor > target_factor)]).tolist()
    lowers = {declared[code] for code in more}
    for pattern, topics in sorted(wrong.items()):
        facts = {
            "replication_factor": rules.replication_factors[pattern],
            "count": len(topics),
            "topics": sorted(topics)[:MOST_NAMED],
            "lowers": pattern in lowers,
        }
        yield Seen(FindingKind.REPLICATION_FACTOR, pattern, facts)


def _slow(columns: Columns) -> Iterator[Seen]:
    for kind, groups in (
        (FindingKind.SLOW_BROKER, columns.followers_by_broker()),
        (FindingKind.SLOW_LOG_DIR, columns.followers_by_log_dir()),
    ):
        lagging = {name: int((lag > LAGS_BEHIND).sum()) for name, lag in groups.items()}
        all_of, all_lag = sum(map(len, groups.values())), sum(lagging.values())
        for name, lag in sorted(groups.items()):
            others, theirs = all_of - len(lag), all_lag - lagging[name]
            if len(lag) < FEWEST_FOLLOWERS or not others:
                continue
            part, elsewhere = lagging[name] / len(lag), theirs / others
            if part > LAGGING_PART and elsewhere < LAGGING_PART / 2:
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
        partitions = [f"{topic}-{partition}" for topic, partition in foreign[:MOST_NAMED]]
        about = {"count": len(foreign), "partitions": partitions}
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
        about = {"count": len(left), "throttles": left[:MOST_NAMED]}
        yield Seen(FindingKind.LEFTOVER_THROTTLE, "", about)


def _disks(forecast: Iterable[DiskForecast], days: float) -> Iterator[Seen]:
    for row in forecast:
        if row.days_until_full is not None and row.days_until_full < days:
            about = {"days": row.days_until_full, "growth_bytes_per_s": row.growth_bytes_per_s}
            yield Seen(FindingKind.DISK_FULL_SOON, f"broker {row.broker}", about)


def _named_facts(columns: Columns, chosen: Any) -> dict[str, Any]:
    first = columns.names(chosen, MOST_NAMED)
    partitions = [f"{topic}-{partition}" for topic, partition in first]
    return {"count": int(chosen.sum()), "partitions": partitions}
