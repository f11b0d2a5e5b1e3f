"""Snapshots that are judged: the findings that they open and close, by what the ledger knows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from rehome import installation
from rehome.clusters.watch_rules import WatchRules
from rehome.domain.actions import Action
from rehome.domain.clock import CLOCKS_DIFFER, utc_now
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding import Seen
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.domain.text import second_text
from rehome.fleet import bound, clusters
from rehome.watching.domains_away import domains_away
from rehome.watching.open_and_close import after_snapshot

if TYPE_CHECKING:
    from rehome.cluster.snapshot.model import Snapshot
    from rehome.ledger.store import Ledger
    from rehome.ledger.stores.watched.findings import FollowedFindings
    from rehome.load_history.forecast import DiskForecast
    from rehome.load_history.known_rates import LoadHistory
    from rehome.settings import Settings
    from rehome.watching.judging.judge import ClusterFacts

_COLUMNS = {
    "leader.replication.throttled.rate": "leader_throttled_rate",
    "follower.replication.throttled.rate": "follower_throttled_rate",
    "replica.alter.log.dirs.io.max.bytes.per.second": "log_dir_throttled_rate",
    "leader.replication.throttled.replicas": "leader_throttled_replicas",
    "follower.replication.throttled.replicas": "follower_throttled_replicas",
}


@dataclass(frozen=True, slots=True)
class JudgedSnapshot:
    """What one snapshot has changed.

    :param uri: of the snapshot; ``taken_at``: when it was taken, or judged where it is from the
        future.
    :param incomplete: nothing is planned on it: it leaves out brokers or topics, or is from the
        future.
    :param away: a broker is not alive, and its finding has not opened yet.
    :param drained: live brokers that a plan has emptied, and none has filled since.
    :param domains_away: what is away as a whole, as people name it.
    """

    uri: str
    taken_at: datetime
    followed: FollowedFindings
    incomplete: bool
    away: bool
    drained: frozenset[int]
    domains_away: tuple[str, ...]


def judge_snapshot(ledger: Ledger, uri: str, connection: str, rules: WatchRules) -> JudgedSnapshot:
    """Judge a snapshot of the warehouse, and bring the ledger's findings up to date. One from the
    future shows nothing but that a clock is wrong.

    :param connection: of the cluster, for its broker sets and targets.
    :raises RehomeError: the snapshot cannot be read.
    """
    from rehome.warehouse import read_snapshot
    from rehome.watching.judging.judge import judge

    snapshot, now = read_snapshot(uri), utc_now()
    if snapshot.taken_at > now + CLOCKS_DIFFER:
        return _from_the_future(ledger, uri, snapshot, connection, rules, now)
    settings = installation.settings(connection)
    history, facts = _history(snapshot, settings), cluster_facts(ledger, snapshot, connection)
    traffic = _traffic(snapshot, history)
    judgement = judge(snapshot, rules, facts, _forecast(snapshot, history, settings), traffic)
    followed = ledger.follow_findings(
        snapshot.cluster_id,
        snapshot.taken_at,
        after_snapshot(
            judgement.sightings, rules, judgement.unknown, longest_gap=_longest_gap(connection)
        ),
    )
    open_keys = {(each.kind, each.subject) for each in followed.open}
    dead = [each.key for each in judgement.sightings if each.kind is FindingKind.DEAD_BROKER]
    live = {row["broker"] for row in snapshot.brokers.to_pylist() if row["live"]}
    return JudgedSnapshot(
        uri,
        snapshot.taken_at,
        followed,
        judgement.incomplete,
        away=not open_keys.issuperset(dead),
        drained=frozenset(facts.drained) & live,
        domains_away=tuple(facts.domains_away),
    )


def _from_the_future(
    ledger: Ledger,
    uri: str,
    snapshot: Snapshot,
    connection: str,
    rules: WatchRules,
    now: datetime,
) -> JudgedSnapshot:
    about = {
        "taken_at": second_text(snapshot.taken_at),
        "judged_at": second_text(now),
        "ahead_s": (snapshot.taken_at - now).total_seconds(),
    }
    followed = ledger.follow_findings(
        snapshot.cluster_id,
        now,
        after_snapshot(
            [Seen(FindingKind.WRONG_CLOCK, "", about)],
            rules,
            set(FindingKind) - {FindingKind.WRONG_CLOCK},
            longest_gap=_longest_gap(connection),
        ),
    )
    return JudgedSnapshot(
        uri,
        now,
        followed,
        incomplete=True,
        away=False,
        drained=frozenset(),
        domains_away=(),
    )


def _longest_gap(connection: str) -> timedelta:
    return timedelta(seconds=installation.settings(connection).max_snapshot_gap_s)


def note_racks(ledger: Ledger, snapshot: Snapshot) -> dict[int, str]:
    """Remember the racks of brokers that are alive, "" = none: Kafka does not tell that of a dead
    one. Returns them.
    """
    rows = snapshot.brokers.select(["broker", "live", "rack"]).to_pylist()
    live = {row["broker"]: row["rack"] or "" for row in rows if row["live"]}
    ledger.note_racks(snapshot.cluster_id, live)
    return live


def away_in(ledger: Ledger, snapshot: Snapshot) -> list[str]:
    """What is away as a whole in a snapshot, as people name it."""
    from rehome.cluster.snapshot.columns import rack_path

    live, racks_before = note_racks(ledger, snapshot), ledger.racks(snapshot.cluster_id)
    rows = snapshot.brokers.select(["broker", "rack"]).to_pylist()
    racks = {row["broker"]: row["rack"] or racks_before.get(row["broker"]) for row in rows}
    paths = {b: None if rack is None else tuple(rack_path(rack)) for b, rack in racks.items()}
    return domains_away(paths, live)


def cluster_facts(ledger: Ledger, snapshot: Snapshot, connection: str) -> ClusterFacts:
    """What was Rehome's own when a snapshot was taken, and what people have asked for."""
    from rehome.watching.judging.judge import ClusterFacts

    cluster_id, at = snapshot.cluster_id, snapshot.taken_at
    settings = installation.settings(connection)
    moving = ledger.moving_here_at(cluster_id, at)
    set_here = ledger.throttled_here_at(cluster_id, at)
    return ClusterFacts(
        active=ledger.active_plan(cluster_id) is not None,
        moving=frozenset((each.topic, each.partition) for each in moving),
        drained=drained_brokers(ledger, cluster_id),
        broker_sets=settings.broker_sets,
        ignore_racks=bool(clusters.targets_through(connection).get("ignore_racks")),
        owed=frozenset(f"{resource} {_COLUMNS.get(key, key)}" for resource, key in set_here),
        domains_away=away_in(ledger, snapshot),
        forecast_days=settings.forecast_days,
        wrong_connections=bound.wrong_connections(ledger, cluster_id),
        removed_settings=settings.removed,
    )


