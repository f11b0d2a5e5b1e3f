"""Runs that watching starts for findings: their ids and parameters, and how far they have come."""

from __future__ import annotations

import enum
import hashlib
import itertools
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from include.domain.run.askers import STARTED_DAG
from include.errors import STEP_UNCHANGED, PlanConflictError

if TYPE_CHECKING:
    from include.cluster.snapshot.model import Snapshot
    from include.ledger.base.records import PlanRecord
    from include.ledger.store import Ledger
    from include.ledger.stores.watched.starts import StartRecord
    from include.watching.finding import About, FindingRecord
    from include.watching.kinds import FindingKind
    from include.watching.respond import Facts, Heal, PausedHeal, Response
    from include.watching.rules import WatchRules
    from include.watching.stays_open import StaysOpen

log = logging.getLogger(__name__)

REASONS_NAMED = 3
RUN_ID_PREFIX = "watch__"
"""What the ids of runs begin with that watching starts."""


class GivenUpError(PlanConflictError):
    """A paused heal no longer fits the cluster, and has been cancelled."""

    def __init__(self, plan_id: str) -> None:
        super().__init__(
            f"Plan {plan_id} no longer fits the cluster, and is given up",
            state_left="Nothing of it is in flight.",
            next_step="If its finding is still open, watch_clusters starts another heal.",
        )


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
    if rules.policy_of(start.kind, start.subject) is not WatchPolicy.HEAL:
        raise NotHealedError(start.kind, start.subject)


def by_watching(run: Any, ledger: Ledger) -> bool:
    """Whether watching has started a run."""
    return ledger.watch_start(run.dag_id, run.run_id) is not None


class LeftByBudget(enum.Enum):
    """What the budget of a plan has left of a finding."""

    NOTHING = "nothing"
    PAID_FOR = "paid_for"  # the next plan can go on with it
    TOO_LARGE = "too_large"  # the budget pays for no part of it


def left_by_budget(plan: PlanRecord | None, budget_bytes: int | None) -> LeftByBudget:
    """What is to be done after a plan that was made for a finding.

    :param plan: None = none was made.
    :param budget_bytes: of the next plan; None = any number.
    """
    from include.domain.run.states import PlanState

    if plan is None or plan.state is not PlanState.DONE or not plan.cut_by_budget:
        return LeftByBudget.NOTHING
    before = plan.request.get("budget_bytes")
    grown = before is not None and (budget_bytes is None or budget_bytes > before)
    return LeftByBudget.PAID_FOR if plan.bytes_total or grown else LeftByBudget.TOO_LARGE


def stays_open(ledger: Ledger, finding: FindingRecord, start: StartRecord) -> StaysOpen | None:
    """Why a finding is open still though the newest run that was started for it has ended; None =
    that has not ended, has left something to the next run, or no later snapshot shows the finding.
    """
    from include.domain.run.states import PlanState
    from include.ledger.base.records import EndReason
    from include.watching.kinds import WatchPolicy
    from include.watching.stays_open import RunOutcome, StaysOpen

    ended_at = start.ended_at
    if ended_at is None or finding.clean or finding.last_seen_at <= ended_at:
        return None
    if start.failed:  # a heal is tried again
        heals = start.policy is WatchPolicy.HEAL
        return None if heals else StaysOpen(RunOutcome.NOT_APPROVED, start.policy)
    plan = None if start.plan_id is None else ledger.plan(start.plan_id)
    if plan is None:
        return StaysOpen(RunOutcome.UNKNOWN, start.policy)
    if plan.state is PlanState.PAUSED:
        return None
    if plan.end_reason is EndReason.REJECTED:
        return StaysOpen(RunOutcome.REJECTED, start.policy, plan.plan_id)
    if plan.state is PlanState.DONE and plan.cut_by_budget:
        return None  # the next run goes on, or says that the budget is too small
    if plan.state is not PlanState.DONE:
        return StaysOpen(RunOutcome.UNKNOWN, start.policy, plan.plan_id)
    moved = bool(ledger.move_sums(plan.plan_id))
    outcome = RunOutcome.NOT_ENOUGH if moved else RunOutcome.NOTHING_TO_MOVE
    reasons = _not_reached(ledger, plan)
    more = len(reasons[REASONS_NAMED:])
    return StaysOpen(outcome, start.policy, plan.plan_id, tuple(reasons[:REASONS_NAMED]), more)


def staying_open(
    ledger: Ledger, findings: Sequence[FindingRecord], starts: Sequence[StartRecord]
) -> dict[About, StaysOpen]:
    """Findings that are open though what was started for them has ended, and why.

    :param starts: of the cluster, the newest first.
    """
    from rehome.fleet import refused

    newest = {start.about: start for start in reversed(starts)}
    found: dict[About, StaysOpen] = {}
    for each in findings:
        why = refused.stays_open(starts, each.kind, each.subject)
        if why is None and each.about in newest:
            why = stays_open(ledger, each, newest[each.about])
        if why is not None:
            found[each.about] = why
    return found


