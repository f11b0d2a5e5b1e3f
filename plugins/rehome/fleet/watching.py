"""Watching on Airflow's side: what is known of a cluster apart from a snapshot, and what follows.

The rules, and what a snapshot shows by them, are in ``include/watching``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from include.execution.access.open_windows import FixedWindow
from include.watching.rules import WatchRules
from rehome import installation
from rehome.fleet import bound, clusters, policies, watch_runs
from rehome.fleet.watch_runs import LeftByBudget
from rehome.hooks.cluster import KafkaClusterHook
from rehome.run.authority import own_snapshot

if TYPE_CHECKING:
    from include.cluster.snapshot.model import Snapshot
    from include.ledger.store import Ledger
    from include.ledger.stores.authority.taken_snapshots import TakenSnapshot
    from include.ledger.stores.watched.findings import FollowedFindings
    from include.load_history.forecast import DiskForecast
    from include.load_history.known_rates import LoadHistory
    from include.watching.judging.judge import ClusterFacts
    from include.watching.respond import Facts

log = logging.getLogger(__name__)

_COLUMNS = {
    "leader.replication.throttled.rate": "leader_throttled_rate",
    "follower.replication.throttled.rate": "follower_throttled_rate",
    "replica.alter.log.dirs.io.max.bytes.per.second": "log_dir_throttled_rate",
    "leader.replication.throttled.replicas": "leader_throttled_replicas",
    "follower.replication.throttled.replicas": "follower_throttled_replicas",
}


@dataclass(frozen=True, slots=True)
class Fresh:
    """A snapshot that has not been judged, and the connection that leads to its cluster."""

    taken: TakenSnapshot
    connection: str

    @property
    def uri(self) -> str:
        """Where it is.

        :raises RehomeError: its files are not there, or have changed since.
        """
        return own_snapshot.unchanged(self.taken)


@dataclass(frozen=True, slots=True)
class JudgedSnapshot:
    """What one snapshot has changed.

    :param uri: of the snapshot; ``taken_at``: when it was taken.
    :param incomplete: it leaves out brokers or topics.
    :param away: a broker is not alive, and its finding has not opened yet.
    :param dead_fraction: of the cluster's brokers, those that are not alive.
    :param drained: live brokers that a plan has emptied, and none has filled since.
    :param domains_away: racks and data centres of which no broker is alive.
    """

    uri: str
    taken_at: datetime
    followed: FollowedFindings
    incomplete: bool
    away: bool
    dead_fraction: float
    drained: frozenset[int]
    domains_away: tuple[str, ...]


def judged(ledger: Ledger, uri: str, connection: str, rules: WatchRules) -> JudgedSnapshot:
    """Judge a snapshot of the warehouse, and bring the ledger's findings up to date.

    :param connection: of the cluster, for its broker sets and targets.
    :raises RehomeError: the snapshot cannot be read.
    """
    from include.warehouse import read_snapshot
    from include.watching.judging.judge import judge
    from include.watching.kinds import FindingKind

    snapshot = read_snapshot(uri)
    history, facts = _history(snapshot), cluster_facts(ledger, snapshot, connection)
    traffic = _traffic(snapshot, history)
    found = judge(snapshot, rules, facts, _forecast(snapshot, history), traffic)
    followed = ledger.follow_findings(
        snapshot.cluster_id,
        snapshot.taken_at,
        found.seen,
        rules,
        found.unknown,
        longest_gap=timedelta(seconds=installation.settings().max_snapshot_gap_s),
    )
    known = {(each.kind, each.subject) for each in followed.open}
    dead = [each.key for each in found.seen if each.kind is FindingKind.DEAD_BROKER]
    live = {row["broker"] for row in snapshot.brokers.to_pylist() if row["live"]}
    return JudgedSnapshot(
        uri,
        snapshot.taken_at,
        followed,
        found.incomplete,
        away=not known.issuperset(dead),
        dead_fraction=len(dead) / max(1, len(dead) + len(live)),
        drained=frozenset(facts.drained) & live,
        domains_away=tuple(facts.domains_away),
    )


def note_racks(ledger: Ledger, snapshot: Snapshot) -> dict[int, str]:
    """Remember the racks of brokers that are alive, "" = none: Kafka does not tell that of a dead
    one. Returns them.
    """
    rows = snapshot.brokers.select(["broker", "live", "rack"]).to_pylist()
    live = {row["broker"]: row["rack"] or "" for row in rows if row["live"]}
    ledger.note_racks(snapshot.cluster_id, live)
    return live


def away_in(ledger: Ledger, snapshot: Snapshot) -> list[str]:
    """Racks and data centres of which no broker is alive in a snapshot, as people name them."""
    from include.cluster.snapshot.columns import rack_path
    from include.watching.domains_away import domains_away

    live, known = note_racks(ledger, snapshot), ledger.racks(snapshot.cluster_id)
    rows = snapshot.brokers.select(["broker", "rack"]).to_pylist()
    racks = {row["broker"]: row["rack"] or known.get(row["broker"]) for row in rows}
    paths = {b: None if rack is None else tuple(rack_path(rack)) for b, rack in racks.items()}
    return domains_away(paths, live)


def cluster_facts(ledger: Ledger, snapshot: Snapshot, connection: str) -> ClusterFacts:
    """What was Rehome's own when a snapshot was taken, and what people have asked for."""
    from include.watching.judging.judge import ClusterFacts

    cluster_id, at = snapshot.cluster_id, snapshot.taken_at
    moving = ledger.moving_here_at(cluster_id, at)
    set_here = ledger.throttled_here_at(cluster_id, at)
    return ClusterFacts(
        active=ledger.active_plan(cluster_id) is not None,
        moving=frozenset((each.topic, each.partition) for each in moving),
        drained=drained(ledger, cluster_id),
        broker_sets=installation.settings(connection).broker_sets,
        ignore_racks=bool(clusters.targets_through(connection).get("ignore_racks")),
        owed=frozenset(f"{resource} {_COLUMNS.get(key, key)}" for resource, key in set_here),
        domains_away=away_in(ledger, snapshot),
        wrong_connections=bound.wrong_connections(ledger, cluster_id),
    )


