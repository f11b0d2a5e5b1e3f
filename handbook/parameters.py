"""The page that lists the parameters of every DAG, as Airflow's form checks them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from handbook.markdown import table

FULL = "reassign_partitions"
"""Of DAGs that share its parameters, only the differences are shown."""
_TYPES = {"integer": "whole number", "string": "text", "boolean": "true, false", "array": "list"}


def parameters_page(dags: Sequence[Any]) -> str:
    """Markdown: one section for each DAG that has parameters.

    :param dags: Airflow's, all of them.
    """
    given = {dag.dag_id: _params_of(dag) for dag in dags}
    parts = [
        "# Parameters",
        "What a run can be given: in Airflow's form, by its API, or by `airflow dags trigger DAG "
        "--conf JSON`. A run that is given an unknown parameter or a wrong value fails before it "
        "changes anything.",
    ]
    for dag in sorted(dags, key=lambda dag: dag.dag_id != FULL):
        parts.append(f"## {dag.dag_id}")
        parts += _section(dag.dag_id, given)
    return "\n\n".join(parts) + "\n"


def _params_of(dag: Any) -> dict[str, Any]:
    return {name: dag.params.get_param(name) for name in dag.params}


def _section(name: str, given: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    own, full = given[name], given[FULL]
    shared = name != FULL and len(own) > 3 and all(_same(full.get(key), own[key]) for key in own)
    if shared:
        left_out = ", ".join(f"`{key}`" for key in full if key not in own)
        others = [
            f"`{key}` is {_default(param.value)}"
            for key, param in own.items()
            if param.value != full[key].value
        ]
        defaults = f" By default {', '.join(others)}." if others else ""
        yield f"Those of [{FULL}](#{FULL}), without {left_out}.{defaults}"
        return
    sections: dict[str, list[tuple[str, ...]]] = {}
    for key, param in own.items():
        sections.setdefault(param.schema.get("section", ""), []).append(_row(key, param))
    for title, rows in sections.items():
        if title:
            yield f"### {title}"
        yield table(("parameter", "values", "default", "meaning"), rows)


def _same(one: Any, other: Any) -> bool:
    return one is not None and one.schema == other.schema


def _row(name: str, param: Any) -> tuple[str, ...]:
    return f"`{name}`", kind(param.schema), _default(param.value), param.description or ""


def _default(value: Any) -> str:
    if value in (None, "", [], {}):
        return ""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def kind(schema: Mapping[str, Any]) -> str:
    """What a JSON schema accepts, in words; that nothing may be given is left out.

    :param schema: of one parameter; its ``enum``, ``anyOf``, ``type`` and bounds are shown.
    """
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"] if value is not None)
    if "anyOf" in schema:
        return " or ".join(filter(None, map(kind, schema["anyOf"])))
    types = schema.get("type", [])
    names = [types] if isinstance(types, str) else list(types)
    names_text = " or ".join(_type(name, schema) for name in names if name != "null")
    return ", ".join(filter(None, [names_text, *_bounds(schema)]))


def _type(name: str, schema: Mapping[str, Any]) -> str:
    if name == "array" and "items" in schema:
        return f"list of {kind({'type': schema['items'].get('type', 'string')})}s"
    if name == "object":
        return "JSON object"
    if name == "string" and schema.get("format") == "date-time":
        return "time, ISO 8601"
    return _TYPES.get(name, name)


def _bounds(schema: Mapping[str, Any]) -> Iterator[str]:
    for key, text in (
        ("minimum", "at least"),
        ("exclusiveMinimum", "more than"),
        ("maximum", "at most"),
        ("exclusiveMaximum", "less than"),
    ):
        if key in schema:
            yield f"{text} {schema[key]}"
