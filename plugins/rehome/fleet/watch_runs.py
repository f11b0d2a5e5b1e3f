"""Runs that watching starts for findings: their ids and parameters, and how far they have come."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rehome.domain.actions import Action
from rehome.domain.run.askers import STARTED_DAG
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding_kinds import FindingKind, WatchPolicy
from rehome.errors import STEP_UNCHANGED, NotHealedError
from rehome.fleet import clusters, judged_snapshots, watched_through
from rehome.watching.remedy import action_of, broker_of
from rehome.watching.respond import DAY, makes_others_way

if TYPE_CHECKING:
    from rehome.cluster.snapshot.model import Snapshot
    from rehome.domain.run.watched.finding import About
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger
    from rehome.ledger.stores.watched.starts import StartRecord
    from rehome.watching.respond import Start


@dataclass(frozen=True, slots=True)
class StartedRun:
    """A run that is to be triggered, and its parameters."""

    dag_id: str
    run_id: str
    conf: Mapping[str, Any]


RUN_ID_PREFIX = "watch__"
"""What the ids of runs begin with that watching starts."""


class HealOverError(NotHealedError):
    """A finding is not to be healed any more: the watch rules have changed, or it is over."""

    def __init__(self, start: StartRecord, why: str, next_step: str = "") -> None:
        super().__init__(
            f"{why} {f'{start.kind} {start.subject}'.strip()}",
            state_left=STEP_UNCHANGED,
            next_step=next_step,
        )


class BrokerAwayError(NotHealedError):
    """A broker that a run was triggered to repair replicas of is not alive, or not for long."""

    def __init__(self, broker: int) -> None:
        super().__init__(
            f"Broker {broker} is not alive, and may be restarting: a run copies "
            "nothing off a broker that may come back",
            state_left=STEP_UNCHANGED,
            next_step="This run is over. Start the broker. If it stays away, the finding "
            "dead_broker opens; the watch rules say whether a repair is started for it.",
        )


class DomainAwayError(NotHealedError):
    """A rack, a data centre or many brokers are away on the cluster that a run is to heal."""

    def __init__(self, domains: Sequence[str]) -> None:
        super().__init__(
            f"Away as a whole: {', '.join(domains)}. Such an outage is not healed by itself",
            state_left=STEP_UNCHANGED,
            next_step="Bring the brokers back. If they are lost, trigger reassign_partitions by "
            "hand.",
        )


def asking(ledger: Ledger, cluster_id: str, connection: str) -> PlanRecord | None:
    """The plan about which a run of the windows' DAG waits for a person; None = none does."""
    question = ledger.unanswered_question(cluster_id, clusters.window_dag(connection))
    if question is None:
        return None
    plan = ledger.plan(question.question.plan_id)
    drives = (plan.dag_id, plan.run_id) == (question.question.dag_id, question.question.run_id)
    return plan if drives and not plan.state.ended and plan.state is not PlanState.RUNNING else None


def waits_behind(start: StartRecord, waiting_plan: PlanRecord | None, ledger: Ledger) -> bool:
    """Whether a run has not begun, and waits until a person has answered another one of its DAG."""
    if waiting_plan is None or start.ended_at is not None or start.dag_id != waiting_plan.dag_id:
        return False
    requested = ledger.requested_run(start.dag_id, start.run_id)
    return requested is not None and requested.begun_by is None


def urgent(ledger: Ledger, cluster_id: str, dag_id: str, connection: str) -> StartRecord | None:
    """What a plan that was handed over to a DAG heals, where a plan that gets nowhere has to make
    way for it; None = there is none.
    """
    for plan in ledger.handed_over(cluster_id, dag_id):
        heal = heal_of(plan, ledger)
        with suppress(HealOverError):
            refuse_changed_rules(heal, connection)
            refuse_over(heal, ledger)
            if goes_first(heal):
                return heal
    return None


def heal_by(run: Any, ledger: Ledger) -> StartRecord | None:
    """What a run heals without asking a person; None = watching has not started it for that."""
    return _if_heal(ledger.watch_start(run.dag_id, run.run_id))


def heal_of(plan: PlanRecord, ledger: Ledger) -> StartRecord | None:
    """What a plan heals without asking a person; None = it is no heal."""
    return _if_heal(of_plan(plan, ledger.watch_starts(plan.cluster_id)))


def _if_heal(start: StartRecord | None) -> StartRecord | None:
    return None if start is None or start.policy is not WatchPolicy.HEAL else start


def goes_first(heal: StartRecord | None) -> bool:
    """Whether it is a heal that a plan which gets nowhere has to make way for."""
    return heal is not None and makes_others_way(heal.kind, heal.policy)


