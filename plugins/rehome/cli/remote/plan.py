"""Have a plan made, by a dry run in Airflow; or on this machine, without one."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from rehome.cli.failures import CommandError, ExitCode
from rehome.cli.local_plan import add_local, plan_here
from rehome.cli.output import clean, say, say_json
from rehome.cli.remote.ask import PLANS_DAG, require_running, run_failed
from rehome.cli.remote.options import add_airflow, add_json, open_airflow
from rehome.cli.remote.screen import plan_lines
from rehome.cli.remote.show import path_of
from rehome.cli.remote.watch import EACH_LOOK_S, run_path
from rehome.cli.request_options import actions_text, add_request, request_of
from rehome.cli.verbs import Verb
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


def verbs() -> tuple[Verb, ...]:
    """The one that plans."""
    return (Verb(("plan",), _PLAN, _plan_arguments, _plan),)


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = f"{_PLAN}\n\nactions:\n{actions_text()}"
    add_request(parser)
    parser.add_argument("--no-wait", action="store_true", help="print the run's id, and end")
    add_local(parser)
    add_airflow(parser)
    add_json(parser)


def _plan(chosen: argparse.Namespace) -> int:
    if chosen.local:
        return plan_here(chosen, request_of(chosen))
    asked = {**request_of(chosen), "dry_run": True}
    with open_airflow(chosen) as client:
        require_running(client, PLANS_DAG)
        body = {"logical_date": None, "conf": asked}
        run_id = str(client.api("POST", f"/dags/{PLANS_DAG}/dagRuns", body)["dag_run_id"])
        if chosen.no_wait:
            found = {"dag_id": PLANS_DAG, "run_id": run_id}
            say_json(found) if chosen.json else say(run_id)
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
    found = run["without_plan"]
    if not found["said"]:
        raise run_failed(run, PLANS_DAG, run_id)
    parts = (found["said"], *found["details"], found["left"] or found["changed"])
    raise CommandError(ExitCode.FAILED, " ".join(filter(None, parts)), found["next_step"] or "")


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
