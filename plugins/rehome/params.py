"""The parameters of DAGs, as Airflow's form shows and checks them: made from their models."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from airflow.sdk import DAG, Param
from airflow.sdk.definitions.param import ParamsDict
from pydantic import BaseModel

from rehome.domain.actions import Action
from rehome.domain.request.fields.fleet_parameters import FleetParams
from rehome.domain.request.fields.types import FORMERLY
from rehome.domain.request.parameters import ReassignmentParams
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.partition_counts import PartitionCountsParams
from rehome.domain.request.presets import PRESETS
from rehome.domain.run.control_parameters import ControlParams
from rehome.domain.run.foreign.foreign_request import ForeignAction, ForeignParams, parse_foreign
from rehome.errors import InvalidRequestError
from rehome.field_descriptions import Described, describe_fields

IN_WINDOWS: Mapping[str, Any] = {"action": Action.REBALANCE.value}
"""What runs of windows do by default. A run that a person triggers names its action: a form that is
sent as it came starts nothing.
"""
_ONCE = (
    *("preset", "window_end", "plan_id", "reassignment"),
    "allow_replication_factor_change",
)
_TEXT_IN_FORMS = ("brokers", "destinations", "exclude_brokers")


def reassignment_params() -> dict[str, Param]:
    """Airflow checks each by its schema; parse_request checks them together, before the run."""
    return dict(_form(ReassignmentParams))


def fixed_params(form: Collection[str] = (), **values: Any) -> dict[str, Param]:
    """Parameters of a DAG of people's own, for ``DAG(..., params=fixed_params(action="drain"))``.

    Each has one value, which no run may change: what is given here, or else its default.

    :param form: names that the run's form keeps; what is given of them is their default.
    :param values: of the parameters of `reassign_partitions`, by their names.
    :raises InvalidRequestError: the values cannot be carried out together, or there are no such
        parameters: lists every problem. With a ``form``, the first task judges them together.
    """

    def check(given: Mapping[str, Any]) -> None:
        parse_request(given, recorded=True)

    return _fix(reassignment_params(), form, values, check)


def fixed_foreign_params(
    action: str, form: Collection[str] = (), **values: Any
) -> dict[str, Param]:
    """The same of a DAG about what other clients have in flight.

    :param action: ``describe``, ``follow``, ``cancel`` or ``adopt``: the form never has it.
    :param form: names that the run's form keeps; what is given of them is their default.
    :param values: of the parameters of `foreign_reassignments`, by their names.
    :raises InvalidRequestError: the values cannot be carried out together, or there are no such
        parameters: lists every problem. With a ``form``, the first task judges them together.
    """
    if action not in set(ForeignAction):
        actions = ", ".join(ForeignAction)
        problem = f"There is no action {action}: it is one of {actions}."
        raise InvalidRequestError([problem], next_step=_IN_CODE)
    if "action" in form:
        problem = "The action cannot be on the form: the DAG has the tasks of one action."
        raise InvalidRequestError([problem], next_step=_IN_CODE)
    return _fix(foreign_params(), form, {"action": action, **values}, parse_foreign)


def _fix(
    params: dict[str, Param],
    form: Collection[str],
    values: Mapping[str, Any],
    check: Callable[[Mapping[str, Any]], object],
) -> dict[str, Param]:
    """These parameters, each with one value, but for those of the form."""
    unknown = sorted({*form, *values} - params.keys())
    if unknown:
        raise InvalidRequestError(
            [f"There is no parameter {name}." for name in unknown], next_step=_IN_CODE
        )
    defaults = {name: param.value for name, param in params.items()}
    given = json.loads(json.dumps({**defaults, **values}, default=list))
    if not form:
        try:
            check(given)
        except InvalidRequestError as error:
            raise InvalidRequestError(error.problems, next_step=_IN_CODE) from None
    for name, param in params.items():
        value, schema = given[name], dict(param.schema)
        if name not in form:
            schema = {"const": value, "section": schema.get("section")}
        params[name] = Param(value, param.description, **schema)
    return params


_IN_CODE = "Correct the values in the DAG's file. docs/reference/parameters.md has all of them"


def window_params() -> dict[str, Param]:
    """Those of `reassign_partitions` that mean something in every window."""
    form = dict(_form(ReassignmentParams, IN_WINDOWS))
    return {name: param for name, param in form.items() if name not in _ONCE}


def partition_params() -> dict[str, Param]:
    """Which topics get how many partitions, and how."""
    return {name: param for name, param in _form(PartitionCountsParams) if name != "seed"}


def control_params() -> dict[str, Param]:
    """Which plan, and what is asked of it."""
    return dict(_form(ControlParams))


def foreign_params() -> dict[str, Param]:
    """What is asked of reassignments in flight, and of which."""
    return dict(_form(ForeignParams))


def fleet_params() -> dict[str, Param]:
    """Which clusters are planned, and how long before their windows."""
    return dict(_form(FleetParams))


def connection_param(only: str | None = None) -> Param:
    """Which cluster.

    :param only: the connection of a DAG that is for one cluster; None = any may be given.
    """
    param = reassignment_params()["kafka_config_id"]
    if only is None:
        return param
    return Param(only, param.description, **{**param.schema, "enum": [only]})


def keep_params_once(dag: DAG) -> None:
    """Take from each task its copy of the DAG's params, which Airflow would store with each: half a
    megabyte. What a task is given when it runs are the DAG's params, and then its own.
    """
    for task in dag.tasks:
        params = {name: task.params.get_param(name) for name in task.params}
        task.params = ParamsDict(
            {name: param for name, param in params.items() if not _is_of_dag(dag, name, param)}
        )


def _is_of_dag(dag: DAG, name: str, param: Param) -> bool:
    """Whether a task's param is the copy of the DAG's."""
    if name not in dag.params:
        return False
    of_dag, of_task = (
        (each.value, each.description, each.schema) for each in (dag.params.get_param(name), param)
    )
    return bool(of_dag == of_task)


def presets_table() -> str:
    """What each preset sets, as a table in Markdown."""
    lines = ["| preset | sets | what it is for |", "|---|---|---|"]
    for preset, contents in PRESETS.items():
        values = [f"`{name}`: {json.dumps(value)}" for name, value in contents.values.items()]
        if contents.until_window_closes:
            values.append("`window_end`: when the maintenance window closes")
        lines.append(f"| `{preset}` | {', '.join(values) or 'nothing'} | {contents.about} |")
    return "\n".join(lines)


def _form(model: type[BaseModel], first: Mapping[str, Any] | None = None) -> Iterator[Any]:
    """Name and Param of each field, in the model's order."""
    schemas = model.model_json_schema()["properties"]
    for field in describe_fields(model):
        schema = schemas[field.name]
        # The form reads examples as choices; those of structures stand in the description.
        examples = schema.pop("examples", None)
        if examples and all(isinstance(one, str) for one in examples) and _is_line(schema):
            schema["examples"] = examples
        for name in ("description", "default"):
            schema.pop(name, None)
        if formerly := schema.pop(FORMERLY, None):
            schema |= _accepting([*schema["enum"], *formerly])
        yield (
            field.name,
            Param(
                (first or {}).get(field.name, _default(field)),
                _description(field),
                **schema,
                section=field.section,
            ),
        )