def counted(heals: Mapping[StartRecord, bool]) -> list[Heal]:
    """What the circuit breaker counts: not those whose plan was refused, which changed nothing.

    :param heals: whether each has failed.
    """
    from include.watching.respond import DAY, Heal

    return [
        Heal(start.started_at, (start.ended_at or start.started_at + DAY) if failed else None)
        for start, failed in heals.items()
        if start.ended_at is None or start.refusal is None
    ]


def _not_reached(ledger: Ledger, plan: PlanRecord) -> list[str]:
    """What a plan could not do, a sentence each; [] = all, or its files cannot be read."""
    from include.domain.plan.infeasible_lines import infeasible_lines
    from include.page.files import files_of

    files = files_of(ledger, plan)
    if files.summary is None:
        log.warning("What plan %s could not do is not known: %s", plan.plan_id, files.problem)
        return []
    return [line.rstrip(".") for line in infeasible_lines(files.summary.infeasible)]


def is_pending(start: StartRecord, now: datetime) -> bool:
    """Whether a run may still make or carry out a plan: within its deadline, or within a day."""
    from include.watching.respond import DAY

    until = start.deadline or start.started_at + DAY
    return start.ended_at is None and now < until


def has_failed(start: StartRecord, now: datetime) -> bool:
    """Whether a run has failed, or its end was never recorded and no longer will be: it was
    deleted, or died with its Airflow.
    """
    return bool(start.failed) or (start.ended_at is None and not is_pending(start, now))


def paused_heal(
    ledger: Ledger, plan: PlanRecord, starts: Sequence[StartRecord]
) -> PausedHeal | None:
    """The cluster's active plan as a heal to go on with; None = it is none, or does not wait for a
    window.
    """
    from include.domain.run.event_kind import EventKind
    from include.domain.run.states import PlanState
    from include.watching.kinds import WatchPolicy
    from include.watching.respond import PausedHeal

    start, paused_at = of_plan(plan, starts), ledger.last_event_at(plan.plan_id, EventKind.PAUSED)
    if plan.state is not PlanState.PAUSED or plan.pause_requested or paused_at is None:
        return None
    if start is None or start.policy is not WatchPolicy.HEAL:
        return None
    again_at = _again_at(plan, starts)
    return PausedHeal(plan.plan_id, plan.action, start.kind, start.subject, paused_at, again_at)


def _again_at(plan: PlanRecord, starts: Sequence[StartRecord]) -> datetime | None:
    """When the next run may go on with a paused plan; None = no dry run has refused the last one.

    :param starts: of the cluster, the newest first.
    """
    from include.watching.refusal import RefusedBy, wait

    own = (start for start in starts if start.plan_id == plan.plan_id)
    refused = list(
        itertools.takewhile(
            lambda s: s.refusal is not None and s.refusal.by is RefusedBy.OF_PAUSED, own
        )
    )
    if not refused:
        return None
    return (refused[0].ended_at or refused[0].started_at) + wait(len(refused))


def of_plan(plan: PlanRecord, starts: Sequence[StartRecord]) -> StartRecord | None:
    """The newest start that has led to a plan, or has gone on with it."""
    driver = (plan.dag_id, plan.run_id)
    return next(
        (s for s in starts if s.plan_id == plan.plan_id or (s.dag_id, s.run_id) == driver), None
    )


def journal_going_on(
    ledger: Ledger,
    plan_id: str,
    connection: str,
    facts: Facts,
    rules: WatchRules,
    taken_at: datetime,
    now: datetime,
) -> dict[str, Any]:
    """Record the start of the run that goes on with a paused heal, before it is triggered; returns
    what ``TriggerDagRunOperator`` takes. It counts among the heals.
    """
    from include.execution.control.resume import same_bounds
    from include.watching.remedy import throttle_of

    plan = ledger.plan(plan_id)
    start = of_plan(plan, ledger.watch_starts(plan.cluster_id))
    assert start is not None
    run_id = _run_id(ledger, start.cluster_id, start.about, taken_at)
    going_on = replace(
        start,
        dag_id=STARTED_DAG,
        run_id=run_id,
        started_at=now,
        ended_at=None,
        failed=None,
        plan_id=plan_id,
        refusal=None,
    )
    ledger.record_watch_start(going_on)
    conf = {**same_bounds(plan.request), **throttle_of(rules, facts.targets), "plan_id": plan_id}
    conf |= {"kafka_config_id": connection, "cluster_id": plan.cluster_id}
    conf["window_end"] = None if facts.window_end is None else facts.window_end.isoformat()
    return {"trigger_run_id": run_id, "conf": conf}


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