def drained(ledger: Ledger, cluster_id: str) -> frozenset[int]:
    """Brokers that a plan has emptied, and none has filled since."""
    from include.domain.request.request import Action
    from include.domain.run.states import PlanState

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


def known_facts(
    ledger: Ledger,
    cluster_id: str,
    connection: str,
    last: JudgedSnapshot,
    rules: WatchRules,
    now: datetime,
    *,
    by_person: bool = False,
) -> Facts:
    """What decides whether anything may be started on a cluster now.

    What an earlier attempt has started for the same snapshot does not count: it may not have come
    to triggering it. It gets the same run id again, and Airflow makes one run of it. If that has
    ended by now, another snapshot has to show that it was of no use.

    :param by_person: a person has asked to judge now: what was refused is planned again.
    """
    from include.watching.kinds import WatchPolicy
    from include.watching.respond import Facts
    from rehome.fleet import refused

    stamp = watch_runs.stamp(last.taken_at)
    starts = [
        start
        for start in ledger.watch_starts(cluster_id)
        if start.ended_at is not None or stamp not in start.run_id
    ]
    healed = {s: watch_runs.has_failed(s, now) for s in starts if s.policy is WatchPolicy.HEAL}
    still_open = {each.about for each in last.followed.open}
    newest = {start.about: start for start in reversed(starts) if start.about in still_open}
    budget = budget_of_next(connection, rules, now)
    left = {
        start: watch_runs.left_by_budget(
            None if start.plan_id is None else ledger.plan(start.plan_id), budget
        )
        for start in newest.values()
    }
    active, window = ledger.active_plan(cluster_id), open_window(connection, now)
    paused = None if active is None else watch_runs.paused_heal(ledger, active, starts)
    if paused is not None and by_person:
        paused = replace(paused, again_at=None)
    targets = clusters.targets_through(connection)
    return Facts(
        active_plan=None if active is None else active.plan_id,
        paused=paused,
        pending=any(watch_runs.is_pending(start, now) for start in healed),
        proposed=frozenset(
            start.kind.severity
            for start in starts
            if start not in healed and watch_runs.is_pending(start, now)
        ),
        gate_refuses=last.incomplete or now - last.taken_at > _max_age(connection),
        away=last.away,
        heals=watch_runs.counted(healed),
        answered=frozenset(
            about
            for about, start in newest.items()
            if (stamp in start.run_id and not by_person)
            or (
                refused.refusal_of(start) is None
                and not healed.get(start)
                and left[start] is not LeftByBudget.PAID_FOR
            )
        ),
        stays_open=watch_runs.staying_open(ledger, last.followed.open, starts),
        held=frozenset()
        if by_person
        else refused.held(starts, last.followed.open, last.uri, connection, now, last.drained),
        unpaid=frozenset(
            about for about, start in newest.items() if left[start] is LeftByBudget.TOO_LARGE
        ),
        outside_window=window is None and bool(clusters.windows_through(connection)),
        window_opened_at=None if window is None else window.begins,
        window_end=None if window is None else window.ends,
        refused=_refused(connection, now),
        approval=policies.policy_of_cluster(ledger, cluster_id, connection).approval
        or bool(targets.get("approval")),
        targets=targets,
        drained=last.drained,
        dead_fraction=last.dead_fraction,
        domains_away=last.domains_away,
    )


