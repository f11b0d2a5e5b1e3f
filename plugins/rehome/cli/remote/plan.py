"""Have a plan made, by a dry run in Airflow; or on this machine, without one."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehome.cli.local_plan import add_local, plan_here
from rehome.cli.output import CommandError, ExitCode, clean, say, say_json
from rehome.cli.remote.ask import PLANS_DAG, require_running, run_failed
from rehome.cli.remote.options import add_airflow, add_json, open_airflow
from rehome.cli.remote.screen import plan_lines
from rehome.cli.remote.show import path_of
from rehome.cli.remote.watch import EACH_LOOK_S, run_path
from rehome.cli.verbs import Verb
from rehome.domain.actions import ACTION_FACTS, Action
from rehome.domain.request.parameters import ReassignmentParams
from rehome.domain.request.topic_filters import filters_in
from rehome.domain.request.validation import Read
from rehome.domain.text import json_fault, json_in, refuse_large
from rehome.field_descriptions import Described, describe_fields, mark
from rehome.reporting.number_text import brokers_list, bytes_text

if TYPE_CHECKING:
    from rehome.cli.remote.airflow_client import AirflowClient


LARGEST_SHOWN = 10
FINDINGS_SHOWN = 10
_PLAN = """Make a plan: a dry run, which changes nothing on the cluster.

Airflow's DAG reassign_partitions reads the cluster, plans, has the gates judge the plan, and tries
it out. What it would move is shown, with what the checks have found; `rehome run` then carries out
this very plan. With --local it is planned on this machine, without Airflow."""
_STEPS = {"snapshot": "reading the cluster", "plan": "planning"}

NOT_OPTIONS = frozenset({"action", "dry_run", "plan_id"})
"""What a command says by itself: it makes a plan of its own, and changes nothing."""
_ALSO = {"kafka_config_id": "--connection"}
"""Shorter names."""
PLANNED = tuple(action for action in Action if action is not Action.ROLLBACK)
_HEAD = "parameters"


def verbs() -> tuple[Verb, ...]:
    """The one that plans."""
    return (Verb(("plan",), _PLAN, _plan_arguments, _plan),)


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{_PLAN}\n\nactions:\n{_actions_text()}"
    _add_request(parser)
    parser.add_argument("--no-wait", action="store_true", help="print the run's id, and end")
    add_local(parser)
    add_airflow(parser)
    add_json(parser)


def _plan(chosen: argparse.Namespace) -> int:
    if chosen.local:
        return plan_here(chosen, request_of(chosen))
    conf = {**request_of(chosen), "dry_run": True}
    with open_airflow(chosen) as client:
        require_running(client, PLANS_DAG)
        body = {"logical_date": None, "conf": conf}
        run_id = str(client.api("POST", f"/dags/{PLANS_DAG}/dagRuns", body)["dag_run_id"])
        if chosen.no_wait:
            run_key = {"dag_id": PLANS_DAG, "run_id": run_id}
            say_json(run_key) if chosen.json else say(run_id)
            return ExitCode.DONE
        run = _await_dry_run(client, run_id)
        plan = client.page(path_of(run["plan_id"]))
        moves = client.page(path_of(run["plan_id"], "/tabs/partitions"), sort="size")
    if chosen.json:
        say_json({**plan, "run": run, "largest_moves": moves["moves"]})
    else:
        _show(plan, moves)
    if run["failed"]:
        raise run_failed(run, PLANS_DAG, run_id)
    return ExitCode.DONE


def _await_dry_run(client: AirflowClient, run_id: str) -> dict[str, Any]:
    """Wait for the end of a dry run; what is known of it then.

    :raises CommandError: it has ended without a plan.
    """
    said = ""
    while not (run := client.page(run_path(PLANS_DAG, run_id)))["ended"]:
        at = next((text for step, text in _STEPS.items() if run["steps"][step] != "success"), "")
        now = at or "trying the plan out"
        if now != said:
            print(f"{now} …", file=sys.stderr)
            said = now
        time.sleep(EACH_LOOK_S)
    if run["plan_id"] is not None:
        return dict(run)
    failure = run["without_plan"]
    if not failure["said"]:
        raise run_failed(run, PLANS_DAG, run_id)
    parts = (failure["said"], *failure["details"], failure["left"] or failure["changed"])
    raise CommandError(ExitCode.FAILED, " ".join(filter(None, parts)), failure["next_step"] or "")


def _show(plan: dict[str, Any], moves: dict[str, Any]) -> None:
    say(*plan_lines(plan))
    for line in moves["moves"][:LARGEST_SHOWN]:
        size = bytes_text(line["bytes_to_copy"]) if line["bytes_to_copy"] else "order only"
        what = f"{line['topic']}-{line['partition']}"
        path = f"{brokers_list(line['current'])} → {brokers_list(line['target'])}"
        say(f"  {clean(what)}  {path}  {size}")
    if moves["total"] > LARGEST_SHOWN:
        say(f"  … and {moves['total'] - LARGEST_SHOWN} more")
    for text in plan["not_reached"]:
        say(f"not reached: {text}")
    for finding in plan["findings"][:FINDINGS_SHOWN]:
        say(finding["text"])
    if "run" in plan["controls"]:
        say(f"Carry it out: rehome run {plan['plan_id']}")


def _actions_text() -> str:
    """Every action, a line each."""
    return "\n".join(f"  {action.value}: {ACTION_FACTS[action].about}" for action in PLANNED)


def _add_request(parser: argparse.ArgumentParser) -> None:
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
        if field.name in _ALSO:
            names.insert(0, _ALSO[field.name])
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
    params: dict[str, Any] = {"action": chosen.action}
    for name in ReassignmentParams.model_fields:
        if name in NOT_OPTIONS:
            continue
        value = getattr(chosen, name)
        if value is not None:
            params[name] = value if isinstance(value, bool) else _parse_value(name, value)
    return params


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
            number = kind(text)
        except ValueError:
            continue
        return number if kind is int or math.isfinite(number) else text  # JSON has no other
    return text


def _json(name: str, text: str) -> Any:
    try:
        content = json_in(text)
        json.dumps(content, allow_nan=False)  # Python reads NaN, too, which cannot be sent
    except ValueError as error:
        raise CommandError(
            ExitCode.USAGE, f"--{name.replace('_', '-')} {json_fault(error)}."
        ) from error
    return content


def _from_file(name: str, text: str) -> str:
    path = Path(text[1:])
    try:
        refuse_large(path.stat().st_size)
        return path.read_text()
    except (OSError, ValueError) as error:
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
    types: set[str] = set()
    for part in parts:
        kinds = part.get("type", "string")
        types.update([kinds] if isinstance(kinds, str) else kinds)
    return types - {"null"}


def _holds_objects(name: str) -> bool:
    items = _schema(name).get("items", {})
    return bool(items.get("type") == "object")
