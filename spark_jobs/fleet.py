"""Plan many clusters in one application: one Spark task each, side by side.

    python spark_jobs/fleet.py --snapshots URI URI … --request FILE --out URI
    spark-submit --py-files rehome.zip spark_jobs/fleet.py --snapshots URI … --request FILE …

FILE holds one request for all clusters, or {"clusters": {cluster id: request}}; beside "clusters",
{"options": {cluster id: {option: value}}} has what a cluster has of its own. The plan of a cluster
goes to OUT/NAME-CLUSTER-ID, gated like one that is made alone and with the same hash;
OUT/NAME.json says what became of each. A cluster that gets no plan does not keep the others from
theirs: the exit code is 5 then, and 0 when all have one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __package__ in (None, "") and (Path(__file__).resolve().parent.parent / "include").is_dir():
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run by hand, no zip shipped
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "include"))

from rehome.domain.plan.kafka_json import KafkaFiles
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest, request_to_params
from rehome.errors import RehomeError
from rehome.load_history.known_rates import LoadHistory
from rehome.places.path_parts import id_of, path_part
from rehome.quality.engine.context import prepare
from rehome.quality.engine.results import GateResult
from rehome.quality.gates import Evidence, check_evidences, check_snapshots
from rehome.quality.snapshot.tables import Concerned, GatedSnapshot
from rehome.settings import THROTTLE_EFFICIENCY
from rehome.warehouse import PlanDirectory, Warehouse, read_snapshot, replicas_in
from spark_jobs import fleet_requests
from spark_jobs.fleet_tasks import Answer, PlanTask, run_all
from spark_jobs.gated_plan import (
    GateThresholds,
    Proof,
    RefusedError,
    evidence_of,
)
from spark_jobs.plan import (
    add_clusters_file_option,
    add_history_options,
    demands_of,
    plan_options,
)
from spark_jobs.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SOME_WITHOUT_PLAN = 5
TOGETHER_REPLICAS = 250_000
"""Of clusters that are judged in one pass: the driver holds their tables."""


@dataclass
class FleetCluster:
    """One cluster of the fleet, and what has become of it.

    :param cluster_id: as the snapshot's directory names it.
    :param options: the job's, with the cluster's own.
    """

    cluster_id: str
    uri: str
    out: PlanDirectory
    options: argparse.Namespace
    request: ReassignmentRequest | None = None
    proof: Proof | None = None
    plan_hash: str | None = None
    task: int | None = None
    replicas: int = 0
    plan: Plan | None = None
    files: KafkaFiles | None = None
    history: LoadHistory | None = None
    refusal: RefusedError | None = None

    def attempt(self, step: Callable[[FleetCluster], None]) -> None:
        """Take a step, unless an earlier one was refused: a refusal ends this cluster only."""
        if self.refusal is not None:
            return
        try:
            try:
                step(self)
            except RehomeError as error:
                raise RefusedError.invalid(error) from None
        except RefusedError as error:
            self.refusal = error
            self.out.write_json("failure.json", error.to_json())
            print(f"{self.cluster_id}: {error}", file=sys.stderr)

    def to_json(self) -> dict[str, Any]:
        """Its entry in the fleet's list."""
        return {
            "cluster_id": self.cluster_id,
            "snapshot": self.uri,
            "plan": self.out.uri,
            "plan_hash": self.plan_hash,
            "task": self.task,
            "refused": None if self.refusal is None else self.refusal.kind,
        }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    options = parse_options(arguments)
    members = [_member(uri, options) for uri in options.snapshots]
    for member in members:
        member.out.discard()
        member.attempt(_read)
    with spark_session("rehome-fleet", meanwhile=prepare, python=True) as spark:
        for member in members:
            member.attempt(lambda one: _begin(one, spark))
        for some in in_passes(members):
            _prove_snapshots(some, spark)
        ready = [member for member in members if member.refusal is None]
        answers = run_all(spark, [task_of(member) for member in ready])
        for member, answer in zip(ready, answers, strict=True):
            member.attempt(lambda one, answer=answer: _take_plan(one, answer))  # type: ignore[misc]
        for some in in_passes(ready):
            _prove_plans(some, spark)
        for member in members:
            if member.proof is not None:
                member.proof.publish()
    Warehouse(options.out).write_json(f"{options.name}.json", [m.to_json() for m in members])
    for member in members:
        print(f"{member.cluster_id}: {member.plan_hash or 'no plan'}: {member.out.uri}")
    return SOME_WITHOUT_PLAN if any(member.refusal for member in members) else 0


def _member(uri: str, options: argparse.Namespace) -> FleetCluster:
    cluster_id = _cluster_id(uri)
    out = PlanDirectory(f"{options.out.rstrip('/')}/{options.name}-{path_part(cluster_id)}")
    return FleetCluster(cluster_id, uri, out, options)


def _cluster_id(uri: str) -> str:
    parts = uri.rstrip("/").split("/")
    ids = [part.removeprefix("cluster=") for part in parts if part.startswith("cluster=")]
    return id_of(ids[-1]) if ids else parts[-1]


def _read(member: FleetCluster) -> None:
    member.request, member.options = fleet_requests.read(member.cluster_id, member.options)
    member.out.write_json("request.json", request_to_params(member.request))


def in_passes(members: Sequence[FleetCluster]) -> Iterator[list[FleetCluster]]:
    """Members that have no refusal, in groups of which each is judged in one pass: small clusters
    together, and each large one by itself.
    """
    some: list[FleetCluster] = []
    rows = 0
    for member in members:
        if member.refusal is not None:
            continue
        if some and rows + member.replicas > TOGETHER_REPLICAS:
            yield some
            some, rows = [], 0
        some.append(member)
        rows += member.replicas
    if some:
        yield some


