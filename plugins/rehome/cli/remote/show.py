"""What is there: plans, one plan, clusters, why a plan is as it is, its report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.table import Table
from rich.text import Text

from rehome.cli.output import (
    CommandError,
    ExitCode,
    clean,
    console,
    local_moment,
    local_time,
    say,
    say_json,
)
from rehome.cli.remote.options import add_airflow, add_json, open_airflow
from rehome.cli.remote.screen import plan_lines, standing
from rehome.cli.verbs import Verb
from rehome.domain.text import whole_percent

NEWEST_SHOWN = 15


def verbs() -> tuple[Verb, ...]:
    """Those that only show."""
    return (
        Verb(("status",), _STATUS, _status_arguments, status),
        Verb(("clusters",), _CLUSTERS, _clusters_arguments, clusters),
        Verb(("explain",), _EXPLAIN, _explain_arguments, explain),
        Verb(("report",), _REPORT, _report_arguments, report),
    )


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Which plan."""
    parser.add_argument("plan", metavar="PLAN", help="its id, as `rehome status` lists it")


def path_of(plan_id: str, rest: str = "") -> str:
    """The path of a plan's page."""
    return f"/plans/{quote(plan_id, safe='')}{rest}"


_STATUS = """Show plans, or one plan: state, bytes, times, what hurts, and what to do.

Without PLAN: the newest plans, and requests that have no plan yet or were refused. The figures and
words are those of the page Reassignments."""


def _status_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN", nargs="?", help="its id; none = list the newest")
    parser.add_argument("--search", metavar="TEXT", default="", help="plans whose id, action, …")
    add_airflow(parser)
    add_json(parser)


def status(chosen: argparse.Namespace) -> int:
    """Show one plan, or the newest."""
    with open_airflow(chosen) as client:
        if chosen.plan:
            plan = client.page(path_of(chosen.plan))
            say_json(plan) if chosen.json else say(*plan_lines(plan))
            return ExitCode.DONE
        page = client.page("/", q=chosen.search)
        requests = [] if chosen.search else client.page("/requests")
    if chosen.json:
        say_json({**page, "requests": requests})
        return ExitCode.DONE
    _list_plans(page)
    for each in (line for line in requests if line["plan_id"] is None):
        cause = each["cause"]["text"].splitlines()[0] if each["cause"] else each["run_id"]
        say(f"request of {each['by'] or 'not known'}, {each['state']}: {cause}")
    return ExitCode.DONE


def _list_plans(page: dict[str, Any]) -> None:
    plans = page["plans"][:NEWEST_SHOWN]
    if not plans:
        say("No plans yet: rehome plan ACTION makes one, and changes nothing.")
        return
    table = Table("Plan", "State", "Copied", "Ends, or ended", box=None)
    for plan in plans:
        about = f"{plan['title']} on {plan['connection'] or plan['cluster_id']}"
        copied = f"{whole_percent(plan['bytes']['fraction'])} %" if plan["started_at"] else "–"
        row = (f"{plan['plan_id']}\n  {about}", standing(plan), copied, _end(plan))
        table.add_row(*(Text(clean(text), overflow="fold") for text in row))
    console().print(table)
    if page["total"] > len(plans):
        say(f"{page['total'] - len(plans)} older plans are not shown: --search TEXT, or --json.")


def _end(plan: dict[str, Any]) -> str:
    ends = plan["ends"]
    if plan["state"] == "running":
        return f"{local_time(ends['least'])} to {local_time(ends['most'])}" if ends["least"] else ""
    return local_moment(plan["ended_at"])


_CLUSTERS = """List clusters: brokers, what is not well, the plan that runs, the next window.

As their newest snapshots show them, and the clusters file names them."""


def _clusters_arguments(parser: argparse.ArgumentParser) -> None:
    add_airflow(parser)
    add_json(parser)


def clusters(chosen: argparse.Namespace) -> int:
    """List the fleet."""
    with open_airflow(chosen) as client:
        fleet = client.page("/clusters")
    if chosen.json:
        say_json(fleet)
        return ExitCode.DONE
    for text in filter(None, (fleet["problem"], *fleet["notes"])):
        say(f"! {text}")
    if not fleet["clusters"]:
        say("No snapshots yet: every plan takes one, and so does the DAG collect_snapshots.")
        return ExitCode.DONE
    table = Table("Cluster", "Brokers up", "Partitions", "Not well", "Plan", box=None)
    for line in fleet["clusters"]:
        names = dict.fromkeys(filter(None, (line["title"], line["connection"])))
        row = ("\n".join(names), *_cluster_cells(line))
        table.add_row(*(Text(clean(text), overflow="fold") for text in row))
    console().print(table)
    return ExitCode.DONE


def _cluster_cells(line: dict[str, Any]) -> tuple[str, str, str, str]:
    plan = f"{line['plan_state']} {line['plan_id'] or ''}" if line["plan_state"] else "none"
    if line["brokers"] is None:
        return "–", "–", line["not_known"], plan
    up = f"{line['brokers'] - len(line['brokers_away'])} of {line['brokers']}"
    return up, f"{line['partitions']:,}", line["not_well"] or "nothing seen", plan


_EXPLAIN = """Explain a plan: why a partition or a broker gets what it gets, and nothing else.

By the plan's files and the snapshot that it was made on; nothing is planned again."""


def _explain_arguments(parser: argparse.ArgumentParser) -> None:
    add_plan(parser)
    again = "may be repeated"
    add = parser.add_argument
    add("--partition", metavar="TOPIC-NUMBER", help=again, action="append", default=[])
    add("--broker", metavar="ID", help=again, action="append", default=[], type=int)
    add_airflow(parser)
    add_json(parser)


def explain(chosen: argparse.Namespace) -> int:
    """Print the explanations that are asked for."""
    if not chosen.partition and not chosen.broker:
        raise CommandError(ExitCode.USAGE, "What is to be explained? Give --partition or --broker.")
    with open_airflow(chosen) as client:
        query = {"partition": chosen.partition, "broker": chosen.broker}
        explanations = client.page(path_of(chosen.plan, "/explanations"), **query)
    say_json(explanations) if chosen.json else say("\n\n".join(explanations["texts"]))
    return ExitCode.DONE


_REPORT = """Fetch the report of a plan: one HTML file that needs nothing else."""


def _report_arguments(parser: argparse.ArgumentParser) -> None:
    add_plan(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it there, and not here")
    add_airflow(parser)


def report(chosen: argparse.Namespace) -> int:
    """Print the report, or write it to a file."""
    with open_airflow(chosen) as client:
        text = client.file(f"/files/{quote(chosen.plan, safe='')}/report.html")
    if chosen.out is None:
        sys.stdout.write(text)
        return ExitCode.DONE
    try:
        chosen.out.write_text(text)
    except OSError as error:
        raise CommandError(ExitCode.FAILED, f"The report cannot be written: {error}.") from error
    say(f"The report of plan {chosen.plan} is in {chosen.out}.")
    return ExitCode.DONE
