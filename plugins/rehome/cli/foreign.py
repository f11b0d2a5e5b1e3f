"""What any client has in flight on a cluster: listed, described and followed by a connection of
this machine's Airflow; cancelled and adopted by the DAG that asks a person.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rehome.cli.output import CommandError, ExitCode, say, say_json, say_json_line
from rehome.cli.remote.ask import require_running
from rehome.cli.remote.options import add_airflow, add_json, add_yes, confirm, open_airflow
from rehome.cli.remote.watch import EACH_LOOK_S
from rehome.cli.verbs import Verb
from rehome.cluster.interface.errors import ClusterError, MissingRightError
from rehome.domain.clock import utc_now
from rehome.domain.request.param_types import rate
from rehome.domain.run.foreign.foreign_request import ForeignAction, parse_foreign
from rehome.errors import InvalidRequestError, RehomeError
from rehome.execution.observation.foreign_reassignments import fates, follow, in_flight
from rehome.execution.observation.move_status import Fate
from rehome.execution.observation.observe import observe

if TYPE_CHECKING:
    from rehome.cli.remote.airflow_client import AirflowClient
    from rehome.cluster.gateway import ClusterGateway
    from rehome.execution.foreign.in_flight import Chosen, Flight
    from rehome.execution.foreign.read_flights import DescribedFlights

FOREIGN_DAG = "foreign_reassignments"
FOREIGN_QUESTION = "approve"
_LONGEST_PAUSE_S = 86_400
_READS = (
    "\n\nIt reads the cluster by a connection of this machine's Airflow, and changes nothing: run "
    "it where that Airflow and its ledger are."
)
_ASKS = (
    "\n\nIt starts the DAG foreign_reassignments, which names each of them and asks a person: "
    "nothing is done before that person has approved just these. Reassignments of Rehome's own "
    "plans are left out: rehome cancel ends those."
)


def verbs() -> tuple[Verb, ...]:
    """Those that read, and those that have something done."""
    return (
        Verb(
            ("foreign", "list"),
            "List what is in flight, whichever client has started it." + _READS,
            _reading_arguments,
            partial(_reading, _list),
        ),
        Verb(
            ("foreign", "describe"),
            "Describe it: whose it is, since when, how far, which throttles, what can never end."
            + _READS,
            _reading_arguments,
            partial(_reading, _describe),
        ),
        Verb(
            ("foreign", "follow"),
            "Follow it until all of it has ended, or show it once.\n\nIt ends with 1 where "
            "something of it was cancelled or replaced." + _READS,
            _following_arguments,
            partial(_reading, _follow),
        ),
        Verb(
            ("foreign", "cancel"),
            "Cancel what other clients have started, once a person has approved it." + _ASKS,
            _cancel_arguments,
            partial(_ask, ForeignAction.CANCEL),
        ),
        Verb(
            ("foreign", "adopt"),
            "Make it a plan of Rehome, under a throttle, once a person has approved it." + _ASKS,
            _adopt_arguments,
            partial(_ask, ForeignAction.ADOPT),
        ),
    )


def _chosen_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--connection", metavar="ID", default="kafka_default", help="Airflow's, to the cluster"
    )
    parser.add_argument(
        "--topics", metavar="NAME", nargs="+", default=[], help="as orders, logs-*, orders:3-9"
    )
    parser.add_argument("--brokers", metavar="ID", nargs="+", type=int, default=[])


def _reading_arguments(parser: argparse.ArgumentParser) -> None:
    _chosen_arguments(parser)
    add_json(parser)


def _following_arguments(parser: argparse.ArgumentParser) -> None:
    _reading_arguments(parser)
    parser.add_argument("--once", action="store_true", help="show it once, and end")
    parser.add_argument(
        "--every",
        metavar="SECONDS",
        type=_pause_s,
        default=5.0,
        help="between two looks (default: 5)",
    )


def _pause_s(text: str) -> float:
    """A pause between two looks.

    :raises argparse.ArgumentTypeError: it is none.
    """
    try:
        pause_s = float(text)
    except ValueError:
        pause_s = 0.0
    if not 0 < pause_s <= _LONGEST_PAUSE_S:
        raise argparse.ArgumentTypeError(
            f"{text} is no pause: write seconds, more than 0 and up to {_LONGEST_PAUSE_S:,}"
        )
    return pause_s


def _asking_arguments(parser: argparse.ArgumentParser) -> None:
    _chosen_arguments(parser)
    parser.add_argument("--all", action="store_true", help="all that is in flight")
    parser.add_argument("--no-wait", action="store_true", help="print the run's id, and end")
    add_yes(parser)
    add_airflow(parser)
    add_json(parser)


def _cancel_arguments(parser: argparse.ArgumentParser) -> None:
    _asking_arguments(parser)
    parser.add_argument(
        "--clean-throttles",
        action="store_true",
        help="take away throttles of others, too, that nothing in flight uses any more",
    )


def _adopt_arguments(parser: argparse.ArgumentParser) -> None:
    _asking_arguments(parser)
    parser.add_argument("--throttle", metavar="RATE", default="", help="as 50MB/s")


_Read = Callable[["ClusterGateway", "Chosen", argparse.Namespace], int]


def _reading(read: _Read, chosen: argparse.Namespace) -> int:
    from rehome.execution.foreign.in_flight import Chosen

    which = Chosen(tuple(chosen.topics), frozenset(chosen.brokers))
    try:
        which.among({})
    except ValueError as error:
        raise CommandError(ExitCode.USAGE, f"--topics: {error}.") from error
    with _cluster(chosen) as cluster:
        return read(cluster, which, chosen)


@contextmanager
def _cluster(chosen: argparse.Namespace) -> Iterator[ClusterGateway]:
    """The cluster that the connection leads to; errors become those of commands."""
    from rehome import installation
    from rehome.hooks.cluster import KafkaClusterHook

    try:
        hook = KafkaClusterHook(chosen.connection)
        with hook.gateway(installation.settings(chosen.connection)) as cluster:
            yield cluster
    except InvalidRequestError as error:
        raise CommandError(ExitCode.NOT_THERE, str(error)) from error
    except MissingRightError as error:
        raise CommandError(ExitCode.NOT_ALLOWED, str(error)) from error
    except ClusterError as error:
        raise CommandError(ExitCode.AWAY, str(error)) from error
    except RehomeError as error:  # the ledger's
        raise CommandError(ExitCode.FAILED, str(error)) from error


def _list(cluster: ClusterGateway, which: Chosen, chosen: argparse.Namespace) -> int:
    from rehome.execution.foreign.read_flights import list_reassignments

    reassignments = sorted(list_reassignments(cluster, which).items())
    if chosen.json:
        rows = [
            {
                **_partition_json(partition.topic, partition.partition),
                "replicas": list(entry.replicas),
                "adding": list(entry.adding),
                "removing": list(entry.removing),
                "target": list(entry.target),
            }
            for partition, entry in reassignments
        ]
        say_json({"reassignments": rows})
        return ExitCode.DONE
    for partition, entry in reassignments:
        change = f"adds {list(entry.adding)}, removes {list(entry.removing)}"
        say(f"{partition}  {change}, leads to {list(entry.target)}")
    say(*([] if reassignments else ["Nothing is in flight of what is asked about."]))
    return ExitCode.DONE


def _describe(cluster: ClusterGateway, which: Chosen, chosen: argparse.Namespace) -> int:
    from rehome.execution.foreign.flight_words import described_lines

    flights = _describe_flights(cluster, which)
    if chosen.json:
        say_json(_as_data(flights))
    else:
        say(*described_lines(flights))
    return ExitCode.DONE


def _describe_flights(cluster: ClusterGateway, which: Chosen) -> DescribedFlights:
    from rehome import installation
    from rehome.execution.foreign.read_flights import describe_reassignments

    with installation.open_ledger() as ledger:
        return describe_reassignments(cluster, ledger, utc_now(), which)


def _follow(cluster: ClusterGateway, which: Chosen, chosen: argparse.Namespace) -> int:
    """Show KIP-179's table at each look; at the end, what each has ended as."""
    from rehome.execution.foreign.in_flight import Chosen
    from rehome.execution.progress.progress import status_table

    goes_on = (Fate.IN_FLIGHT, Fate.UNREADABLE, Fate.MISPLACED)
    flights = _describe_flights(cluster, which)
    only = frozenset(each.partition for each in flights.reassignments)
    watched = in_flight({each.partition: each.entry for each in flights.reassignments}, utc_now())
    while True:
        if chosen.json:
            say_json_line(_as_data(flights))
        elif flights.statuses:
            say(status_table(flights.statuses))
        observation = observe(cluster, [each.move for each in watched], utc_now())
        watched = follow(watched, observation)
        ended = {
            p: what for p, what in fates(watched, observation).items() if what[0] not in goes_on
        }
        if chosen.once or len(ended) == len(watched):
            break
        time.sleep(chosen.every)
        flights = _describe_flights(cluster, Chosen(partitions=only))
    if chosen.once and not chosen.json:
        say(*([] if flights.statuses else ["Nothing is in flight of what is asked about."]))
    if chosen.once:
        return ExitCode.DONE
    bad = {p: why for p, (what, why) in ended.items() if what is not Fate.DONE}
    if not chosen.json:
        say(f"{len(ended) - len(bad)} of {len(ended)} are complete.")
        say(*(f"{partition}: {why or 'it is not where it led'}" for partition, why in bad.items()))
    return ExitCode.FAILED if bad else ExitCode.DONE


