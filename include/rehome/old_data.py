"""How long plans, and what the ledger has besides, are kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rehome.errors import RehomeError
from rehome.ledger.store import Ledger
from rehome.warehouse import PlanDirectory, Warehouse

PLANS_AT_ONCE = 500
"""Plans that one run removes at most: the first run of an old installation ends, too."""
_STAMP = re.compile(r"^(\d{8}T\d{6})Z-")
"""What a plan's id begins with where its run has made it: when that was."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed, or would be.

    :param plans: ids of plans that the ledger had; ``folders``: of those that it had not.
    :param rows: table → rows about no plan that is there.
    :param problems: plans that stay, for their files cannot be removed: a sentence each.
    :param more: whether there are further plans, for the next run.
    """

    plans: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    more: bool = False


def to_be_removed(ledger: Ledger, warehouse: Warehouse, now: datetime, days: int) -> Removed:
    """What :func:`remove_old` would remove of plans. It changes nothing."""
    before = now - timedelta(days=days)
    found = ledger.old_plans(before, PLANS_AT_ONCE + 1)
    plans = tuple(each.plan_id for each in found[:PLANS_AT_ONCE])
    return Removed(plans, _unknown(ledger, warehouse, before), more=len(found) > PLANS_AT_ONCE)


def remove_old(ledger: Ledger, warehouse: Warehouse, now: datetime, days: int) -> Removed:
    """Remove plans that ended, or were never begun, before so many days, and other old rows.

    Files go first: should the process die, the ledger still has the plan, and the next run goes on.

    :raises LedgerError: the ledger cannot be used.
    """
    before = now - timedelta(days=days)
    found = ledger.old_plans(before, PLANS_AT_ONCE + 1)
    plans, problems = list[str](), list[str]()
    for plan in found[:PLANS_AT_ONCE]:
        try:
            warehouse.plan_at(plan.plan_dir).remove_all()
        except (OSError, RehomeError) as error:
            problems.append(f"The files of plan {plan.plan_id} cannot be removed: {error}")
            continue
        if ledger.forget_plan(plan.plan_id, before):
            plans.append(plan.plan_id)
    folders = _unknown(ledger, warehouse, before)
    for name in folders:
        PlanDirectory(f"{warehouse.uri}/plans/{name}").remove_all()
    rows = ledger.forget_rows(before)
    return Removed(tuple(plans), folders, rows, tuple(problems), more=len(found) > PLANS_AT_ONCE)


def _unknown(ledger: Ledger, warehouse: Warehouse, before: datetime) -> tuple[str, ...]:
    """Folders of plans that the ledger does not have, by the time in their names: of runs that
    were refused before they had a plan, and of a ledger that was lost.
    """
    old = [name for name in warehouse.plan_folders() if _is_older(name, before)]
    return tuple(ledger.not_recorded(old)[:PLANS_AT_ONCE])


def _is_older(name: str, before: datetime) -> bool:
    found = _STAMP.match(name)
    if found is None:
        return False
    try:
        made = datetime.strptime(found[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return False
    return made < before
