"""Runs that watching starts for findings: their ids and parameters, and how far they have come."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from include.domain.run.askers import STARTED_DAG
from include.errors import STEP_UNCHANGED, PlanConflictError

if TYPE_CHECKING:
    from include.cluster.snapshot.model import Snapshot
    from include.ledger.base.records import PlanRecord
    from include.ledger.store import Ledger
    from include.ledger.stores.watched.starts import StartRecord
    from include.watching.finding import About
    from include.watching.kinds import FindingKind
    from include.watching.respond import Response

RUN_ID_PREFIX = "watch__"
"""What the ids of runs begin with that watching starts."""


class NotHealedError(PlanConflictError):
    """The watch rules have changed since a run was triggered to heal a finding."""

    def __init__(self, kind: FindingKind, subject: str) -> None:
        super().__init__(
            f"The watch rules no longer say heal for {f'{kind} {subject}'.strip()}",
            state_left=STEP_UNCHANGED,
            next_step="Trigger reassign_partitions by hand, or let the rules heal it.",
        )


class BrokerAwayError(PlanConflictError):
    """A broker that a run was triggered to repair replicas of is not alive, or not for long."""

    def __init__(self, brokers: Collection[int]) -> None:
        named = ", ".join(map(str, sorted(brokers)))
        super().__init__(
            f"Broker {named} is not alive, and may be restarting: nothing is copied off it yet",
            state_left=STEP_UNCHANGED,
            next_step="If it does not come back, its finding dead_broker opens, and is healed.",
        )


class DomainAwayError(PlanConflictError):
    """A rack or data centre is away that a run was triggered to heal something on."""

    def __init__(self, domains: Sequence[str]) -> None:
        super().__init__(
            f"No broker is alive of {', '.join(domains)}: an outage of a rack or data centre is "
            "not healed by itself",
            state_left=STEP_UNCHANGED,
            next_step="Bring the brokers back. If they are lost, trigger reassign_partitions by "
            "hand.",
        )


def heals(run: Any, ledger: Ledger) -> bool:
    """Whether watching has started a run to heal a finding, without asking a person."""
    from include.watching.kinds import WatchPolicy

    start = ledger.watch_start(run.dag_id, run.run_id)
    return start is not None and start.policy is WatchPolicy.HEAL


def goes_first(run: Any, ledger: Ledger) -> bool:
    """Whether a run heals what a plan that gets nowhere has to make way for."""
    from include.watching.respond import makes_others_way

    start = ledger.watch_start(run.dag_id, run.run_id)
    return start is not None and makes_others_way(start.kind, start.policy)


def away(run: Any, snapshot: Snapshot, ledger: Ledger) -> frozenset[int]:
    """Brokers whose replicas a heal repairs, that a snapshot does not show alive, and of which no
    finding says that they are dead: all that they hold would be copied, for a restart.

    :param snapshot: of the run; it may have waited for its slot for hours.
    """
    from include.domain.request.request import Action
    from include.watching.kinds import FindingKind

    conf = getattr(run, "conf", None) or {}
    if not heals(run, ledger):
        return frozenset()
    if conf.get("action") != Action.FIX_OFFLINE_REPLICAS.value:
        return frozenset()
    live = {row["broker"] for row in snapshot.brokers.to_pylist() if row["live"]}
    dead = {
        finding.subject
        for finding in ledger.open_findings(snapshot.cluster_id)
        if finding.kind is FindingKind.DEAD_BROKER and not finding.clean
    }
    gone = {int(broker) for broker in conf.get("brokers") or ()} - live
    return frozenset(broker for broker in gone if f"broker {broker}" not in dead)


def refuse_changed_rules(run: Any, connection: str, ledger: Ledger) -> None:
    """See that what a run heals is to be healed still: it may have waited for its slot for hours.

    :raises NotHealedError: it is not.
    """
    from include.watching.kinds import WatchPolicy
    from rehome.fleet import watched_through

    start = ledger.watch_start(run.dag_id, run.run_id)
    if start is None or start.policy is not WatchPolicy.HEAL:
        return
    rules = watched_through.rules_for(connection)
    if rules.policy_of(start.kind) is not WatchPolicy.HEAL:
        raise NotHealedError(start.kind, start.subject)


def by_watching(run: Any, ledger: Ledger) -> bool:
    """Whether watching has started a run."""
    return ledger.watch_start(run.dag_id, run.run_id) is not None


def pending_until(start: StartRecord) -> datetime:
    """Until when a run may still make or carry out a plan: until its deadline, or for a day."""
    from include.watching.respond import DAY

    return start.deadline or start.started_at + DAY


def is_pending(start: StartRecord, now: datetime) -> bool:
    """Whether a run may still make or carry out a plan. One whose end was never recorded, and no
    longer will be, was deleted, or died with its Airflow.
    """
    return start.ended_at is None and now < pending_until(start)


def of_plan(plan: PlanRecord, starts: Sequence[StartRecord]) -> StartRecord | None:
    """The newest start that has led to a plan, or has gone on with it."""
    driver = (plan.dag_id, plan.run_id)
    return next(
        (s for s in starts if s.plan_id == plan.plan_id or (s.dag_id, s.run_id) == driver), None
    )


def journal(
    ledger: Ledger, response: Response, connection: str, taken_at: datetime, now: datetime
) -> dict[str, Any]:
    """Record a start before it is triggered; returns what ``TriggerDagRunOperator`` takes."""
    from include.ledger.stores.watched.starts import StartRecord

    start = response.start
    assert start is not None
    finding = start.finding
    assert finding.opened_at is not None
    about = (finding.kind, finding.subject, finding.opened_at)
    run_id = _run_id(ledger, finding.cluster_id, about, taken_at)
    ledger.record_watch_start(
        StartRecord(
            STARTED_DAG,
            run_id,
            finding.cluster_id,
            finding.kind,
            finding.subject,
            finding.opened_at,
            start.policy,
            now,
            start.deadline,
        )
    )
    conf = {**start.params, "kafka_config_id": connection, "cluster_id": finding.cluster_id}
    return {"trigger_run_id": run_id, "conf": conf}


def _run_id(ledger: Ledger, cluster_id: str, about: About, taken_at: datetime) -> str:
    """Of the run that is to be triggered. A run that was started by the same snapshot, and has
    ended, keeps its id: a person asks for another one.
    """
    first = run_id_of(cluster_id, about, taken_at)
    for again in itertools.count(1):
        run_id = first if again == 1 else f"{first}__{again}"
        start = ledger.watch_start(STARTED_DAG, run_id)
        if start is None or start.ended_at is None:
            break
    return run_id


def run_id_of(cluster_id: str, about: About, taken_at: datetime) -> str:
    """Of the run that is started for a finding, by a snapshot; it names the kind, for lists of
    runs.
    """
    kind, subject, opened_at = about
    digest = hashlib.sha256(f"{cluster_id}/{subject}/{opened_at}".encode()).hexdigest()[:8]
    return f"{RUN_ID_PREFIX}{kind}__{stamp(taken_at)}__{digest}"


def stamp(taken_at: datetime) -> str:
    """A snapshot's time, as ids of runs have it."""
    return f"{taken_at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
