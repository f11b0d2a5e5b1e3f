"""Follow a plan in the terminal until it has ended."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rich.console import Group
from rich.live import Live
from rich.text import Text

from rehome.cli.output import CommandError, ExitCode, clean, console, say, say_json_line
from rehome.cli.remote.options import add_airflow, add_json, open_airflow
from rehome.cli.remote.screen import picture, plan_lines, standing
from rehome.cli.remote.show import add_plan, path_of
from rehome.cli.verbs import Verb
from rehome.domain.text import whole_percent

if TYPE_CHECKING:
    from rehome.cli.remote.airflow_client import AirflowClient

EACH_LOOK_S = 1.0
GIVES_UP_AFTER = 20
"""Looks in a row without an answer."""
FLYING = {"state": "admitted", "sort": "behind"}
"""The moves that are shown below a plan."""

_WATCH = """Follow a plan: bytes, end, brokers, moves in flight, what hurts, and what to do.

It ends with the plan: 0 if all is where it should be, 1 if not; and where nothing runs it. Ctrl-C
ends the view only; the plan goes on. Where the output is no terminal, a line is printed for each
change. With --json, each is a JSON object on a line of its own."""


def verbs() -> tuple[Verb, ...]:
    """The one that follows."""
    return (Verb(("watch",), _WATCH, _watch_arguments, _watch),)


def _watch_arguments(parser: argparse.ArgumentParser) -> None:
    add_plan(parser)
    add_airflow(parser)
    add_json(parser)


def _watch(chosen: argparse.Namespace) -> int:
    with open_airflow(chosen) as client:
        return follow(client, chosen.plan, as_json=chosen.json)


@dataclass(frozen=True)
class Look:
    """What one look at a plan has found.

    :param moves: in flight, as the table of partitions has them.
    :param over: nothing more happens to it by itself; ``well``: all is as it should be then.
    :param away: why the server did not answer, so that this is an earlier look's; "" = it did.
    """

    plan: dict[str, Any]
    moves: list[dict[str, Any]]
    over: bool
    well: bool
    away: str = ""


def follow(client: AirflowClient, plan_id: str, *, as_json: bool) -> ExitCode:
    """Show a plan until it is over; returns how it has ended."""
    views = looks(client, plan_id)
    if as_json:
        last = _as_json(views)
    elif (screen := console()).is_terminal:
        last = _draw_until_end(screen, views)
    else:
        last = _as_lines(views)
    return ExitCode.DONE if last.well else ExitCode.FAILED


def looks(client: AirflowClient, plan_id: str) -> Iterator[Look]:
    """A look each second, until the plan is over.

    :raises CommandError: the plan is not there; or the server does not answer any more.
    """
    failed, last = 0, None
    while last is None or not last.over:
        try:
            last, failed = look(client, plan_id), 0
            yield last
        except CommandError as error:
            failed += 1
            if error.code is not ExitCode.AWAY or last is None or failed > GIVES_UP_AFTER:
                raise
            yield Look(last.plan, last.moves, False, False, error.what)
        if not last.over:
            time.sleep(EACH_LOOK_S)


def look(client: AirflowClient, plan_id: str) -> Look:
    """One look."""
    plan = client.page(path_of(plan_id))
    if plan["state"] == "running":
        flying = client.page(path_of(plan_id, "/tabs/partitions"), **FLYING)["moves"]
        return Look(plan, flying, over=False, well=False)
    if plan["state"] == "paused" or plan["dag_id"] is None:
        return Look(plan, [], over=plan["ended"], well=plan["state"] == "done")
    run = client.page(run_path(plan["dag_id"], plan["run_id"]))
    over = run["ended"] and (plan["ended"] or not _is_starting(client, plan_id))
    well = not run["failed"] and (plan["state"] == "done" or not plan["ended"])
    return Look(plan, [], over, well)


def run_path(dag_id: str, run_id: str) -> str:
    """The path by which the page finds the plan of a run."""
    return f"/runs/{quote(dag_id, safe='')}/{quote(run_id, safe='')}"


def _is_starting(client: AirflowClient, plan_id: str) -> bool:
    """Whether another run is about to take the plan up."""
    waiting = client.page("/requests")
    return any(each["plan_id"] == plan_id and each["cause"] is None for each in waiting)


def _as_json(views: Iterator[Look]) -> Look:
    said = None
    for one in views:
        data = {**one.plan, "moves_in_flight": one.moves, "away": one.away or None}
        if data != said:
            say_json_line(data)
            said = data
    return one


def _as_lines(views: Iterator[Look]) -> Look:
    said = ""
    for one in views:
        plan = one.plan
        line = f"{standing(plan)}: {whole_percent(plan['bytes']['fraction'])} %, "
        line += str(plan["bytes"]["text"])
        hurts = "".join(f" ! {each['text']}" for each in plan["attention"])
        line += f"{hurts} ! {one.away}" if one.away else hurts
        if line != said:
            say(line)
            said = line
    say(*plan_lines(one.plan))
    return one


def _draw_until_end(screen: Any, views: Iterator[Look]) -> Look:
    with Live(console=screen, auto_refresh=False) as live:
        for one in views:
            shown = picture(one.plan, one.moves)
            if one.away:
                shown = Group(shown, Text(f"! {clean(one.away)} It is asked again.", "red"))
            live.update(shown, refresh=True)
    return one