def refuse_away(heal: StartRecord, snapshot: Snapshot, ledger: Ledger) -> None:
    """See that what a heal copies is lost, and not merely away: it may have waited for hours.

    :param snapshot: of the run that is to carry it out.
    :raises BrokerAwayError: a broker is not alive, and no finding says that it is dead: all that it
        holds would be copied, for a restart.
    :raises DomainAwayError: a whole rack or data centre is away, or many brokers are.
    """
    if action_of(heal.kind) is Action.FIX_OFFLINE_REPLICAS:
        broker = broker_of(heal.subject)
        live = {row["broker"] for row in snapshot.brokers.to_pylist() if row["live"]}
        dead = (FindingKind.DEAD_BROKER, f"broker {broker}")
        if broker not in live and not _is_shown(ledger, snapshot.cluster_id, dead):
            raise BrokerAwayError(broker)
    if domains := judged_snapshots.away_in(ledger, snapshot):
        raise DomainAwayError(domains)


def _is_shown(ledger: Ledger, cluster_id: str, key: tuple[FindingKind, str]) -> bool:
    """Whether a finding is open, and the newest snapshot shows it."""
    findings = ledger.open_findings(cluster_id)
    return any(each.key == key and not each.clean for each in findings)


def refuse_changed_rules(heal: StartRecord | None, connection: str) -> None:
    """See that what a run heals is to be healed still: it may have waited for its slot for hours.

    :param heal: None = it heals nothing.
    :raises HealOverError: it is not.
    """
    if heal is None:
        return
    if watched_through.rules_for(connection).policy_of(heal.kind) is not WatchPolicy.HEAL:
        step = "Trigger reassign_partitions by hand, or let the rules heal it."
        raise HealOverError(heal, "The watch rules no longer say heal for", step)


def refuse_over(heal: StartRecord | None, ledger: Ledger) -> None:
    """See that what a plan was handed over for is there still.

    :param heal: None = the plan is no heal.
    :raises HealOverError: it is over.
    """
    if heal is not None and not _is_shown(ledger, heal.cluster_id, (heal.kind, heal.subject)):
        raise HealOverError(heal, "What this run was to heal is over:", "Nothing is left to do.")


def hand_over(run: Any, ledger: Ledger, plan_id: str, actor: str) -> None:
    """Hand a heal that a run has planned over to the windows of its cluster. From here on the plan
    says what has come of it.
    """
    if heal_by(run, ledger) is not None:
        ledger.hand_over(plan_id, actor)
        ledger.end_watch_start(run.dag_id, run.run_id, failed=False, plan_id=plan_id)


def by_watching(run: Any, ledger: Ledger) -> bool:
    """Whether watching has started a run."""
    return ledger.watch_start(run.dag_id, run.run_id) is not None


def pending_until(start: StartRecord) -> datetime:
    """Until when a run may still make or carry out a plan: until its deadline, or for a day."""
    return start.deadline or start.started_at + DAY


def is_pending(start: StartRecord, now: datetime) -> bool:
    """Whether a run may still make or carry out a plan. One whose end was never recorded, and no
    longer will be, was deleted, or died with its Airflow.
    """
    return start.ended_at is None and now < pending_until(start)


def of_plan(plan: PlanRecord, starts: Sequence[StartRecord]) -> StartRecord | None:
    """The newest start that has led to a plan, or has resumed it."""
    driver = (plan.dag_id, plan.run_id)
    return next(
        (s for s in starts if s.plan_id == plan.plan_id or (s.dag_id, s.run_id) == driver), None
    )


def journal(
    ledger: Ledger, start: Start, connection: str, taken_at: datetime, now: datetime
) -> StartedRun:
    """Record a start before its run is triggered."""
    from rehome.ledger.stores.watched.starts import StartRecord

    finding = start.finding
    assert finding.opened_at is not None
    about = (finding.kind, finding.subject, finding.opened_at)
    dag_id = clusters.window_dag(connection) if start.in_window else STARTED_DAG
    dag_id, run_id = _ids(ledger, finding.cluster_id, about, taken_at, dag_id)
    ledger.record_watch_start(
        StartRecord(
            dag_id,
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
    return StartedRun(dag_id, run_id, conf)


def _ids(
    ledger: Ledger, cluster_id: str, about: About, taken_at: datetime, dag_id: str
) -> tuple[str, str]:
    """DAG and run that are to be triggered. A run that was started by the same snapshot, and has
    ended, keeps its id: a person asks for another one. One that has not is the same run, also where
    the window has opened since.
    """
    first = run_id_of(cluster_id, about, taken_at)
    starts = {start.run_id: start for start in ledger.watch_starts(cluster_id)}
    for again in itertools.count(1):
        run_id = first if again == 1 else f"{first}__{again}"
        start = starts.get(run_id)
        if start is None:
            return dag_id, run_id
        if start.ended_at is None:
            return start.dag_id, run_id
    raise AssertionError


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


def snapshot_taken(ledger: Ledger, snapshot: Snapshot) -> None:
    """Keep what only a snapshot shows of what is away."""
    judged_snapshots.note_racks(ledger, snapshot)
