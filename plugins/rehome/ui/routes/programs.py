"""What routes answer programs: lists and runs as data."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from rehome.account.known import Fact, Known, Unknown
from rehome.account.plan_bytes import PlanBytes
from rehome.account.run_account import RunAccount
from rehome.account.times import EndRange
from rehome.account.words import trouble_words
from rehome.account.words.run_words import changed_text
from rehome.account.words.unknown_words import WHY_UNKNOWN
from rehome.domain.run.causes.cause import Cause
from rehome.ledger.base.paging import PlanLine
from rehome.page.fleet import FleetLine
from rehome.page.plan_json import line_json
from rehome.ui.dag_runs import RunProgress


def plans_json(
    lines: Iterable[tuple[PlanLine, PlanBytes, Fact[EndRange]]], total: int, page: int, pages: int
) -> dict[str, Any]:
    """A page of the list of plans."""
    found = [line_json(line.record, size, ends) for line, size, ends in lines]
    return {"total": total, "page": page, "pages": pages, "plans": found}


def run_json(progress: RunProgress, cause: Cause | None) -> dict[str, Any]:
    """How far a run is, and what has ended or refused it.

    :param cause: None = nothing has, or it has left no word.
    """
    return {
        "ended": progress.ended,
        "failed": progress.failed,
        "cause": None if cause is None else cause.to_json(),
    }


def fleet_json(
    lines: Iterable[FleetLine], shown: Collection[str], problem: str, notes: Iterable[str]
) -> dict[str, Any]:
    """Every cluster of the fleet.

    :param shown: ids of plans that the reader may see.
    :param problem: what is wrong with the clusters file; "" = nothing.
    """
    return {
        "clusters": [_line(line, shown) for line in lines],
        "problem": problem or None,
        "notes": list(notes),
    }


def _line(line: FleetLine, shown: Collection[str]) -> dict[str, Any]:
    account = line.account
    view = account.seen.value if isinstance(account.seen, Known) else None
    why = WHY_UNKNOWN[account.seen.why] if isinstance(account.seen, Unknown) else None
    plan, window = account.plan, account.window
    findings, imbalance = account.findings, account.imbalance
    share = imbalance.value if isinstance(imbalance, Known) else None
    return {
        "title": line.member.title,
        "name": line.member.name or None,
        "connection": line.member.connection or None,
        "cluster_id": line.member.cluster_id or None,
        "snapshot_at": None if view is None else view.taken_at.isoformat(),
        "not_known": why,
        "brokers": None if view is None else len(view.brokers),
        "brokers_away": [each.broker for each in view.brokers if each.problem] if view else [],
        "topics": None if view is None else view.topics,
        "partitions": None if view is None else view.partitions,
        "above_its_share": share,
        "not_well": trouble_words.troubles_in_short(account.troubles) or None,
        "findings": len(findings.value) if isinstance(findings, Known) else None,
        "owed": account.owed,
        "plan_id": plan.plan_id if plan is not None and plan.plan_id in shown else None,
        "plan_state": None if plan is None else plan.state.value,
        "window_opens_at": None if window is None else window.opens_at.isoformat(),
        "window_closes_at": None if window is None else window.closes_at.isoformat(),
        "window_paused": None if window is None else window.paused,
    }


def without_plan_json(account: RunAccount) -> dict[str, Any]:
    """A run that has no plan: what has ended or refused it, and what it has changed."""
    return {
        "state": None if account.state is None else account.state.value,
        "said": account.said or None,
        "details": list(account.details),
        "changed": changed_text(account) or None,
        "left": account.left or None,
        "next_step": account.next_step or None,
    }
