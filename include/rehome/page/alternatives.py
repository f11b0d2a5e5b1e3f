"""Other plans that a person can have made in place of one that was shown: smaller, or relaxed."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rehome.domain.plan.figures import BudgetPoint, TargetPrice
from rehome.domain.plan.summary import PlanSummary
from rehome.domain.request.param_types import TOLERANCES
from rehome.domain.resources import Resource
from rehome.domain.text import bytes_text
from rehome.execution.control.resume import in_time
from rehome.ledger.base.records import PlanRecord

SOLVED, FREE = "solved", "free"
"""Methods of prices: the saving is exact; nothing is copied for the target."""


class Instead(enum.StrEnum):
    """In what another plan differs."""

    BUDGET = "budget"  # copies at most so many bytes
    WITHOUT = "without"  # does not keep to one of the targets


@dataclass(frozen=True, slots=True)
class Choice:
    """One plan of those that can be compared. Bytes.

    :param kind, value: what to ask for, a budget in bytes or a target's name; None = this is the
        plan that is shown, or the cluster as it is.
    :param furthest: resource → how far the broker that is furthest off its share would be; empty
        where that is not known.
    :param about: how its figures are to be read: "" = exact for this snapshot, "about", "at most".
    """

    label: str
    bytes_to_move: int
    replica_moves: int | None
    kind: Instead | None = None
    value: str = ""
    furthest: Mapping[str, float] | None = None
    about: str = ""
    shown: bool = False


@dataclass(frozen=True, slots=True)
class Choices:
    """What can be chosen from, and the curve that the budgets make.

    :param resources: those that have a target, in the order of the columns.
    :param corners: (x, y) of each budget, in percent of the largest one's bytes and of the worst
        distance of ``resources[0]``, y downwards as SVG counts; each with its choice.
    """

    budgets: tuple[Choice, ...]
    relaxed: tuple[Choice, ...]
    resources: tuple[str, ...]
    corners: tuple[tuple[float, float, Choice], ...]


def choices_of(summary: PlanSummary) -> Choices | None:
    """What the plan's summary offers; None = nothing."""
    budgets = tuple(_budget(point, summary) for point in summary.curve)
    relaxed = tuple(
        _choice_to_relax(price, summary)
        for price in summary.prices
        if price.method != FREE and (price.bytes_to_move > 0 or price.replica_moves > 0)
    )
    if not budgets and not relaxed:
        return None
    furthest = summary.curve[0].furthest if summary.curve else {}
    resources = tuple(resource.value for resource in Resource if resource.value in furthest)
    return Choices(budgets, relaxed, resources, _corners(budgets, resources))


def name_of(resource: str) -> str:
    """A target as people say it."""
    return resource.replace("_", " ")


def params_instead(
    record: PlanRecord, summary: PlanSummary, kind: Instead, value: str, now: datetime
) -> dict[str, Any] | None:
    """Parameters of a dry run that plans a choice; None = the plan does not offer it."""
    choices = choices_of(summary)
    offered = (*choices.budgets, *choices.relaxed) if choices else ()
    if not any((choice.kind, choice.value) == (kind, value) for choice in offered):
        return None
    params = in_time(record.request, now) | {"dry_run": True}
    if kind is Instead.BUDGET:
        return params | {"budget_bytes": int(value)}
    return params | {"tolerances": {**params.get("tolerances", {}), value: None}}


def _choice_to_relax(price: TargetPrice, summary: PlanSummary) -> Choice:
    label = f"Without the {name_of(price.resource)} target"
    can_be_asked_for = price.resource in TOLERANCES
    kind = Instead.WITHOUT if can_be_asked_for else None
    value = price.resource if can_be_asked_for else ""
    if summary.asked_bound_bytes is not None:  # what is saved goes to what the budget had cut off
        return Choice(label, summary.bytes_to_move, None, kind, value, about="at most")
    left = summary.bytes_to_move - price.bytes_to_move
    replicas = summary.replica_moves - price.replica_moves
    about = "about" if price.method == SOLVED else "at most"
    return Choice(label, left, replicas, kind, value, about=about)


def _budget(point: BudgetPoint, summary: PlanSummary) -> Choice:
    copied = point.bytes_to_move, point.replica_moves
    shown = copied == (summary.bytes_to_move, summary.replica_moves)
    if shown:
        return Choice("This plan", *copied, furthest=point.furthest, shown=True)
    if not point.bytes_to_move:
        return Choice("As it is", *copied, furthest=point.furthest)
    label = f"At most {bytes_text(point.budget_bytes)}"
    return Choice(label, *copied, Instead.BUDGET, str(point.budget_bytes), furthest=point.furthest)


def _corners(
    budgets: Sequence[Choice], resources: Sequence[str]
) -> tuple[tuple[float, float, Choice], ...]:
    if not budgets or not resources:
        return ()
    widest = max(choice.bytes_to_move for choice in budgets) or 1
    off = [(choice.furthest or {}).get(resources[0], 0.0) for choice in budgets]
    worst = max(off) or 1.0
    return tuple(
        (round(100 * choice.bytes_to_move / widest, 2), round(100 * (1 - part / worst), 2), choice)
        for choice, part in zip(budgets, off, strict=True)
    )
