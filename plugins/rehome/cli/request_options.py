"""The parameters of a plan as options of a command: each from the field that defines it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rehome.cli.failures import CommandError, ExitCode
from rehome.domain.actions import ACTION_FACTS, Action
from rehome.domain.request.parameters import ReassignmentParams
from rehome.domain.request.topic_filters import filters_in
from rehome.domain.request.validation import Read
from rehome.field_descriptions import Described, describe_fields, mark

NOT_OPTIONS = frozenset({"action", "dry_run", "plan_id"})
"""What a command says by itself: it makes a plan of its own, and changes nothing."""
ALSO = {"kafka_config_id": "--connection"}
"""Shorter names."""
PLANNED = tuple(action for action in Action if action is not Action.ROLLBACK)
_HEAD = "parameters"


def actions_text() -> str:
    """Every action, a line each."""
    return "\n".join(f"  {action.value}: {ACTION_FACTS[action].about}" for action in PLANNED)


def add_request(parser: argparse.ArgumentParser) -> None:
    """The action, and an option for each other parameter."""
    parser.add_argument("action", choices=[action.value for action in PLANNED], metavar="ACTION")
    group = parser.add_argument_group(
        _HEAD,
        "Lists are parted by commas. An object is written as JSON, or as @FILE that holds it.",
    )
    for field in describe_fields(ReassignmentParams):
        if field.name in NOT_OPTIONS:
            continue
        names = [f"--{field.name.replace('_', '-')}"]
        if field.name in ALSO:
            names.insert(0, ALSO[field.name])
        about = f"{field.description} {_accepts(field)}".replace("%", "%%")
        if _types(field.name) == {"boolean"}:
            group.add_argument(
                *names, dest=field.name, help=about, action=argparse.BooleanOptionalAction
            )
        else:
            group.add_argument(*names, dest=field.name, metavar="VALUE", help=about)


def _accepts(field: Described) -> str:
    unit = f", in {field.unit}" if field.unit else ""
    default = f"; default: {field.shown_default}" if field.shown_default else ""
    return f"({field.kind}{unit}{default})"


def request_of(chosen: argparse.Namespace) -> dict[str, Any]:
    """The parameters that are given, in the types that the DAG takes.

    :raises CommandError: an object is no JSON, or its file cannot be read.
    """
    found: dict[str, Any] = {"action": chosen.action}
    for name in ReassignmentParams.model_fields:
        if name in NOT_OPTIONS:
            continue
        value = getattr(chosen, name)
        if value is not None:
            found[name] = value if isinstance(value, bool) else _parse_value(name, value)
    return found


def _parse_value(name: str, text: str) -> Any:
    types = _types(name)
    if "string" in types:
        return _from_file(name, text) if text.startswith("@") else text
    if types & {"integer", "number"}:
        return _number(text)
    if "array" in types and not _holds_objects(name):
        return list(filters_in(text))
    return _json(name, _from_file(name, text) if text.startswith("@") else text)


def _number(text: str) -> Any:
    """A number; what is none the DAG names as it was written."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise CommandError(
            ExitCode.USAGE, f"--{name.replace('_', '-')} is no JSON: {error}."
        ) from error


def _from_file(name: str, text: str) -> str:
    try:
        return Path(text[1:]).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(
            ExitCode.USAGE, f"--{name.replace('_', '-')} cannot be read: {error}."
        ) from error


def _schema(name: str) -> Mapping[str, Any]:
    read = mark(ReassignmentParams.model_fields[name], Read)
    return {} if read is None else read.schema


def _types(name: str) -> set[str]:
    """JSON types that the parameter takes, but for null."""
    schema = _schema(name)
    parts = schema.get("anyOf", [schema])
    found: set[str] = set()
    for part in parts:
        kinds = part.get("type", "string")
        found.update([kinds] if isinstance(kinds, str) else kinds)
    return found - {"null"}


def _holds_objects(name: str) -> bool:
    items = _schema(name).get("items", {})
    return bool(items.get("type") == "object")
