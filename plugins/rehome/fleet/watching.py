"""Watching on Airflow's side: snapshots that have come, and the facts that decide what follows.

The rules, and what a snapshot shows by them, are in ``include/rehome/watching``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from rehome import installation
from rehome.clusters.watch_rules import WatchRules
from rehome.domain.run.watched.finding_kinds import WatchPolicy
from rehome.execution.access.connection_policy import PolicyError
from rehome.execution.access.open_windows import HEAD_START
from rehome.fleet import attempts, clusters, paused_plan, policies, watch_runs
from rehome.run.authority import own_snapshot
from rehome.watching.remedy import REMEDIES
from rehome.watching.respond import Facts

if TYPE_CHECKING:
    from rehome.fleet.judged_snapshots import JudgedSnapshot
    from rehome.ledger.store import Ledger
    from rehome.ledger.stores.authority.taken_snapshots import TakenSnapshot

log = logging.getLogger(__name__)


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
        return own_snapshot.require_unchanged(self.taken)


def known_facts(
    ledger: Ledger,
    cluster_id: str,
    connection: str,
    last: JudgedSnapshot,
    rules: WatchRules,
    now: datetime,
    *,
    by_person: bool = False,
    dag_paused: paused_plan.DagPaused = paused_plan.cannot_ask,
) -> Facts:
    """What decides whether anything may be started on a cluster now.

    What an earlier attempt has started for the same snapshot does not count: it may not have come
    to triggering it. It gets the same run id again, and Airflow makes one run of it. If that has
    ended by now, another snapshot has to show that it was of no use. Nor does a run count that
    waits until a person has answered another one.

    :param by_person: a person has asked to judge now: what went wrong is tried again.
    :param dag_paused: asks Airflow.
    """
    stamp, waiting_plan = (
        watch_runs.stamp(last.taken_at),
        watch_runs.asking(ledger, cluster_id, connection),
    )
    starts = [
        start
        for start in ledger.watch_starts(cluster_id)
        if start.ended_at is not None or stamp not in start.run_id
        if not watch_runs.waits_behind(start, waiting_plan, ledger)
    ]
    pending = [start for start in starts if watch_runs.is_pending(start, now)]
    active, targets = ledger.active_plan(cluster_id), clusters.targets_through(connection)
    windows = clusters.windows_through(connection)
    window = windows.open_at(now)
    return Facts(
        active_plan=None if active is None else active.plan_id,
        stuck=active is not None and paused_plan.is_stuck(ledger, active),
        pending=any(start.policy is WatchPolicy.HEAL for start in pending),
        proposed=frozenset(
            start.kind.severity for start in pending if start.policy is not WatchPolicy.HEAL
        ),
        gate_refuses=last.incomplete or now - last.taken_at > _max_age(connection),
        away=last.away,
        heals=attempts.heals(ledger, starts, now),
        attempts=attempts.last_attempts(ledger, starts, now),
        by_person=by_person,
        in_window=window is not None or not windows.each,
        has_question=waiting_plan is not None,
        window_closes=None if window is None else window.ends,
        window_began=window is None or window.begins < now - HEAD_START,
        window_dag_paused=bool(dag_paused(clusters.window_dag(connection))),
        refused_actions=_refused_actions(connection, now),
        approval=policies.policy_of_cluster(ledger, cluster_id, connection).approval
        or bool(targets.get("approval")),
        targets=targets,
        drained=last.drained,
        domains_away=last.domains_away,
    )


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
    taken = [each for extra in events if (each := _snapshot_of_event(ledger, extra)) is not None]
    snapshots: dict[str, list[Fresh]] = {}
    for each in sorted(taken, key=lambda each: each.taken_at):
        snapshots.setdefault(each.cluster_id, []).append(Fresh(each, each.connection))
    return {cluster_id: each[-most:] for cluster_id, each in snapshots.items()}


def _snapshot_of_event(ledger: Ledger, extra: Mapping[str, Any]) -> TakenSnapshot | None:
    """The snapshot that an event names, if a task has taken it as the event says."""
    uri = str(extra.get("uri"))
    snapshot = ledger.taken_snapshot("/".join(uri.rsplit("/", 2)[1:]))
    said = extra.get("cluster_id"), extra.get("connection"), uri
    if snapshot is not None:
        there = installation.warehouse().snapshot_uri(snapshot.name)
        if (snapshot.cluster_id, snapshot.connection, there) == said:
            return snapshot
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
    snapshots = {}
    for connection, cluster_id in ledger.connections().items():
        if not policies.cluster_hook(connection).exists:
            log.warning(
                "Cluster %s is left out: Airflow has no connection %s any more.",
                cluster_id,
                connection,
            )
            continue
        taken = ledger.newest_snapshot(cluster_id)
        if taken is not None:
            snapshots[cluster_id] = [Fresh(taken, connection)]
    return snapshots


def _refused_actions(connection: str, now: datetime) -> frozenset[str]:
    """Actions that the connection's policy does not allow now."""
    policy, actions = policies.cluster_hook(connection).policy, set()
    for action in REMEDIES:
        try:
            policy.require(action, None, now)
        except PolicyError:
            actions.add(action.value)
    return frozenset(actions)
