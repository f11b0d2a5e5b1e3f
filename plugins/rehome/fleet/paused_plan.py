"""What a cluster's paused plan waits for: by the ledger, its windows and rules, and Airflow."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from rehome import installation
from rehome.fleet import clusters, judged_snapshots, watch_runs, watched_through
from rehome.hooks.cluster import KafkaClusterHook

if TYPE_CHECKING:
    from include.execution.access.open_windows import CronWindow
    from include.ledger.base.records import PlanRecord
    from include.ledger.store import Ledger
    from include.ledger.stores.watched.starts import StartRecord
    from include.watching.paused_plan import DagState, Outlook, PausedFacts, WindowOpening

log = logging.getLogger(__name__)

WINDOW_DAG, WATCH_DAG, SNAPSHOTS_DAG = "rebalance_in_window", "watch_clusters", "collect_snapshots"
AHEAD = timedelta(days=1)
"""The circuit breaker lets heals start again within a day: the first window after that counts."""
MOST_AHEAD = 100


def outlook(
    ledger: Ledger,
    plan: PlanRecord,
    now: datetime,
    dags_paused: Collection[str] | None = None,
    *,
    ending: str = "",
) -> Outlook | None:
    """What a plan waits for; None = it is not paused.

    :param dags_paused: ids of DAGs that are paused in Airflow; None = that cannot be asked here.
    :param ending: id of the run that asks, which does not go on with it any more; "" = of none.
    """
    from include.domain.run.event_kind import EventKind
    from include.domain.run.states import PlanState
    from include.errors import RehomeError
    from include.watching import paused_plan
    from include.watching.rules import WatchRules

    paused_at = ledger.last_event_at(plan.plan_id, EventKind.PAUSED)
    if plan.state is not PlanState.PAUSED or paused_at is None:
        return None
    if plan.pause_requested:
        return paused_plan.NeedsPerson(paused_plan.Why.PAUSED_BY_PERSON)
    try:
        facts = _facts(ledger, plan, paused_at, now, dags_paused, ending)
        rules = WatchRules() if facts.heal is None else watched_through.rules_for(_through(plan))
    except RehomeError as error:
        return paused_plan.NeedsPerson(paused_plan.Why.NOT_KNOWN, error.what)
    return paused_plan.outlook(facts, rules, now)


def _facts(
    ledger: Ledger,
    plan: PlanRecord,
    paused_at: datetime,
    now: datetime,
    dags_paused: Collection[str] | None,
    ending: str,
) -> PausedFacts:
    from include.watching.kinds import WatchPolicy
    from include.watching.paused_plan import PausedFacts

    starts = ledger.watch_starts(plan.cluster_id)
    heals = [start for start in starts if start.policy is WatchPolicy.HEAL]
    windows = clusters.windows_through(_through(plan))
    others = [start for start in heals if start.run_id != ending]
    heal = watch_runs.paused_heal(ledger, plan, starts)
    dead_fraction, domains_away = (0.0, ()) if heal is None else _dead(ledger, plan.cluster_id)
    return PausedFacts(
        paused_at=paused_at,
        by_person=plan.pause_requested,
        heal=heal,
        windows=_openings(windows, now) if windows else None,
        window_dag=_state_of(_window_dags(ledger, plan), dags_paused),
        watched=not _watching_dags(plan) & set(dags_paused or ()),
        run_id=_started_since(others, paused_at, now),
        heals=watch_runs.counted({each: watch_runs.has_failed(each, now) for each in heals}),
        refused=lambda at: _refuses(_through(plan), plan.action, at),
        dead_fraction=dead_fraction,
        domains_away=domains_away,
    )


def _dead(ledger: Ledger, cluster_id: str) -> tuple[float, Sequence[str]]:
    """Of the cluster's brokers, those that are not alive in the newest snapshot, and the racks that
    are away; it is only read where a finding says that a broker is dead.
    """
    from include.errors import RehomeError
    from include.warehouse import read_snapshot
    from include.watching.kinds import FindingKind

    if all(each.kind is not FindingKind.DEAD_BROKER for each in ledger.open_findings(cluster_id)):
        return 0.0, ()
    try:
        uri = installation.warehouse().latest_snapshot(cluster_id)
        if uri is None:
            return 0.0, ()
        snapshot = read_snapshot(uri, replicas=False)
        live: list[bool] = snapshot.brokers["live"].to_pylist()
    except (RehomeError, OSError, ValueError, KeyError) as error:
        log.warning("How many brokers of cluster %s are dead is not known: %s", cluster_id, error)
        return 0.0, ()
    return live.count(False) / max(1, len(live)), judged_snapshots.away_in(ledger, snapshot)


def _started_since(heals: Sequence[StartRecord], paused_at: datetime, now: datetime) -> str:
    """The run that goes on with the plan. One that began before is about to end."""
    since = (h for h in heals if h.started_at > paused_at and watch_runs.is_pending(h, now))
    return next((each.run_id for each in since), "")


def _openings(windows: Sequence[CronWindow], now: datetime) -> list[WindowOpening]:
    """What is open, and what opens next, at least until the first one after a day."""
    from include.watching.paused_plan import WindowOpening

    def of(window: CronWindow) -> Iterator[WindowOpening]:
        begins = window.open_since(now) or window.opens_after(now)
        for _ in range(MOST_AHEAD):
            if begins is None:
                return
            yield WindowOpening(begins, begins + window.duration)
            if begins > now + AHEAD:
                return
            begins = window.opens_after(begins)

    found = (each for window in windows for each in of(window))
    return sorted(found, key=lambda each: (each.begins, -each.ends.timestamp()))


def _state_of(dag_ids: Collection[str], dags_paused: Collection[str] | None) -> DagState:
    """One that runs is enough."""
    from include.watching.paused_plan import DagState

    if not dag_ids:
        return DagState.NONE
    if dags_paused is None:
        return DagState.NOT_KNOWN
    return DagState.PAUSED if set(dag_ids) <= set(dags_paused) else DagState.RUNS


def _through(plan: PlanRecord) -> str:
    return plan.planned_through or clusters.DEFAULT_CONNECTION


def _window_dags(ledger: Ledger, plan: PlanRecord) -> set[str]:
    """Those that run in windows of the plan's cluster, through whichever connection."""
    leads = ledger.connections().items()
    alike = {through for through, cluster_id in leads if cluster_id == plan.cluster_id}
    return set(clusters.dags_for(WINDOW_DAG, {_through(plan), *alike}).values())


def _watching_dags(plan: PlanRecord) -> set[str]:
    """What has to run for a heal to be gone on with."""
    return {WATCH_DAG, *clusters.dags_for(SNAPSHOTS_DAG, [_through(plan)]).values()}


def dags_that_count(ledger: Ledger, plan: PlanRecord) -> set[str]:
    """Ids of the DAGs of which :func:`outlook` asks whether they are paused."""
    return _watching_dags(plan) | _window_dags(ledger, plan)


def _refuses(connection: str, action: str, at: datetime) -> bool:
    from include.execution.access.connection_policy import PolicyError

    try:
        KafkaClusterHook(connection).policy.require(action, None, at)
    except PolicyError:
        return True
    return False