def _accepting(values: list[Any]) -> dict[str, Any]:
    """A part of a schema by which more values are accepted than the form offers. In this draft,
    what stands beside a ``$ref`` is not checked: the ``enum`` there is for the form alone.
    """
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "#/definitions/accepted",
        "definitions": {"accepted": {"enum": values}},
    }


def _is_line(schema: Mapping[str, Any]) -> bool:
    """Whether the form has a line of text for it, to which examples are suggestions."""
    return "array" not in (schema.get("type"), *schema.get("type", ())) and not (
        "enum" in schema or "format" in schema
    )


def _default(field: Described) -> Any:
    """A default as JSON, as the form shows it."""
    if field.name in _TEXT_IN_FORMS:
        return ""
    if isinstance(field.default, tuple):
        return list(field.default)
    if isinstance(field.default, dict) and not field.default:
        return None if field.name != "partitions" else {}
    return field.default


def _description(field: Described) -> str:
    """The description with examples: plain text, for the form's Markdown overlaps its lines."""
    if not field.examples:
        return field.description
    examples = "; or ".join(_example_text(example) for example in field.examples)
    return f"{field.description} For example: {examples}"


def _example_text(example: Any) -> str:
    return example if isinstance(example, str) else json.dumps(example)


FORM_DEFAULTS: Mapping[str, Any] = {
    name: param.value for name, param in reassignment_params().items()
}
"""What the form of `reassign_partitions` shows before it is edited."""