def _begin(member: FleetCluster, spark: SparkSession) -> None:
    assert member.request is not None
    options = member.options
    limits = GateThresholds(options.max_snapshot_age_s, options.min_free_disk_fraction)
    member.replicas = replicas_in(member.uri)
    member.proof = Proof(spark, member.out, member.request, limits, options.quality)


def _prove_snapshots(members: Sequence[FleetCluster], spark: SparkSession) -> None:
    """Judge snapshots in as few passes as it takes: those together that are asked the same."""
    alike: dict[tuple[bool, float], dict[str, FleetCluster]] = {}
    for member in members:
        assert member.request is not None
        age_s = _proof_of(member).limits.max_snapshot_age_s
        key = (member.request.additional, age_s)
        alike.setdefault(key, {})[member.cluster_id] = member
    for (additional, age_s), some in alike.items():
        results = check_snapshots(
            spark,
            {name: _gated_snapshot(one) for name, one in some.items()},
            lambda name, some=some: _judged_alone(some[name]),  # type: ignore[misc]
            datetime.now(UTC),
            max_age_s=age_s,
            additional=additional,
        )
        for name, one in some.items():
            one.attempt(lambda each, result=results[name]: _proof_of(each).record(result))  # type: ignore[misc]


def _gated_snapshot(member: FleetCluster) -> GatedSnapshot:
    assert member.request is not None
    concerned = Concerned.by(member.request)
    return GatedSnapshot(read_snapshot(member.uri), concerned)


def _judged_alone(member: FleetCluster) -> GateResult:
    snapshot = read_snapshot(member.uri, replicas=False)
    return _proof_of(member).judge_snapshot(member.uri, snapshot)


def _proof_of(member: FleetCluster) -> Proof:
    assert member.proof is not None
    return member.proof


def _take_plan(member: FleetCluster, answer: Answer) -> None:
    """Take a task's plan, which is still to be judged; and judge the history that it went by."""
    member.task = answer.task
    if answer.plan is None:
        assert answer.refusal is not None
        raise RefusedError(*answer.refusal)
    if answer.history is not None:
        _proof_of(member).of_history(answer.history)
        member.out.write_json("load.json", answer.load)
        member.history = answer.history
    member.files = KafkaFiles.of(answer.plan.moves)
    member.plan = member.files.with_digests(answer.plan)


def _prove_plans(members: Sequence[FleetCluster], spark: SparkSession) -> None:
    """Judge plans in as few passes as it takes, and save those that pass."""
    some = {member.cluster_id: member for member in members}
    evidences: dict[str, Evidence] = {}
    for name, member in some.items():
        member.attempt(lambda one, name=name: evidences.__setitem__(name, _evidence(one)))  # type: ignore[misc]
    for name, result in check_evidences(spark, evidences).items():
        some[name].attempt(lambda one, result=result: _save(one, result))  # type: ignore[misc]


def _evidence(member: FleetCluster) -> Evidence:
    assert member.plan is not None
    assert member.files is not None
    assert member.request is not None
    limits, snapshot = _proof_of(member).limits, read_snapshot(member.uri)
    if member.request.caps and member.history is not None:
        snapshot = member.history.with_rates(snapshot)
    return evidence_of(snapshot, member.plan, member.request, limits, member.files)


def _save(member: FleetCluster, result: GateResult) -> None:
    _proof_of(member).record(result)
    assert member.plan is not None
    assert member.request is not None
    recorded_in = replace(member.plan.summary, ledger_id=member.options.ledger_id)
    member.out.save(replace(member.plan, summary=recorded_in), member.request, member.files)
    member.plan_hash = member.plan.plan_hash


def task_of(member: FleetCluster) -> PlanTask:
    """What plans a member, wherever it runs."""
    assert member.request is not None
    options = member.options
    return PlanTask(
        uri=member.uri,
        snapshot=read_snapshot(member.uri, replicas=False),
        request=member.request,
        history=options.history,
        demands=demands_of(options),
        forecast_days=options.forecast_days,
        options=plan_options(options, member.out.uri.rsplit("/", 1)[-1], member.request),
    )


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--snapshots", required=True, nargs="+", help="URIs of snapshots")
    parser.add_argument("--request", required=True, help="JSON file with the parameters")
    parser.add_argument("--out", required=True, help="URI of the directory of plans")
    parser.add_argument(
        "--quality", default="", help="URI of the Great Expectations project of all plans"
    )
    parser.add_argument("--name", default="fleet", help="what the plans' ids begin with")
    parser.add_argument("--rate-bytes-per-s", type=int, help="throttle the prediction assumes")
    parser.add_argument("--throttle-efficiency", type=float, default=THROTTLE_EFFICIENCY)
    parser.add_argument("--reaction-s", type=float, default=15.0, help="until a person acts")
    parser.add_argument("--max-partitions-in-flight", type=int, default=200)
    parser.add_argument("--small-bytes", type=int, default=0, help="moves of no more are small")
    parser.add_argument("--min-free-disk-fraction", type=float, default=0.05)
    parser.add_argument("--max-snapshot-age-s", type=float, default=3600.0)
    parser.add_argument("--ledger-id", default="", help="of the ledger that will record the plans")
    add_clusters_file_option(parser)
    add_history_options(parser)
    options = parser.parse_args(arguments)
    counted = Counter(map(_cluster_id, options.snapshots))
    if twice := sorted(cluster for cluster, number in counted.items() if number > 1):
        parser.error(f"--snapshots: more than one of {', '.join(twice)}; a cluster has one plan")
    return options


if __name__ == "__main__":
    sys.exit(main())
