"""What a person asks of a plan: what it leads to is shown first, as on the plan's page."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rehome.cli.output import CommandError, ExitCode, say, say_json
from rehome.cli.remote.options import add_airflow, add_json, add_yes, confirm, open_airflow
from rehome.cli.remote.screen import COMMANDS
from rehome.cli.remote.show import add_plan, path_of
from rehome.cli.remote.watch import EACH_LOOK_S, follow
from rehome.cli.verbs import Verb
from rehome.domain.run.states import Control

if TYPE_CHECKING:
    from rehome.cli.remote.airflow_client import AirflowClient

ASKING_DAG = "control_reassignment"
PLANS_DAG = "reassign_partitions"
ASKED_FOR: Mapping[Control, str] = {
    Control.RUN: "Carry out the very plan that a dry run has made, by its hash.",
    Control.NEXT_WINDOW: "Have the next maintenance window carry that plan out.",
    Control.PAUSE: "Start nothing more of a plan; what is in flight goes on.",
    Control.RESUME: "Resume a paused plan.",
    Control.CHANGE_THROTTLE: "Change the throttle of a plan that runs, from the next poll on.",
    Control.CHANGE_MOVES: "Change how many moves a broker has at once, from the next poll on.",
    Control.CANCEL: "Cancel a plan: what is in flight is taken back, and so are its throttles.",
    Control.ROLL_BACK: "Take back what a plan that has ended moved, by a plan of its own.",
}
_STARTS = (Control.RUN, Control.RESUME, Control.ROLL_BACK)
"""Requests by which a run of :data:`PLANS_DAG` starts."""
_HOW = """

It is the button of the plan's page: in your name, with the same rights, the same policy and the
same audit. What it leads to is shown first, and done after a yes. It waits until the request was
passed on to the plan."""
PASSED_ON = "The request was passed on."
_THEN: Mapping[Control, str] = {
    Control.RUN: "A new run carries the plan out: rehome watch {plan}",
    Control.NEXT_WINDOW: "The next window carries it out.",
    Control.PAUSE: "The plan follows at its next poll.",
    Control.RESUME: "The plan goes on: rehome watch {plan}",
    Control.CHANGE_THROTTLE: "The plan follows at its next poll.",
    Control.CHANGE_MOVES: "The plan follows at its next poll.",
    Control.CANCEL: "A plan that runs follows at its next poll.",
    Control.ROLL_BACK: "A new run makes the plan that takes it back: rehome status lists it.",
}


def verbs() -> tuple[Verb, ...]:
    """One for each request that can be made of a plan."""
    return tuple(
        Verb(
            (COMMANDS[control.value],),
            ASKED_FOR[control] + _HOW,
            partial(_arguments, control),
            partial(_ask, control),
        )
        for control in Control
    )


def _arguments(control: Control, parser: argparse.ArgumentParser) -> None:
    add_plan(parser)
    if control is Control.CHANGE_THROTTLE:
        parser.add_argument("throttle", metavar="RATE", nargs="?", default="", help="as 50MB/s")
        parser.add_argument(
            "--by-broker",
            metavar="JSON",
            default="",
            help='throttles of single brokers, such as {"1": {"leader": 5000000}, "4": 1000000}; '
            "{} takes them away",
        )
    elif control is Control.CHANGE_MOVES:
        parser.add_argument("moves", metavar="NUMBER", help="for each broker and direction")
    elif control in _STARTS:
        parser.add_argument(
            "--throttle", metavar="RATE", default="", help="another one than the plan's"
        )
    parser.add_argument(
        "--connection", metavar="ID", default="", help="Airflow's, where the plan names none"
    )
    parser.add_argument("--no-wait", action="store_true", help="do not wait until it is passed on")
    if control is not Control.ROLL_BACK:
        parser.add_argument("--watch", action="store_true", help="then follow the plan")
    add_yes(parser)
    add_airflow(parser)
    add_json(parser)


def _ask(control: Control, chosen: argparse.Namespace) -> int:
    with open_airflow(chosen) as client:
        where = path_of(chosen.plan, f"/controls/{control.value}")
        offered = client.page(where)
        if offered["refusal"]:
            raise CommandError(ExitCode.REFUSED, offered["refusal"], "Nothing was done.")
        needed = (ASKING_DAG, PLANS_DAG) if control in _STARTS else (ASKING_DAG,)
        for dag in needed:
            require_running(client, dag)
        if not chosen.json:
            say(*offered["effects"])
        if not confirm(chosen, f"{offered['button']} {chosen.plan}?"):
            say("Nothing was done.")
            return ExitCode.REFUSED
        request_run = client.press(where, _form(chosen))
        if not chosen.no_wait:
            _pass_on(client, chosen.plan, request_run)
        if chosen.json and not getattr(chosen, "watch", False):
            say_json(request_run)
        elif not chosen.json:
            said = "The request is on its way." if chosen.no_wait else PASSED_ON
            say(f"{said} {_THEN[control].format(plan=chosen.plan)}")
        if getattr(chosen, "watch", False):
            return follow(client, chosen.plan, as_json=chosen.json)
    return ExitCode.DONE


def _form(chosen: argparse.Namespace) -> dict[str, str]:
    return {
        "throttle": getattr(chosen, "throttle", ""),
        "throttle_by_broker": getattr(chosen, "by_broker", ""),
        "max_moves_per_broker": getattr(chosen, "moves", ""),
        "connection": chosen.connection,
    }


def _pass_on(client: AirflowClient, plan_id: str, request_run: Mapping[str, Any]) -> None:
    """Wait until the run of the request has ended.

    :raises CommandError: it was refused, or did not work.
    """
    where = path_of(plan_id, f"/requests/{quote(request_run['run_id'], safe='')}")
    while not (run := client.page(where))["ended"]:
        time.sleep(EACH_LOOK_S)
    if run["failed"]:
        raise run_failed(run, ASKING_DAG, str(request_run["run_id"]))


def run_failed(run: Mapping[str, Any], dag_id: str, run_id: str) -> CommandError:
    """Why a run has ended without doing what it was for."""
    cause = run["cause"]
    if cause is None:
        log = f"See the logs of run {run_id} of {dag_id} in Airflow."
        return CommandError(
            ExitCode.FAILED,
            "The run of this request has failed: it was refused, or a fault ended it.",
            log,
        )
    what = " ".join(filter(None, (cause["text"], cause["left"])))
    return CommandError(ExitCode.FAILED, what, cause["remedy"])


def require_running(client: AirflowClient, dag_id: str) -> None:
    """See that a run of a DAG would start.

    :raises CommandError: the DAG is not there, or is paused: its run would wait for ever.
    """
    try:
        dag = client.api("GET", f"/dags/{dag_id}")
    except CommandError as error:
        if error.code is not ExitCode.NOT_THERE:
            raise
        raise CommandError(
            ExitCode.NOT_THERE,
            f"{client.url} has no DAG {dag_id}: {error.what}",
            "Write Rehome's DAG files into its folder of DAGs: rehome dags install DIR",
        ) from None
    if dag.get("is_paused"):
        raise CommandError(
            ExitCode.REFUSED,
            f"The DAG {dag_id} is paused in Airflow: a run of it would not start. "
            "Nothing was done.",
            "Unpause it in Airflow's UI, or by `airflow dags unpause`.",
        )
