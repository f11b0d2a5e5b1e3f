"""How long plans, and what the ledger has besides, are kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rehome.errors import RehomeError
from rehome.ledger.store import Ledger
from rehome.warehouse import Warehouse

PLANS_AT_ONCE = 500
"""Plans that one run removes at most: the first run of an old installation ends, too."""
_STAMP = re.compile(r"^(\d{8}T\d{6})Z-")
"""What a plan's id begins with where its run has made it: when that was."""


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed, or would be.

    :param plans: ids of plans; ``folders``: names of folders that hold no finished plan.
    :param rows: table → rows about no plan that is there.
    :param problems: what stays, for its files cannot be removed: a sentence each.
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
    old_plans = ledger.old_plans(before, PLANS_AT_ONCE + 1)
    plans = tuple(each.plan_id for each in old_plans[:PLANS_AT_ONCE])
    folders = _unfinished_folders(ledger, warehouse, before)
    return Removed(plans, folders, more=len(old_plans) > PLANS_AT_ONCE)


def remove_old(ledger: Ledger, warehouse: Warehouse, now: datetime, days: int) -> Removed:
    """Remove plans that ended, or were never begun, before so many days, and other old rows.

    Files go first: should the process die, the ledger still has the plan, and the next run goes on.

    :raises LedgerUnavailableError: the ledger cannot be used.
    """
    before = now - timedelta(days=days)
    old_plans = ledger.old_plans(before, PLANS_AT_ONCE + 1)
    plans, problems = list[str](), list[str]()
    for plan in old_plans[:PLANS_AT_ONCE]:
        try:
            warehouse.plan_at(plan.plan_dir).remove_all()
        except (OSError, RehomeError) as error:
            problems.append(f"The files of plan {plan.plan_id} cannot be removed: {error}")
            continue
        if ledger.forget_plan(plan.plan_id, before):
            plans.append(plan.plan_id)
    folders = list[str]()
    for name in _unfinished_folders(ledger, warehouse, before):
        try:
            warehouse.plan(name).remove_all()
        except OSError as error:
            problems.append(f"The folder {name} cannot be removed: {error}")
        else:
            folders.append(name)
    rows, more = ledger.forget_rows(before), len(old_plans) > PLANS_AT_ONCE
    return Removed(tuple(plans), tuple(folders), rows, tuple(problems), more)


def _unfinished_folders(ledger: Ledger, warehouse: Warehouse, before: datetime) -> tuple[str, ...]:
    """Folders without a plan, of runs that were refused before they had one, by the time in their
    names. A finished plan that this ledger does not have stays: it may be another ledger's.
    """
    finished = set(warehouse.finished_plans())
    old = [name for name in warehouse.plan_folders() if _is_older(name, before)]
    return tuple(ledger.not_recorded([name for name in old if name not in finished]))[
        :PLANS_AT_ONCE
    ]


def _is_older(name: str, before: datetime) -> bool:
    match = _STAMP.match(name)
    if match is None:
        return False
    try:
        made = datetime.strptime(match[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return False
    return made < before