def budget_of_next(connection: str, rules: WatchRules, now: datetime) -> int | None:
    """Bytes that the next remedy of a cluster may copy: by the rules, else by its targets; None =
    any number.
    """
    from include.domain.request.parse_request import parse_request
    from include.domain.request.request import Action

    params = {"action": Action.REBALANCE.value, "kafka_config_id": connection}
    of_rules = {} if rules.budget_bytes is None else {"budget_bytes": rules.budget_bytes}
    return parse_request(clusters.asked(params | of_rules, now).params).budget_bytes


def _max_age(connection: str) -> timedelta:
    """An older snapshot starts nothing, as a plan's gate would refuse it."""
    return timedelta(seconds=installation.settings(connection).max_snapshot_age_s)


def newest_first(
    ledger: Ledger, events: Sequence[Mapping[str, Any]], most: int
) -> dict[str, list[Fresh]]:
    """The snapshots that events name, by cluster, the oldest first; of each the newest ``most``.

    Anybody who may create events of assets can name what was never taken: what the ledger does not
    know is left out.
    """
    taken = [each for extra in events if (each := _taken(ledger, extra)) is not None]
    found: dict[str, list[Fresh]] = {}
    for each in sorted(taken, key=lambda each: each.taken_at):
        found.setdefault(each.cluster_id, []).append(Fresh(each, each.connection))
    return {cluster_id: each[-most:] for cluster_id, each in found.items()}


def _taken(ledger: Ledger, extra: Mapping[str, Any]) -> TakenSnapshot | None:
    """The snapshot that an event names, if a task has taken it as the event says."""
    uri = str(extra.get("uri"))
    found = ledger.taken_snapshot("/".join(uri.rsplit("/", 2)[1:]))
    said = extra.get("cluster_id"), extra.get("connection"), uri
    if found is not None:
        there = installation.warehouse().snapshot_uri(found.name)
        if (found.cluster_id, found.connection, there) == said:
            return found
    log.warning(
        "An event names a snapshot that no task is known to have taken so, and is left out: "
        "cluster %.100s, connection %.100s, %.300s",
        *said,
    )
    return None


def of_ledger(ledger: Ledger) -> dict[str, list[Fresh]]:
    """The newest snapshot of each cluster that a connection is known to lead to; clusters whose
    connection was removed are left out.
    """
    found = {}
    for connection, cluster_id in ledger.connections().items():
        if not KafkaClusterHook(connection).exists:
            log.warning(
                "Cluster %s is left out: Airflow has no connection %s any more.",
                cluster_id,
                connection,
            )
            continue
        taken = ledger.newest_snapshot(cluster_id)
        if taken is not None:
            found[cluster_id] = [Fresh(taken, connection)]
    return found


def open_window(connection: str, now: datetime) -> FixedWindow | None:
    """The cluster's window that is open, of several the one that closes last; None = none is."""
    found = [
        FixedWindow(begins, begins + window.duration)
        for window in clusters.windows_through(connection)
        if (begins := window.open_since(now)) is not None
    ]
    return max(found, key=lambda window: window.ends, default=None)


def _refused(connection: str, now: datetime) -> frozenset[str]:
    """Actions that the connection's policy does not allow now."""
    from include.execution.access.connection_policy import PolicyError
    from include.watching.remedy import REMEDIES

    policy, refused = KafkaClusterHook(connection).policy, set()
    for action in REMEDIES:
        try:
            policy.require(action, None, now)
        except PolicyError:
            refused.add(action.value)
    return frozenset(refused)


def _history(snapshot: Snapshot) -> LoadHistory | None:
    """What is known of the cluster's load; None = there is no history."""
    from include.load_history.known_rates import Demands, LoadHistory

    settings, warehouse = installation.settings(), installation.warehouse()
    if not warehouse.rollups(snapshot.cluster_id).days():
        return None
    demands = Demands(settings.history_days, settings.min_history_hours)
    return LoadHistory.read(warehouse, snapshot, demands)


def _forecast(snapshot: Snapshot, history: LoadHistory | None) -> tuple[DiskForecast, ...] | None:
    """Of the brokers' disks as replicas lie and grow now; None = growth is not known."""
    from include.load_history.forecast import disk_forecast
    from include.load_history.known_rates import GROWTH

    if history is None or not history.known(GROWTH):
        return None
    return disk_forecast(snapshot, None, history, installation.settings().forecast_days)


def _traffic(snapshot: Snapshot, history: LoadHistory | None) -> dict[str, dict[int, float]]:
    """Bytes per second into and out of each broker, as far as the history knows them."""
    from include.page.cluster_brokers import broker_states

    if history is None:
        return {}
    states = broker_states(snapshot, history)
    rates = {
        "bytes_in": {each.broker: each.written_bytes_per_s for each in states},
        "bytes_out": {each.broker: each.sent_bytes_per_s for each in states},
    }
    return {
        name: {broker: rate or 0.0 for broker, rate in of.items()}
        for name, of in rates.items()
        if any(rate is not None for rate in of.values())
    }
