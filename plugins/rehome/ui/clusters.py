"""Clusters as their newest snapshots show them: read once for each snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache

from fastapi import HTTPException

from rehome import installation
from rehome.account.clusters.cluster_account import ClusterAccount, account_of_cluster
from rehome.account.clusters.cluster_evidence import (
    WindowAhead,
    WrongConnection,
    read_cluster,
)
from rehome.account.clusters.cluster_facts import ClusterView
from rehome.account.clusters.cluster_view import Ours, cluster_view
from rehome.clusters.binding import Misled
from rehome.domain.clock import utc_now
from rehome.domain.run.observation import Observation
from rehome.domain.run.paused.paused_plan import Outlook
from rehome.domain.run.states import PlanState
from rehome.execution.foreign.in_flight import Flight, ThrottlesSeen, describe
from rehome.execution.foreign.snapshot_flights import snapshot_flights
from rehome.fleet import bound, paused_plan
from rehome.fleet.clusters import DEFAULT_CONNECTION, connections_of_file
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.run.ports import extras
from rehome.ui import dag_runs
from rehome.warehouse import cluster_of, read_snapshot, taken_at_of

SNAPSHOTS_KEPT = 256


def every(ledger: Ledger) -> Iterator[ClusterView]:
    """Every cluster that has a finished snapshot, as the newest one shows it."""
    warehouse = installation.warehouse()
    for cluster_id in warehouse.clusters():
        if uri := warehouse.latest_snapshot(cluster_id):
            yield _view(uri, ledger, None)


def newest(cluster_id: str, ledger: Ledger, *, load: bool) -> ClusterView:
    """A cluster as its newest finished snapshot shows it.

    :param load: with traffic and growth, which takes longer to read.
    :raises HTTPException: 404: there is none.
    """
    uri = _newest_uri(cluster_id)
    return _view(uri, ledger, history_asked(cluster_id, ledger) if load else None)


def account(
    cluster_id: str,
    ledger: Ledger,
    view: ClusterView | None,
    misled: Iterable[Misled],
    window: WindowAhead | None = None,
) -> ClusterAccount:
    """What is known of a cluster now.

    :param view: as its newest snapshot shows it; None = there is none.
    :param misled: connections of all clusters through which nothing acts.
    """
    wrong = [
        WrongConnection(each.connection, each.text)
        for each in misled
        if cluster_id in (each.cluster_id, each.bound_id)
    ]
    now = utc_now()
    return account_of_cluster(
        read_cluster(ledger, cluster_id, now).with_seen(view, wrong, window), now
    )


def in_flight(cluster_id: str, ledger: Ledger) -> tuple[Flight, ...]:
    """Every reassignment, of any client, that the newest finished snapshot shows in flight.

    :raises HTTPException: 404: there is none.
    """
    uri = _newest_uri(cluster_id)
    observation, throttles = _flights(uri)
    starts = ledger.starts_here_at(cluster_id, observation.taken_at)
    records = ledger.seen_reassignments(cluster_id)
    same = {
        partition: each
        for partition, each in records.items()
        if partition in observation.ongoing and each.entry == observation.ongoing[partition]
    }
    return describe(sorted(observation.ongoing), observation, throttles, starts, same)


def connection_to(cluster_id: str, ledger: Ledger) -> str | None:
    """The connection that leads to a cluster, as far as it was seen; None = not known.

    Of several, one that the clusters file names; else ``kafka_default``; else the one that was used
    last.
    """
    leads = ledger.connections()
    wrong = {each.connection for each in bound.all_known_misled(ledger)}
    candidates = [one for one, leads_to in leads.items() if leads_to == cluster_id]
    candidates = [one for one in candidates if one not in wrong] or candidates
    preferred = [*connections_of_file(), DEFAULT_CONNECTION]
    return next(
        (one for one in preferred if one in candidates), candidates[-1] if candidates else None
    )


def outlook_of(plan: PlanRecord, ledger: Ledger) -> Outlook | None:
    """What a plan waits for; None = it is neither paused nor handed over."""
    if plan.state is not PlanState.PAUSED and plan.for_window_at is None:
        return None
    return paused_plan.outlook(ledger, plan, datetime.now(UTC), asked_of_airflow(plan, ledger))


def asked_of_airflow(plan: PlanRecord, ledger: Ledger) -> paused_plan.DagPaused:
    """Whether the DAGs of a plan's windows are paused."""
    paused = dag_runs.paused_dags(paused_plan.window_dags(ledger, plan))
    return lambda dag_id: dag_id in paused


def topics(cluster_id: str) -> tuple[tuple[str, int, bool], ...]:
    """Name, number of partitions, and whether it is internal, of each topic that can be seen.

    :raises HTTPException: 404: the cluster has no snapshot.
    """
    return _topics(_newest_uri(cluster_id))


def _newest_uri(cluster_id: str) -> str:
    """The id comes from a URL: it becomes part of a path only if the warehouse lists it."""
    warehouse = installation.warehouse()
    is_there = cluster_id in warehouse.clusters()
    uri = warehouse.latest_snapshot(cluster_id) if is_there else None
    if uri is None:
        raise HTTPException(404, f"The warehouse has no snapshot of a cluster {cluster_id!r}")
    return uri


@lru_cache(maxsize=SNAPSHOTS_KEPT)
def _topics(uri: str) -> tuple[tuple[str, int, bool], ...]:
    table = read_snapshot(uri, replicas=False).topics
    columns = (table[name].to_pylist() for name in ("topic", "partitions", "internal", "visible"))
    return tuple(
        (topic, partitions or 0, internal)
        for topic, partitions, internal, visible in zip(*columns, strict=True)
        if visible
    )


def history_asked(cluster_id: str, ledger: Ledger) -> tuple[int, float]:
    """How many days of load history are read, and for how many hours a partition must have been
    watched: by the cluster's own settings.
    """
    settings = installation.settings(connection_to(cluster_id, ledger))
    return settings.history_days, settings.min_history_hours


@lru_cache(maxsize=SNAPSHOTS_KEPT)
def _flights(uri: str) -> tuple[Observation, ThrottlesSeen]:
    return snapshot_flights(read_snapshot(uri))


@lru_cache(maxsize=SNAPSHOTS_KEPT)
def _view(uri: str, ledger: Ledger, demands: tuple[int, float] | None) -> ClusterView:
    snapshot, at = read_snapshot(uri), taken_at_of(uri)
    cluster_id = cluster_of(uri)
    ours = Ours(ledger.throttled_here_at(cluster_id, at), ledger.moving_here_at(cluster_id, at))
    load = None
    if demands is not None:
        load = extras().loads.read(installation.warehouse(), snapshot, *demands)
    return cluster_view(snapshot, load, ours)
