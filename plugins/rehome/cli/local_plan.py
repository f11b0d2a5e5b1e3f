"""A plan and its dry run on this machine, without Airflow: it only reads, and records nothing.

The same code as in Airflow: the snapshot, the planner, the rules and facts of both gates (judged in
this process, without Spark), and the dry run, which asks the brokers what they would refuse. What a
ledger knows is missing: whether another plan holds the cluster, and what plans have set.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehome.cli.output import CommandError, ExitCode, clean, say_json
from rehome.cluster.connection.settings import Connection
from rehome.cluster.interface.errors import ClusterError
from rehome.clusters.clusters_file import ClustersFileError, clusters_of
from rehome.clusters.filled_requests import request_by
from rehome.domain.request.presets import fill_in
from rehome.domain.text import each_once, json_in
from rehome.errors import InvalidRequestError, RehomeError, first_problems
from rehome.execution.access.connection_policy import PolicyError
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.policy_from_request import rate_for, small_bytes_for
from rehome.planning.options import PlanOptions
from rehome.settings import Settings

if TYPE_CHECKING:
    from rehome.cluster.gateway import ClusterGateway
    from rehome.cluster.snapshot.model import Snapshot
    from rehome.clusters.clusters_file import ClusterEntry
    from rehome.domain.plan.kafka_json import KafkaFiles
    from rehome.domain.plan.plan import Plan
    from rehome.domain.request.request import ReassignmentRequest
    from rehome.execution.dry_run.result import DryRunResult

NOT_RECORDED = (
    "Not approved, not recorded: nothing was changed, and no ledger knows of this plan. Whether "
    "another plan holds the cluster is not known here."
)


def add_local(parser: argparse.ArgumentParser) -> None:
    """How to reach the cluster without Airflow."""
    group = parser.add_argument_group(
        "without Airflow",
        "The plan is made on this machine, and Kafka's JSON is printed. Nothing is changed or "
        "recorded.",
    )
    group.add_argument("--local", action="store_true", help="plan here, without Airflow")
    group.add_argument("--bootstrap", metavar="HOST:PORT", help="brokers, parted by commas")
    group.add_argument(
        "--client-config",
        type=Path,
        metavar="FILE",
        help="the client's settings, as key=value on lines of their own or as JSON: the keys of a "
        "connection",
    )
    group.add_argument(
        "--clusters-file",
        type=Path,
        metavar="FILE",
        help="its entry for --connection gives policy, targets, caps and broker sets",
    )


@dataclass(frozen=True)
class LocalPlan:
    """What came of it."""

    plan: Plan
    files: KafkaFiles
    tried: DryRunResult
    policy_refusals: tuple[str, ...]


def plan_here(chosen: argparse.Namespace, params: Mapping[str, Any]) -> int:
    """Make the plan, print it; returns the exit code.

    :raises CommandError: the cluster cannot be reached, or there is no plan.
    """
    from rehome.cluster.gateway import ClusterGateway

    settings, connection = _settings(chosen), _connection(chosen)
    try:
        with ClusterGateway(
            connection,
            name=chosen.bootstrap or str(chosen.client_config),
            request_timeout_s=settings.request_timeout_s,
            connect_timeout_s=settings.connect_timeout_s,
        ) as cluster:
            local_plan = _plan_locally(cluster, settings, params)
    except RehomeError as error:
        raise _failure(error) from error
    _print(local_plan, as_json=chosen.json)
    return (
        ExitCode.DONE if local_plan.tried.ok and not local_plan.policy_refusals else ExitCode.FAILED
    )


def _failure(error: Exception) -> CommandError:
    if isinstance(error, InvalidRequestError) and not isinstance(error, ClustersFileError):
        return CommandError(ExitCode.REFUSED, first_problems(error.problems))
    code = ExitCode.AWAY if isinstance(error, ClusterError) else ExitCode.FAILED
    return CommandError(code, str(error))


def _settings(chosen: argparse.Namespace) -> Settings:
    """Defaults and the environment's, and the clusters file that is named."""
    file = chosen.clusters_file
    try:
        return Settings.load({"clusters_file": "" if file is None else str(file.absolute())})
    except InvalidRequestError as error:
        raise CommandError(ExitCode.USAGE, first_problems(error.problems)) from error


def _connection(chosen: argparse.Namespace) -> Any:
    """The cluster's connection, by the command line and the client's settings.

    :raises CommandError: names what is missing or wrong.
    """
    given: dict[str, Any] = {}
    if chosen.client_config is not None:
        given = dict(client_settings(chosen.client_config))
    if chosen.bootstrap:
        given["bootstrap.servers"] = chosen.bootstrap
    if not given:
        raise CommandError(
            ExitCode.USAGE,
            "--local needs --bootstrap or --client-config, to reach the cluster.",
        )
    try:
        return Connection.from_settings(given)
    except InvalidRequestError as error:
        where = chosen.client_config or "the command line"
        raise CommandError(
            ExitCode.USAGE, first_problems(error.problems), f"Correct {where}."
        ) from error


def client_settings(path: Path) -> Mapping[str, Any]:
    """Settings of a client in a file: JSON, or lines such as Kafka's own tools take.

    :raises CommandError: it cannot be read.
    """
    try:
        text = path.read_text()
        if text.lstrip().startswith("{"):
            return dict(json_in(text))
        return each_once(list(_properties(text, path)))
    except (OSError, ValueError) as error:
        raise CommandError(ExitCode.USAGE, f"{path} cannot be read: {error}.") from error