def drained_brokers(ledger: Ledger, cluster_id: str) -> frozenset[int]:
    """Brokers that a plan has emptied, and none has filled since."""
    emptied: set[int] = set()
    for plan in sorted(ledger.plans(cluster_id), key=lambda plan: plan.created_at):
        if plan.state is not PlanState.DONE:
            continue
        brokers = {int(broker) for broker in plan.request.get("brokers") or ()}
        if plan.action == Action.DRAIN:
            # Of some topics alone, nothing is known of what else the broker holds.
            emptied |= set() if plan.request.get("topics") else brokers
        elif plan.action == Action.REPLACE:
            replacements = plan.request.get("replacements") or {}
            emptied -= {int(broker) for broker in replacements.values()}
            emptied |= {int(broker) for broker in replacements}
        elif plan.action == Action.EXPAND:
            emptied -= brokers
        elif plan.action == Action.REBALANCE:
            left_out = {int(broker) for broker in plan.request.get("exclude_brokers") or ()}
            emptied -= (brokers or emptied) - left_out
    return frozenset(emptied)


def _history(snapshot: Snapshot, settings: Settings) -> LoadHistory | None:
    """What is known of the cluster's load; None = there is no history."""
    from rehome.load_history.broker_loads import recorded_history
    from rehome.load_history.known_rates import Demands

    demands = Demands(settings.history_days, settings.min_history_hours)
    return recorded_history(installation.warehouse(), snapshot, demands)


def _forecast(
    snapshot: Snapshot, history: LoadHistory | None, settings: Settings
) -> tuple[DiskForecast, ...] | None:
    """Of the brokers' disks as replicas lie and grow now; None = growth is not known."""
    from rehome.load_history.forecast import disk_forecast
    from rehome.load_history.known_rates import GROWTH

    if history is None or not history.is_known(GROWTH):
        return None
    return disk_forecast(snapshot, None, history, settings.forecast_days)


def _traffic(snapshot: Snapshot, history: LoadHistory | None) -> dict[str, dict[int, float]]:
    """Bytes per second into and out of each broker, as far as the history knows them."""
    from rehome.account.clusters.cluster_brokers import broker_states
    from rehome.load_history.broker_loads import BrokerLoads

    if history is None:
        return {}
    states = broker_states(snapshot, BrokerLoads(history))
    rates = {
        "bytes_in": {each.broker: each.written_bytes_per_s for each in states},
        "bytes_out": {each.broker: each.sent_bytes_per_s for each in states},
    }
    return {
        name: {broker: rate or 0.0 for broker, rate in of.items()}
        for name, of in rates.items()
        if any(rate is not None for rate in of.values())
    }
