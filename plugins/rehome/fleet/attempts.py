"""The last attempt for each finding, by the runs that watching has started and their plans."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from rehome.domain.plan.infeasible_lines import infeasible_lines, limit_lines
from rehome.domain.run.causes.cause import CauseKind
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding_kinds import WatchPolicy
from rehome.fleet import watch_runs
from rehome.watching.last_attempt import AGAIN, Attempted, LastAttempt
from rehome.watching.respond import DAY

if TYPE_CHECKING:
    from rehome.domain.run.causes.cause import Cause
    from rehome.domain.run.watched.finding_kinds import FindingKind
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger
    from rehome.ledger.stores.watched.starts import StartRecord

log = logging.getLogger(__name__)

REASONS_NAMED = 3
_NOT_BEGUN = frozenset({Attempted.REFUSED, Attempted.HANDED_OVER})


def last_attempts(
    ledger: Ledger, starts: Sequence[StartRecord], now: datetime
) -> dict[tuple[FindingKind, str], LastAttempt]:
    """The last attempt for each kind and subject for which any run was started.

    :param starts: of the cluster, the newest first.
    """
    keys = dict.fromkeys((start.kind, start.subject) for start in starts)
    return {key: _last(ledger, [s for s in starts if s.about[:2] == key], now) for key in keys}


def of_run(ledger: Ledger, dag_id: str, run_id: str, now: datetime) -> LastAttempt | None:
    """A run as the last attempt for its finding; None = watching has not started it."""
    start = ledger.watch_start(dag_id, run_id)
    if start is None:
        return None
    alike = (each for each in ledger.watch_starts(start.cluster_id) if each.about == start.about)
    return _last(ledger, [*itertools.dropwhile(lambda each: each.run_id != run_id, alike)], now)


def heals(ledger: Ledger, starts: Sequence[StartRecord], now: datetime) -> list[datetime]:
    """What the circuit breaker counts: when heals of the last day began that have changed
    something, or may. One that was handed over begins when a window takes it up.
    """
    begun = []
    for start in starts:
        if start.policy is WatchPolicy.HEAL:
            plan = None if start.plan_id is None else ledger.plan(start.plan_id)
            at = start.started_at if plan is None else plan.started_at or start.started_at
            if now - at < DAY and _attempt(ledger, start, now).outcome not in _NOT_BEGUN:
                begun.append(at)
    return begun


def _last(ledger: Ledger, alike: Sequence[StartRecord], now: datetime) -> LastAttempt:
    """:param alike: for one kind and subject, the newest first."""
    attempts = (_attempt(ledger, start, now) for start in alike)
    newest = next(attempts)
    if newest.outcome not in AGAIN:
        reasons = _not_reached(ledger, newest)
        more = len(reasons[REASONS_NAMED:])
        return replace(newest, reasons=reasons[:REASONS_NAMED], more=more)
    row = itertools.takewhile(lambda each: each.outcome in AGAIN, attempts)
    return replace(newest, in_a_row=1 + sum(1 for _ in row))


def _attempt(ledger: Ledger, start: StartRecord, now: datetime) -> LastAttempt:
    plan = None if start.plan_id is None else ledger.plan(start.plan_id)
    cause = _cause(ledger, start, plan)
    outcome = _outcome(ledger, start, plan, cause, now)
    ended_at = start.ended_at if plan is None else plan.ended_at or start.ended_at
    if outcome is Attempted.FAILED and ended_at is None:
        ended_at = watch_runs.pending_until(start)
    return LastAttempt(start.run_id, start.opened_at, ended_at, outcome, start.plan_id or "", cause)


def _cause(ledger: Ledger, start: StartRecord, plan: PlanRecord | None) -> Cause | None:
    """What has ended its run, or the one that had its plan last."""
    if start.ended_at is None:
        return None
    if start.failed:
        return ledger.cause_of(start.dag_id, start.run_id)
    if plan is None or plan.state is PlanState.DONE:
        return None
    runs = ledger.ended_runs_of(plan.plan_id)
    return runs[0].cause if runs else None


def _outcome(
    ledger: Ledger,
    start: StartRecord,
    plan: PlanRecord | None,
    cause: Cause | None,
    now: datetime,
) -> Attempted:
    if start.ended_at is None:
        return Attempted.UNDER_WAY if watch_runs.is_pending(start, now) else Attempted.FAILED
    if cause is not None and cause.kind is CauseKind.NO_ANSWER:
        return Attempted.NO_ANSWER
    if cause is not None and cause.kind.by_person:
        return Attempted.BY_PERSON
    return Attempted.REFUSED if plan is None else _came_of(ledger, start, plan, cause)


def _came_of(
    ledger: Ledger, start: StartRecord, plan: PlanRecord, cause: Cause | None
) -> Attempted:
    """What came of a plan whose run has ended."""
    if plan.end_reason is not None or plan.cancel_requested:
        return Attempted.BY_PERSON
    if plan.state.active:
        return Attempted.UNDER_WAY
    if plan.for_window_at is not None and not plan.state.ended:
        return Attempted.HANDED_OVER
    if plan.state is PlanState.DONE and not start.failed:
        if plan.cut_by_budget:
            return Attempted.PARTLY if plan.bytes_total else Attempted.TOO_LARGE
        return Attempted.NOT_ENOUGH if ledger.move_sums(plan.plan_id) else Attempted.NOTHING_TO_MOVE
    if plan.started_at is not None:
        return Attempted.FAILED
    # An earlier Rehome has not recorded what has ended a proposal: hardly anything else does.
    unknown = cause is None and start.policy is WatchPolicy.PROPOSE
    return Attempted.NO_ANSWER if unknown else Attempted.REFUSED


def _not_reached(ledger: Ledger, attempt: LastAttempt) -> tuple[str, ...]:
    """What its plan could not do, a sentence each; () = all, or its files cannot be read."""
    from rehome.page.files import files_of

    if attempt.outcome not in (Attempted.NOT_ENOUGH, Attempted.NOTHING_TO_MOVE):
        return ()
    files = files_of(ledger, ledger.plan(attempt.plan_id))
    if files.summary is None:
        log.warning("What plan %s could not do is not known: %s", attempt.plan_id, files.problem)
        return ()
    notes = files.summary.infeasible
    return tuple(line.rstrip(".") for line in (*infeasible_lines(notes), *limit_lines(notes)))