def _properties(text: str, path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#!":
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise CommandError(ExitCode.USAGE, f"{path}, line {number}, is no key=value.")
        yield key.strip(), value.strip()


def _plan_locally(
    cluster: ClusterGateway, settings: Settings, params: Mapping[str, Any]
) -> LocalPlan:
    from rehome.cluster.snapshot.take import take_snapshot
    from rehome.domain.plan.kafka_json import KafkaFiles
    from rehome.execution.dry_run.dry_run import dry_run

    now = datetime.now(UTC)
    request, entry = _request(settings, params, now)
    own = OwnCluster.itself(cluster)
    snapshot = take_snapshot(cluster, now)
    _refuse_snapshot(snapshot, request, settings, now)
    made = _make(snapshot, request, settings)
    files = KafkaFiles.of(made.moves)
    plan = files.with_digests(made)
    _refuse_plan(snapshot, plan, request, settings, files)
    tried = dry_run(plan, request, snapshot, own, settings)
    return LocalPlan(plan, files, tried, _refusals(entry, request, tried))


def _request(
    settings: Settings, params: Mapping[str, Any], now: datetime
) -> tuple[ReassignmentRequest, ClusterEntry | None]:
    """The request, within the policy of the clusters file's entry; and that entry."""
    file = clusters_of(settings)
    values = fill_in(params, {}, _no_window).params
    request = request_by({**values, "dry_run": True}, file, now)
    entry = file.through(params.get("kafka_config_id"))
    if entry is not None and entry.policy is not None:
        request = entry.policy.request_within(request, now)
    return request, entry


def _no_window() -> datetime:
    raise CommandError(
        ExitCode.USAGE, "This preset ends with a maintenance window, which only Airflow knows."
    )


def _make(snapshot: Snapshot, request: ReassignmentRequest, settings: Settings) -> Plan:
    from rehome.planning.planner import guard, make_plan

    how = PlanOptions(
        plan_id=f"local-{request.action.value}",
        rate_bytes_per_s=rate_for(request, settings),
        throttle_efficiency=settings.throttle_efficiency,
        min_free_disk_fraction=settings.min_free_disk_fraction,
        reaction_s=settings.reaction_s,
        max_partitions_in_flight=settings.max_partitions_in_flight,
        small_bytes=small_bytes_for(request, settings),
    )
    return guard(make_plan(snapshot, request, how), request)


def _refuse_snapshot(
    snapshot: Snapshot, request: ReassignmentRequest, settings: Settings, now: datetime
) -> None:
    from rehome.quality.in_process.snapshot_rows import refused_snapshot

    broken = refused_snapshot(snapshot, request, now, settings.max_snapshot_age_s)
    _refuse("snapshot", broken)


def _refuse_plan(
    snapshot: Snapshot,
    plan: Plan,
    request: ReassignmentRequest,
    settings: Settings,
    files: KafkaFiles,
) -> None:
    from rehome.quality.gates import Evidence
    from rehome.quality.in_process.rules_on_rows import refused_plan

    evidence = Evidence.of(
        snapshot,
        plan,
        request,
        reassignment=files.reassignment,
        rollback=files.rollback,
        digests=files.digests(),
        min_free_disk_fraction=settings.min_free_disk_fraction,
    )
    _refuse("plan", refused_plan(evidence))


def _refuse(gate: str, broken: Mapping[str, Mapping[str, Any]]) -> None:
    if broken:
        rules = "; ".join(f"{rule}: {_row_text(row)}" for rule, row in broken.items())
        raise CommandError(
            ExitCode.FAILED,
            f"The gate on the {gate} did not pass, so there is no plan. It does not hold that "
            f"{rules}.",
            "Nothing was changed. Correct what is named, then plan again.",
        )


def _row_text(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.items() if value is not None)


def _refusals(
    entry: ClusterEntry | None, request: ReassignmentRequest, tried: DryRunResult
) -> tuple[str, ...]:
    """Why the policy of the clusters file would not let it be carried out."""
    if entry is None or entry.policy is None:
        return ()
    rate = None if request.unthrottled else tried.rate_bytes_per_s
    try:
        entry.policy.require_carried_out(
            request.action.value, rate, unthrottled=request.unthrottled, by_broker=tried.own_rates
        )
    except PolicyError as error:
        return error.texts
    return ()


def _print(local_plan: LocalPlan, *, as_json: bool) -> None:
    """Kafka's JSON on stdout, and all that is said of it on stderr."""
    from rehome.execution.dry_run.result import describe

    if as_json:
        say_json(
            {
                "state": "not recorded",
                "plan_hash": local_plan.plan.plan_hash,
                "cluster_id": local_plan.plan.cluster_id,
                "dry_run": _plain(local_plan.tried.to_json()),
                "policy_refusals": list(local_plan.policy_refusals),
                "reassignment": json.loads(local_plan.files.reassignment),
                "rollback": json.loads(local_plan.files.rollback),
            }
        )
        return
    _note(describe(local_plan.tried))
    for refusal in local_plan.policy_refusals:
        _note(f"The clusters file's policy: {refusal}")
    _note(NOT_RECORDED)
    sys.stdout.write(local_plan.files.reassignment)


def _plain(content: Any) -> Any:
    return json.loads(json.dumps(content, default=_as_text))


_as_text: Callable[[Any], str] = str


def _note(text: str) -> None:
    print(clean(text), file=sys.stderr)
