"""The page of what DAG authors import: task group, hook, operators, sensor, by their docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from handbook.markdown import table
from handbook.sources import inline, param_docs, signature
from rehome.cluster.interface.errors import ClusterError, MissingRightError
from rehome.domain.kafka import BrokerError, OngoingReassignment, Partial
from rehome.errors import PlanConflictError
from rehome.execution.access.connection_policy import PolicyError
from rehome.execution.direct.direct_throttle import (
    DirectThrottle,
    DirectThrottleError,
    TakenBack,
    ThrottleChange,
)
from rehome.execution.direct.own_reassignments import (
    NotOwnReassignment,
    NotOwnReassignmentError,
)
from rehome.execution.direct.wanted_copies import PlacedReplica
from rehome.execution.foreign.cancel_foreign import SetMeanwhileError
from rehome.execution.foreign.in_flight import Flight
from rehome.execution.foreign.read_flights import DescribedFlights
from rehome.hooks.cluster import KafkaClusterHook
from rehome.hooks.reassignment import KafkaReassignmentHook
from rehome.ledger.base.fencing import LeaseHeldError
from rehome.operators.approval.approve import ApprovePlanOperator
from rehome.operators.base import ClusterOperator
from rehome.operators.completion.plan_done import PlanDoneOperator
from rehome.operators.completion.preferred_leaders import RestorePreferredLeadersOperator
from rehome.operators.completion.report import WriteReportOperator
from rehome.operators.completion.verdict import VerdictOperator
from rehome.operators.completion.verify import VerifyReassignmentOperator
from rehome.operators.dry_run import DryRunOperator
from rehome.operators.execute import StartReassignmentOperator
from rehome.operators.foreign.adopt import AdoptionVerdictOperator, AdoptReassignmentsOperator
from rehome.operators.foreign.approve import ApproveForeignOperator
from rehome.operators.foreign.cancel import CancelForeignOperator
from rehome.operators.foreign.look import FollowReassignmentsSensor, LookAtReassignmentsOperator
from rehome.operators.plan import PlanReassignmentOperator
from rehome.operators.snapshot import SnapshotClusterOperator
from rehome.operators.throttle import ClearThrottleOperator, SetThrottleOperator
from rehome.params import fixed_foreign_params, fixed_params
from rehome.run.causes.errors import EndedError
from rehome.run.evidence import NotDoneError
from rehome.run.steps import StepMissingError
from rehome.sensors.reassignment import ReassignmentSensor
from rehome.task_graph import foreign_reassignments, reassign

OPERATORS = (
    SnapshotClusterOperator,
    PlanReassignmentOperator,
    DryRunOperator,
    ApprovePlanOperator,
    SetThrottleOperator,
    StartReassignmentOperator,
    ClearThrottleOperator,
    VerifyReassignmentOperator,
    RestorePreferredLeadersOperator,
    WriteReportOperator,
    VerdictOperator,
    PlanDoneOperator,
)
OF_OTHERS = (
    LookAtReassignmentsOperator,
    ApproveForeignOperator,
    CancelForeignOperator,
    AdoptReassignmentsOperator,
    AdoptionVerdictOperator,
)
"""For what other clients have in flight."""
ANSWERS = (
    OngoingReassignment,
    NotOwnReassignment,
    BrokerError,
    Partial,
    DirectThrottle,
    ThrottleChange,
    TakenBack,
    PlacedReplica,
    DescribedFlights,
    Flight,
)
ERRORS = (
    ClusterError,
    MissingRightError,
    DirectThrottleError,
    NotOwnReassignmentError,
    PolicyError,
    StepMissingError,
    SetMeanwhileError,
    NotDoneError,
    PlanConflictError,
    LeaseHeldError,
    EndedError,
)


def library_page() -> str:
    """Markdown: what is imported from where, what it takes, what it answers and raises."""
    return "\n\n".join(_parts()) + "\n"


def _parts() -> Iterator[str]:
    yield "# Library"
    yield (
        "What DAGs of your own import from Rehome. [How to use it](../howto/own-dag.md). Whatever "
        "is not on this page may change with any version."
    )
    yield "## Task group"
    for function in (reassign, fixed_params, foreign_reassignments, fixed_foreign_params):
        yield from _described(function, "###", f"{function.__name__}{signature(function)}")
    yield "## Hook"
    yield from _described(KafkaReassignmentHook, "###", "KafkaReassignmentHook(kafka_config_id)")
    for name, method in vars(KafkaReassignmentHook).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            yield from _described(method, "####", f"{name}{signature(method)}", of_module=False)
    yield "The hook also has, of the connection:"
    inherited = [(f"`{n}`", _line(KafkaClusterHook, n)) for n in ("connection", "policy", "exists")]
    yield table(("property", "meaning"), inherited)
    yield "## Sensors"
    for sensor in (ReassignmentSensor, FollowReassignmentsSensor):
        yield from _described(sensor, "###", sensor.__name__)
    yield "## Operators"
    yield _prose(inspect.getdoc(ClusterOperator) or "")
    yield table(("parameter of each", "meaning"), _params(ClusterOperator))
    for operator in OPERATORS:
        yield from _described(operator, "###", operator.__name__)
    yield "## Operators for what other clients have in flight"
    yield (
        "Each in a DAG with the parameters of `fixed_foreign_params`, in the order of the task "
        "group `foreign_reassignments`, and with its task ids. [How to use them]"
        "(../howto/foreign-reassignments.md#in-a-dag-of-your-own)."
    )
    for operator in OF_OTHERS:
        yield from _described(operator, "###", operator.__name__)
    yield "## What the hook answers"
    for answer in ANSWERS:
        yield from _described(answer, "###", answer.__name__)
        named = {name.strip("`") for name, _ in _params(answer)}
        rest = [f"`{each.name}`" for each in fields(answer) if each.name not in named]
        if rest:
            yield f"Further fields: {', '.join(rest)}."
    yield "## Errors"
    for error in ERRORS:
        yield from _described(error, "###", error.__name__)


def _described(subject: Any, level: str, title: str, *, of_module: bool = True) -> Iterator[str]:
    yield f"{level} `{title}`"
    if of_module:
        yield f"`from {subject.__module__} import {subject.__name__}`"
    text = inspect.getdoc(subject) or ""
    yield _prose(text)
    if rows := _params(subject):
        yield table(("parameter", "meaning"), rows)
    for label, found in (("Returns", _field(text, "returns?")), ("Raises", _raised(text))):
        if found:
            yield f"{label}: {found}"


def _params(subject: Any) -> list[tuple[str, str]]:
    return [(f"`{name}`", inline(text)) for name, text in param_docs(subject).items()]


def _line(owner: type, name: str) -> str:
    return inline((inspect.getdoc(inspect.getattr_static(owner, name)) or "").splitlines()[0])


def _field(text: str, name: str) -> str:
    found = re.search(rf"^:{name}: (.*?)(?=^:|\Z)", text, re.M | re.S)
    return inline(found.group(1)) if found else ""


def _raised(text: str) -> str:
    found = re.findall(r"^:raises ([\w, ]+): (.*?)(?=^:|\Z)", text, re.M | re.S)
    return " ".join(f"`{name}`: {inline(why)}" for name, why in found)


def _prose(text: str) -> str:
    """What comes before the fields of a docstring; of lists, an item keeps its line."""
    before = re.split(r"^:(?:param|returns?|raises|ivar)", text, maxsplit=1, flags=re.M)[0]
    return "\n\n".join(map(_paragraph, before.strip().split("\n\n")))


def _paragraph(text: str) -> str:
    if not text.startswith("- "):
        return inline(text)
    return "\n".join(f"- {inline(item)}" for item in re.split(r"^- ", text, flags=re.M)[1:])
