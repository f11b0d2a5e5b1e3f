"""What is known of a run that has no plan: made by one function, for all that show it. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rehome.account.findings import Gates, findings_of
from rehome.account.requests import RequestState, state_of
from rehome.domain.run.causes.cause import Cause
from rehome.domain.run.findings import FindingGroup

REMOVE = "Remove the cause, then trigger a new run."
SEE_LOG = "See the log of the run."


class Changed(enum.StrEnum):
    """What a run without a plan has done to the cluster."""

    NOTHING = "nothing"
    """Its DAG's runs change the cluster by a plan and by nothing else, and it has none."""
    NOT_KNOWN = "not_known"
    """Whether it has a plan is not known, or it has one that this ledger lacks."""
    WITHOUT_PLAN = "without_plan"
    """Its DAG's runs do their work without a plan: their own report says what they changed."""


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """Of one moment.

    :param makes_plan: whether its DAG's runs change the cluster by a plan, and only by one.
    :param planning: whether it is on its way to a plan.
    :param cause: what has ended or refused it, by the ledger; None = nothing has.
    :param failure: what its plan job has left, ``failure.json``; None = nothing.
    :param gates: ``gates.json``.
    :param plan_elsewhere: whether the warehouse holds a plan of it that the ledger lacks.
    :param unknown: why it is not known whether it has a plan; "" = it has none.
    """

    dag_id: str
    run_id: str
    makes_plan: bool
    planning: bool = False
    cause: Cause | None = None
    failure: Mapping[str, Any] | None = None
    gates: Gates = ()
    plan_elsewhere: bool = False
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class RunAccount:
    """A run without a plan at one moment: views of it show these fields.

    :param state: None = it is not on its way to a plan, and nothing is known to have ended it.
    :param said: what has ended or refused it, in a sentence; "" = nothing is known to have.
    :param details: more of that, a sentence each.
    :param left: the state that it has left, in a sentence; "" = not recorded.
    :param next_step: what a person can do; "" = wait.
    :param findings: of its gates, by kind, the worst first.
    """

    dag_id: str
    run_id: str
    state: RequestState | None
    cause: Cause | None
    said: str
    details: tuple[str, ...]
    changed: Changed
    left: str
    next_step: str
    findings: tuple[FindingGroup, ...]


def account_of_run(evidence: RunEvidence) -> RunAccount:
    """What follows from the evidence. What ended a run that goes on again is history."""
    cause = None if evidence.planning else evidence.cause
    failure = None if evidence.planning else evidence.failure
    return RunAccount(
        evidence.dag_id,
        evidence.run_id,
        _state(evidence, cause, failure),
        cause,
        _cause_text(cause, failure),
        tuple((failure or {}).get("details", ())),
        _change_of(evidence),
        cause.left if cause is not None else "",
        _next_step(evidence, cause, failure),
        findings_of(None, evidence.gates),
    )


def _change_of(evidence: RunEvidence) -> Changed:
    if evidence.plan_elsewhere or evidence.unknown:
        return Changed.NOT_KNOWN
    return Changed.NOTHING if evidence.makes_plan else Changed.WITHOUT_PLAN


def _state(
    evidence: RunEvidence, cause: Cause | None, failure: Mapping[str, Any] | None
) -> RequestState | None:
    if evidence.planning:
        return RequestState.PLANNING
    if cause is not None:
        return state_of(cause.kind)
    return RequestState.REFUSED if failure is not None else None


def _cause_text(cause: Cause | None, failure: Mapping[str, Any] | None) -> str:
    if cause is not None:
        return cause.text
    return str(failure["message"]) if failure is not None else ""


def _next_step(
    evidence: RunEvidence, cause: Cause | None, failure: Mapping[str, Any] | None
) -> str:
    if evidence.planning:
        return ""
    if cause is not None and cause.remedy:
        return cause.remedy
    return REMOVE if failure is not None else SEE_LOG