def _as_data(flights: DescribedFlights) -> dict[str, Any]:
    from rehome.execution.progress.progress import status_text

    return {
        "cluster_id": flights.cluster_id,
        "taken_at": flights.taken_at.isoformat(),
        "reassignments": list(map(_flight, flights.reassignments)),
        "others": flights.others,
        "replicas": [
            {
                **_partition_json(each.replica.topic, each.replica.partition),
                "broker": each.replica.broker,
                "status": status_text(each),
            }
            for each in flights.statuses
        ],
    }


def _flight(flight: Flight) -> dict[str, Any]:
    from rehome.execution.foreign.flight_words import never_ends_text

    return {
        **_partition_json(flight.partition.topic, flight.partition.partition),
        "adding": list(flight.entry.adding),
        "removing": list(flight.entry.removing),
        "target": list(flight.entry.target),
        "identity": flight.identity,
        "plan_id": flight.plan_id,
        "since": None if flight.since is None else flight.since.isoformat(),
        "leader": flight.leader,
        "first_leader": flight.first_leader,
        "bytes_in_place": flight.bytes_in_place,
        "bytes_left": flight.bytes_left,
        "rate_bytes_per_s": flight.rate_bytes_per_s,
        "eta_s": flight.eta_s,
        "never_ends": never_ends_text(flight) or None,
    }


