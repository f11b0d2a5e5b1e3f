"""Runs that watching starts for findings: their ids and parameters, and how far they have come."""

from __future__ import annotations

import enum
import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from include.ledger.base.records import PlanRecord
    from include.ledger.store import Ledger
    from include.ledger.stores.watched.starts import StartRecord
    from include.watching.finding import FindingRecord
    from include.watching.respond import Response

STARTED_DAG = "reassign_partitions"
"""What is triggered for a finding."""
PREFIX = "watch__"
"""What the ids of runs begin with that watching starts."""


def chosen_in(run: Any) -> frozenset[str]:
    """The parameters of a run that watching has chosen: no target of the cluster replaces them.

    Of other runs it is not known: a form sends every parameter, chosen or not.
    """
    own = str(run.run_id).startswith(PREFIX)
    return frozenset(getattr(run, "conf", None) or ()) if own else frozenset()


class Left(enum.Enum):
    """What the budget of a plan has left of a finding."""

    NOTHING = "nothing"
    PAID_FOR = "paid_for"  # the next plan can go on with it
    TOO_LARGE = "too_large"  # the budget pays for no part of it


def left_by_budget(plan: PlanRecord | None, budget_bytes: int | None) -> Left:
    """What is to be done after a plan that was made for a finding.

    :param plan: None = none was made.
    :param budget_bytes: of the next plan; None = any number.
    """
    from include.domain.run.states import PlanState

    if plan is None or plan.state is not PlanState.DONE or not plan.cut_by_budget:
        return Left.NOTHING
    before = plan.request.get("budget_bytes")
    grown = before is not None and (budget_bytes is None or budget_bytes > before)
    return Left.PAID_FOR if plan.bytes_total or grown else Left.TOO_LARGE


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


def journal(
    ledger: Ledger, response: Response, connection: str, taken_at: datetime, now: datetime
) -> dict[str, Any]:
    """Record a start before it is triggered; returns what ``TriggerDagRunOperator`` takes."""
    from include.ledger.stores.watched.starts import StartRecord

    start = response.start
    assert start is not None
    finding = start.finding
    assert finding.opened_at is not None
    run_id = run_id_of(finding, taken_at)
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


def run_id_of(finding: FindingRecord, taken_at: datetime) -> str:
    """Of the run that is started for a finding, by a snapshot; it names the kind, for those who
    read lists.
    """
    about = f"{finding.cluster_id}/{finding.subject}/{finding.opened_at}"
    digest = hashlib.sha256(about.encode()).hexdigest()[:8]
    return f"{PREFIX}{finding.kind}__{stamp(taken_at)}__{digest}"


def stamp(taken_at: datetime) -> str:
    """A snapshot's time, as ids of runs have it."""
    return f"{taken_at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
