"""Rows of plans: found by their id, and as values."""

from __future__ import annotations

from dataclasses import fields

from sqlalchemy import Connection, RowMapping, bindparam, select

from rehome.domain.broker_rates import BrokerRates
from rehome.domain.run.approval_terms import Approval
from rehome.domain.run.askers import Term
from rehome.domain.run.ledger_view import refused_from_json
from rehome.domain.run.states import PlanState
from rehome.errors import PlanConflictError
from rehome.ledger.base.models import PLANS
from rehome.ledger.base.records import EndReason, PlanRecord

_PLAN = select(PLANS).where(PLANS.c.plan_id == bindparam("of"))
_ACTIVE = select(PLANS).where(PLANS.c.active_cluster_id == bindparam("of"))
"""Statements of every poll are made once: to make one takes longer than to carry it out."""
_FIELDS = tuple(item.name for item in fields(PlanRecord))


def select_plan(connection: Connection, plan_id: str) -> RowMapping | None:
    """A plan's row."""
    return connection.execute(_PLAN, {"of": plan_id}).mappings().one_or_none()


def select_active(connection: Connection, cluster_id: str) -> RowMapping | None:
    """The row of the plan that holds a cluster."""
    return connection.execute(_ACTIVE, {"of": cluster_id}).mappings().one_or_none()


def record_of(row: RowMapping) -> PlanRecord:
    """A plan's row as a value."""
    values = {name: row[name] for name in _FIELDS}
    values["state"] = PlanState(row["state"])
    values["end_reason"] = row["end_reason"] and EndReason(row["end_reason"])
    if row["approval"] is not None:
        values["approval"] = Approval.from_json(row["approval"])
    askers = row["terms_asked_by"] or {}
    values["terms_asked_by"] = {Term(term): who for term, who in askers.items()}
    values["requested_rates_by_broker"] = rates_asked(row)
    values["refused_cancels"] = refused_from_json(row["refused_cancels"])
    return PlanRecord(**values)


def rates_asked(row: RowMapping) -> BrokerRates | None:
    """Rates of single brokers that were asked for in mid-run; None = none were."""
    rates = row["requested_rates_by_broker"]
    return None if rates is None else BrokerRates.from_json(rates)


def unknown_plan(plan_id: str) -> PlanConflictError:
    """The error for a plan that there is none of."""
    return PlanConflictError(
        f"The ledger knows no plan {plan_id!r}",
        next_step="Check the plan id, and that this is the ledger the plan was recorded in.",
    )