def _partition_json(topic: str, partition: int) -> dict[str, Any]:
    return {"topic": topic, "partition": partition}


def _ask(action: ForeignAction, chosen: argparse.Namespace) -> int:
    """Start the DAG, and say what is to be approved, and where."""
    conf = _conf(action, chosen)
    of = "all that is in flight" if chosen.all else "what is named"
    with open_airflow(chosen) as client:
        require_running(client, FOREIGN_DAG)
        if not confirm(chosen, f"Ask a person to {action} {of} through {chosen.connection}?"):
            say("Nothing was done.")
            return ExitCode.REFUSED
        body = {"logical_date": None, "conf": conf}
        run_id = str(client.api("POST", f"/dags/{FOREIGN_DAG}/dagRuns", body)["dag_run_id"])
        run_key = {"dag_id": FOREIGN_DAG, "run_id": run_id}
        if chosen.no_wait:
            say_json(run_key) if chosen.json else say(run_id)
            return ExitCode.DONE
        question = _question(client, run_id)
        run = f"{client.url}/dags/{FOREIGN_DAG}/runs/{quote(run_id, safe='')}"
        where = f"{run}/tasks/{FOREIGN_QUESTION}"
        if chosen.json:
            say_json({**run_key, "question": question, "answer_at": where})
        elif question is None:
            say("Nothing of other clients is in flight, of what is asked about: nothing was done.")
        else:
            say(question["body"] or "", f"It takes: {', '.join(question['options'])}")
            say(f"Nothing is done before a person has answered it, here: {where}")
    return ExitCode.DONE


def _conf(action: ForeignAction, chosen: argparse.Namespace) -> dict[str, Any]:
    """The parameters of the run.

    :raises CommandError: they do not go together.
    """
    conf: dict[str, Any] = {"kafka_config_id": chosen.connection, "action": action.value}
    conf |= {"topics": chosen.topics} if chosen.topics else {}
    conf |= {"brokers": chosen.brokers} if chosen.brokers else {}
    conf |= {"all_in_flight": True} if chosen.all else {}
    conf |= {"clean_throttles": True} if getattr(chosen, "clean_throttles", False) else {}
    try:
        if throttle := getattr(chosen, "throttle", ""):
            conf["throttle"] = rate(throttle)
        parse_foreign(conf)
    except InvalidRequestError as error:
        raise CommandError(ExitCode.USAGE, " ".join(error.problems)) from error
    except ValueError as error:
        raise CommandError(ExitCode.USAGE, f"--throttle: {throttle} {error}.") from error
    return conf


def _question(client: AirflowClient, run_id: str) -> Mapping[str, Any] | None:
    """What the run asks; None = there is nothing to ask about, and it has ended.

    :raises CommandError: the run has failed before it has asked.
    """
    run = f"/dags/{FOREIGN_DAG}/dagRuns/{quote(run_id, safe='')}"
    while True:
        try:
            question: Mapping[str, Any] = client.api(
                "GET", f"{run}/taskInstances/{FOREIGN_QUESTION}/-1/hitlDetails"
            )
        except CommandError as error:
            if error.code is not ExitCode.NOT_THERE:
                raise
        else:
            return question
        state = client.api("GET", run)["state"]
        if state == "success":
            return None
        if state == "failed":
            log = f"See the logs of run {run_id} of {FOREIGN_DAG} in Airflow."
            raise CommandError(
                ExitCode.FAILED,
                "The run of this request has failed: it was refused, or a fault ended it.",
                log,
            )
        time.sleep(EACH_LOOK_S)
