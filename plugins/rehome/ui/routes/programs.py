"""What routes answer programs: lists and runs as data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rehome.account.known import Fact
from rehome.account.plan_bytes import PlanBytes
from rehome.account.run_account import RunAccount
from rehome.account.times import EndRange
from rehome.account.words.run_words import changed_text
from rehome.domain.run.causes.cause import Cause
from rehome.ledger.base.paging import PlanLine
from rehome.page.plan_json import line_json
from rehome.ui.dag_runs import RunProgress


def plans_json(
    lines: Iterable[tuple[PlanLine, PlanBytes, Fact[EndRange]]], total: int, page: int, pages: int
) -> dict[str, Any]:
    """A page of the list of plans."""
    plan_lines = [line_json(line.record, size, ends) for line, size, ends in lines]
    return {"total": total, "page": page, "pages": pages, "plans": plan_lines}


def run_json(progress: RunProgress, cause: Cause | None) -> dict[str, Any]:
    """How far a run is, and what has ended or refused it.

    :param cause: None = nothing has, or it has left no word.
    """
    return {
        "ended": progress.ended,
        "failed": progress.failed,
        "cause": None if cause is None else cause.to_json(),
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
