"""What one snapshot shows, each on a small cluster: well but for one thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from rehome.cluster.snapshot.model import BROKERS, LOG_DIRS, REPLICAS, TOPICS, Snapshot
from rehome.clusters.watch_rules import REMOVED, WatchRules
from rehome.domain.request.limits import BrokerSet
from rehome.domain.run.watched.finding import FindingRecord, Seen
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.load_history.forecast import DiskForecast
from rehome.settings import Settings
from rehome.watching.finding_text import text_of
from rehome.watching.judging.judge import ClusterFacts, judge

RACK = (FindingKind.RACK_VIOLATION, "")
RACKS = {1: "a", 2: "b", 3: "a", 4: "b"}


def table(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{n: r.get(n) for n in schema.names} for r in rows], schema)


def cluster(
    changed: Mapping[tuple[int, int], Mapping[str, Any]] | None = None,
    layout: Mapping[int, tuple[int, ...]] | None = None,
    brokers: Mapping[int, Mapping[str, Any]] | None = None,
    log_dirs: Mapping[int, Mapping[str, Any]] | None = None,
    topic: Mapping[str, Any] | None = None,
) -> Snapshot:
    """Topic t, 12 partitions on brokers 1 and 2 or 3 and 4; parts of it as given.

    :param changed: of replicas, by partition and broker.
    """
    rings = [(1, 2), (2, 1), (3, 4), (4, 3)]
    placed = {p: rings[p % 4] for p in range(12)} | dict(layout or {})
    replicas = [
        {
            "topic": "t", "partition": p, "broker": b, "position": i, "is_leader": i == 0,
            "in_isr": True, "adding": False, "removing": False, "log_dir": "/d",
            "size_bytes": 100, "log_end_offset": 5000, **(changed or {}).get((p, b), {}),
        }
        for p, row in placed.items()
        for i, b in enumerate(row)
    ]  # fmt: skip
    ids = sorted({*RACKS, *(brokers or {})})
    hosts = [
        {"broker": b, "rack_path": [RACKS.get(b, "a")], "live": True, "answered": True,
         **(brokers or {}).get(b, {})}
        for b in ids
    ]  # fmt: skip
    dirs = [
        {"broker": b, "log_dir": "/d", "total_bytes": 10_000, "usable_bytes": 5000,
         "offline": False, "stray_replicas": 0, **(log_dirs or {}).get(b, {})}
        for b in ids
    ]  # fmt: skip
    topics = [{"topic": "t", "internal": False, "visible": True, "min_insync_replicas": 1}]
    return Snapshot(
        "c1",
        datetime(2030, 1, 1, tzinfo=UTC),
        1.0,
        table(BROKERS, hosts),
        table(LOG_DIRS, dirs),
        table(TOPICS, [{**topics[0], **(topic or {})}]),
        table(REPLICAS, replicas),
    )


def seen(snapshot: Snapshot, facts: ClusterFacts | None = None, **rules: Any) -> list[Seen]:
    return list(judge(snapshot, WatchRules(**rules), facts or ClusterFacts(), []).sightings)


MANY = {p: ((1, 2), (2, 1), (3, 4), (4, 3))[p % 4] for p in range(24)}
LATE = {(p, 4): {"log_end_offset": 100} for p in range(24) if p % 4 == 2}
OUT = {(0, 2): {"in_isr": False}}
CASES: list[tuple[Snapshot, dict[str, Any], FindingKind, str]] = [
    (cluster(brokers={4: {"live": False}}), {}, FindingKind.DEAD_BROKER, "broker 4"),
    (cluster(log_dirs={2: {"offline": True}}), {}, FindingKind.OFFLINE_LOG_DIR, "broker 2 /d"),
    (cluster(OUT), {}, FindingKind.UNDER_REPLICATED, ""),
    (cluster(OUT, topic={"min_insync_replicas": 2}), {}, FindingKind.UNDER_MIN_ISR, ""),
    (cluster(layout={0: (1, 3)}), {"balance_tolerance": 1}, FindingKind.RACK_VIOLATION, ""),
    (cluster(), {"replication_factors": {"t*": 3}}, FindingKind.REPLICATION_FACTOR, "t*"),
    (cluster(LATE, layout=MANY), {}, FindingKind.SLOW_BROKER, "broker 4"),
    (cluster({(0, 1): {"size_bytes": 900}}), {}, FindingKind.IMBALANCE, "bytes"),
    (
        cluster({(p, b): {"is_leader": b == 2} for p in (0, 4, 8) for b in (1, 2)}),
        {},
        FindingKind.LEADER_SKEW,
        "",
    ),
    (cluster(brokers={5: {}}), {}, FindingKind.EMPTY_BROKER, "broker 5"),
    (cluster(brokers={1: {"leader_throttled_rate": 9}}), {}, FindingKind.LEFTOVER_THROTTLE, ""),
    (
        cluster({(0, 2): {"adding": True, "in_isr": False}}),
        {},
        FindingKind.FOREIGN_REASSIGNMENT,
        "",
    ),
]


def test_a_cluster_that_is_well_has_nothing() -> None:
    assert seen(cluster()) == []


@pytest.mark.parametrize(("snapshot", "rules", "kind", "subject"), CASES)
def test_what_is_wrong_is_seen(
    snapshot: Snapshot, rules: dict[str, Any], kind: FindingKind, subject: str
) -> None:
    keys = [each.key for each in seen(snapshot, **rules)]
    assert (kind, subject) in keys
    expected_too = {FindingKind.UNDER_REPLICATED} if kind is FindingKind.UNDER_MIN_ISR else set()
    assert {each for each, _ in keys} - expected_too == {kind}


def test_what_is_ours_or_meant_is_nothing() -> None:
    ours = ClusterFacts(active=True, moving={("t", 0)})
    snapshot = cluster({(0, 2): {"adding": True}}, brokers={1: {"leader_throttled_rate": 9}})
    assert seen(snapshot, ours) == []
    assert seen(cluster(brokers={5: {}}), ClusterFacts(drained={5})) == []


def test_a_drained_broker_that_holds_a_replica_again_unbalances_nothing() -> None:
    snapshot = cluster(layout={12: (5, 2)}, brokers={5: {}})
    assert FindingKind.IMBALANCE in {each.kind for each in seen(snapshot)}
    assert seen(snapshot, ClusterFacts(drained={5})) == []


def test_a_rack_whose_only_broker_is_drained_is_not_expected_to_hold_replicas() -> None:
    snapshot = cluster(
        layout=dict.fromkeys(range(12), (1, 3)), brokers={4: {"live": False}, 2: {"live": True}}
    )
    kinds = {each.kind for each in seen(snapshot)}
    assert FindingKind.RACK_VIOLATION in kinds
    drained = {each.kind for each in seen(snapshot, ClusterFacts(drained={2}))}
    assert FindingKind.RACK_VIOLATION not in drained


LAYOUT = dict.fromkeys(range(12), (1, 3))
LOPSIDED = cluster(layout=LAYOUT)
"""All of topic t is on brokers 1 and 3, both in rack a."""


def test_racks_are_those_of_the_broker_set_and_none_where_they_are_ignored() -> None:
    both = BrokerSet(name="a", topics=("t",), brokers=(1, 3))
    wide = BrokerSet(name="all", topics=("t",), brokers=(1, 2, 3))
    assert RACK in {each.key for each in seen(LOPSIDED)}
    assert RACK in {each.key for each in seen(LOPSIDED, ClusterFacts(broker_sets=[wide]))}
    assert RACK not in {each.key for each in seen(LOPSIDED, ClusterFacts(broker_sets=[both]))}
    assert RACK not in {each.key for each in seen(LOPSIDED, ClusterFacts(ignore_racks=True))}


def test_live_brokers_without_a_rack_are_one_more_rack_and_dead_ones_are_in_none() -> None:
    def without_rack(**row: object) -> set[tuple[FindingKind, str]]:
        brokers = {broker: {"rack_path": [], **row} for broker in (1, 3)}
        return {e.key for e in seen(cluster(layout=LAYOUT, brokers=brokers))}

    assert RACK in without_rack()
    assert RACK not in without_rack(live=False, answered=False)


def test_shares_are_those_of_the_broker_set() -> None:
    """Topic u is on broker 4 alone, and t on the others: 4 holds twice what they do."""
    snapshot = cluster(layout={p: ((1, 2), (2, 3), (3, 1))[p % 3] for p in range(12)})
    rows = snapshot.replicas.to_pylist()
    rows += [
        {**rows[0], "topic": "u", "partition": p, "broker": 4, "position": 0, "is_leader": True}
        for p in range(16)
    ]
    topics = [*snapshot.topics.to_pylist(), {**snapshot.topics.to_pylist()[0], "topic": "u"}]
    snapshot = replace(snapshot, replicas=table(REPLICAS, rows), topics=table(TOPICS, topics))
    of_u = BrokerSet(name="u", topics=("u",), brokers=(4,), exclusive=True)
    everywhere = BrokerSet(name="u", topics=("u",), brokers=(1, 2, 3, 4))
    off = {("imbalance", "bytes")}
    assert off <= {each.key for each in seen(snapshot)}
    assert off <= {each.key for each in seen(snapshot, ClusterFacts(broker_sets=[everywhere]))}
    assert not off & {each.key for each in seen(snapshot, ClusterFacts(broker_sets=[of_u]))}


def test_a_disk_that_will_be_full_is_seen_and_without_a_forecast_it_is_not_known() -> None:
    soon = DiskForecast(2, 100, 10, 1.0, 10, 0, 3.0)
    later = DiskForecast(3, 100, 90, 1.0, 90, 80, 90.0)
    found = judge(cluster(), WatchRules(), ClusterFacts(), [soon, later])
    assert [each.key for each in found.sightings] == [(FindingKind.DISK_FULL_SOON, "broker 2")]
    unknown = judge(cluster(), WatchRules(), ClusterFacts(), None).unknown
    assert FindingKind.DISK_FULL_SOON in unknown


@pytest.mark.parametrize(
    ("snapshot", "facts", "unknown"),
    [
        (
            cluster(brokers={2: {"answered": False}}),
            ClusterFacts(),
            {FindingKind.OFFLINE_LOG_DIR, FindingKind.SLOW_BROKER, FindingKind.IMBALANCE},
        ),
        (
            replace(cluster(), hidden_topics=("secret",)),
            ClusterFacts(),
            {FindingKind.UNDER_MIN_ISR, FindingKind.RACK_VIOLATION, FindingKind.DEAD_BROKER},
        ),
        (
            cluster({(0, 2): {"adding": True}}),
            ClusterFacts(moving={("t", 0)}),
            {FindingKind.UNDER_REPLICATED, FindingKind.LEFTOVER_THROTTLE},
        ),
        (cluster(), ClusterFacts(active=True), {FindingKind.LEFTOVER_THROTTLE}),
    ],
)
def test_a_finding_that_a_snapshot_cannot_show_is_unknown_and_not_closed(
    snapshot: Snapshot, facts: ClusterFacts, unknown: set[FindingKind]
) -> None:
    assert unknown <= judge(snapshot, WatchRules(), facts).unknown
    assert not unknown & judge(cluster(), WatchRules(), ClusterFacts()).unknown


def test_disks_that_do_not_report_their_size_are_unknown() -> None:
    row = DiskForecast(2, None, None, 1.0, None, None, None)
    unknown = judge(cluster(), WatchRules(), ClusterFacts(), [row]).unknown
    assert (FindingKind.DISK_FULL_SOON, "broker 2") in unknown


def test_traffic_is_judged_where_it_is_known() -> None:
    rates = {1: 100.0, 2: 100.0, 3: 100.0, 4: 10.0}
    judged = judge(cluster(), WatchRules(), ClusterFacts(), (), {"bytes_in": rates})
    (seen,) = judged.sightings
    assert (seen.kind, seen.subject) == (FindingKind.IMBALANCE, "bytes_in")
    assert seen.facts["deviation"] == {"4": -0.871}
    assert judged.unknown == {(FindingKind.IMBALANCE, "bytes_out")}
    off = WatchRules(traffic_tolerance=None)
    assert judge(cluster(), off, ClusterFacts(), (), {"bytes_in": rates}).sightings == ()
    of_t = ClusterFacts(broker_sets=[BrokerSet(name="t", topics=("t",), brokers=(1, 2))])
    within = judge(cluster(), WatchRules(), of_t, (), {"bytes_in": rates})
    assert (FindingKind.IMBALANCE, "bytes_in") in within.unknown, "of which set is not known"


def test_a_rule_that_this_version_ignores_is_a_finding_with_what_holds_instead() -> None:
    rules = WatchRules.parse({"disk_days": 3, "slow_followers": 9})
    found = judge(cluster(), rules, ClusterFacts(), []).sightings
    assert [each.key for each in found] == [
        (FindingKind.REMOVED_RULE, "disk_days"),
        (FindingKind.REMOVED_RULE, "slow_followers"),
    ]
    assert found[0].facts == {"successor": REMOVED["disk_days"]}


def test_a_setting_that_this_version_ignores_is_a_finding_with_what_holds_instead() -> None:
    facts = ClusterFacts(removed_settings=Settings.load({"max_driver_replicas": 7}).removed)
    (found,) = judge(cluster(), WatchRules(), facts, []).sightings
    assert found.key == (FindingKind.REMOVED_RULE, "setting max_driver_replicas")
    at = datetime(2030, 1, 1, tzinfo=UTC)
    record = FindingRecord("c1", *found.key, at, at, at, 3, 0, at, None, found.facts)
    assert text_of(record) == (
        "The setting max_driver_replicas is ignored. In its place: nothing: one process plans a "
        "cluster of any size."
    )
