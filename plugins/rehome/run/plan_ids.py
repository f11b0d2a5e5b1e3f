"""The ids of a run's plans: made by it or continued, the same in every retry."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rehome import installation
from rehome.domain.request.param_types import checked_plan_id
from rehome.domain.request.request import Action
from rehome.run import run_params
from rehome.run.steps import FOLLOW_UP as FOLLOW_UP

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


def plan_id_of(context: Context | Mapping[str, Any]) -> str:
    """The id of the task's plan, made by its run or continued: the same in every retry.

    Tasks of the group ``follow_up`` have a plan of their own, named after the run's.
    """
    first = first_plan_id(context)
    return follow_up_id(first) if in_follow_up(context) else first


def first_plan_id(context: Context | Mapping[str, Any]) -> str:
    """The id of the plan that the run began with, made by it or continued."""
    return _continued_plan(context) or new_plan_id(context)


def follow_up_id(plan_id: str) -> str:
    """The id of the plan that follows a plan up within its run."""
    return f"{plan_id}-{FOLLOW_UP}"


def in_follow_up(context: Context | Mapping[str, Any]) -> bool:
    """Whether the task works on what has appeared since the run's plan was made."""
    return str(getattr(context.get("task"), "task_id", "")).startswith(f"{FOLLOW_UP}.")


def _continued_plan(context: Context | Mapping[str, Any]) -> str | None:
    named = _named_plan(context)
    if named is not None or run_params.window_end_of(context) is None:
        return named
    run = context["dag_run"]
    with installation.open_ledger() as ledger:
        return ledger.taken_up_by(run.dag_id, run.run_id)


def named_plan_id(context: Context | Mapping[str, Any]) -> str | None:
    """The id of the plan that the task is asked to go on with, or to act on.

    :raises InvalidRequestError: no plan can have this id.
    """
    return None if in_follow_up(context) else _named_plan(context)


def _named_plan(context: Context | Mapping[str, Any]) -> str | None:
    params = run_params.own_params(context)
    named = str(params.get("plan_id") or "").strip()
    if not named or params.get("action") == Action.ROLLBACK.value:
        return None
    return checked_plan_id(named)


def new_plan_id(context: Context | Mapping[str, Any]) -> str:
    """The id of the plan that the run makes, where it continues none."""
    run = context["dag_run"]
    action = str(run_params.own_params(context).get("action") or run.dag_id)
    return f"{run.run_after:%Y%m%dT%H%M%SZ}-{action}-{run_digest(run.dag_id, run.run_id)}"


def run_digest(dag_id: str, run_id: str) -> str:
    """What the id of a run's plan ends with."""
    return hashlib.sha256(f"{dag_id}/{run_id}".encode()).hexdigest()[:10]
