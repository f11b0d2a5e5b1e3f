"""Plan a reassignment: gate the snapshot, place replicas, gate the plan, in one application.

    python spark_jobs/plan.py --snapshot URI --request FILE --out URI
    spark-submit --py-files rehome.zip spark_jobs/plan.py --snapshot URI --request FILE --out URI

Exits with 0 when a proven plan was written, 2 when the request cannot be carried out, 3 when a
gate refused, 4 when a check of a gate crashed, 1 when anything else did. Why there is no plan is
printed on stderr and in failure.json; reassignment.json is only there when everything held. Where a
finished plan is already, it stays: the job ends with 2 and writes nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if __package__ in (None, "") and (Path(__file__).resolve().parent.parent / "include").is_dir():
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run by hand, no zip shipped
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "include"))

from rehome.domain.actions import Action
from rehome.domain.plan.kafka_json import KafkaFiles
from rehome.domain.plan.plan import Plan
from rehome.domain.plan.plan_hash import refuse_changed
from rehome.domain.request.request import ReassignmentRequest, request_to_params
from rehome.domain.text import count_text
from rehome.errors import InvalidRequestError, RehomeError
from rehome.load_history.forecast import load_report
from rehome.load_history.known_rates import Demands, LoadHistory
from rehome.planning.options import PlanOptions
from rehome.planning.planner import guard, make_plan
from rehome.planning.result.summary_figures import NO_HISTORY
from rehome.planning.rollback import rollback_plan
from rehome.quality.engine.context import prepare
from rehome.settings import THROTTLE_EFFICIENCY
from rehome.warehouse import (
    PlanDirectory,
    PlanExistsError,
    Warehouse,
    read_snapshot,
    replicas_in,
)
from spark_jobs.background_process import in_background
from spark_jobs.gated_plan import (
    EXIT_CODES,
    GateThresholds,
    Proof,
    RefusedError,
    evidence_of,
    read_request,
)
from spark_jobs.session import MANY_REPLICAS, fit_to, spark_session

if TYPE_CHECKING:
    from rehome.cluster.snapshot.model import Snapshot
    from rehome.quality.gates import Evidence


class Planned(NamedTuple):
    """A plan and what its gate judges it by; where it went by a history, that and load.json."""

    plan: Plan
    evidence: Evidence
    files: KafkaFiles
    history: LoadHistory | None = None
    load: Mapping[str, Any] | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    options = _options(arguments)
    out = PlanDirectory(options.out)
    try:
        out.refuse_finished()
        out.discard()
        plan = _run(options, out)
    except PlanExistsError as error:  # its directory is left as it is
        print(error, file=sys.stderr)
        return EXIT_CODES["invalid_request"]
    except RefusedError as error:
        out.write_json("failure.json", error.to_json())
        print(error, file=sys.stderr)
        return EXIT_CODES[error.kind]
    except Exception as error:
        out.write_json("failure.json", RefusedError.of_crash(error).to_json())
        raise
    print(f"{count_text(len(plan.moves), 'move')}, hash {plan.plan_hash}: {out.uri}")
    return 0


def _run(options: argparse.Namespace, out: PlanDirectory) -> Plan:
    try:
        request = read_request(options.request, options.clusters_file)
        out.write_json("request.json", request_to_params(request))
        snapshot = read_snapshot(options.snapshot, replicas=False)
        replicas = replicas_in(options.snapshot)
    except RehomeError as error:
        raise RefusedError.invalid(error) from None
    here = partial(_plan_with_evidence, options, request, partial(plan_request, options, request))
    with ExitStack() as stack:
        many = replicas >= MANY_REPLICAS
        planned = stack.enter_context(in_background(here)) if many else here
        spark = stack.enter_context(spark_session("rehome-plan", meanwhile=prepare))
        fit_to(spark, replicas)
        proof = Proof(spark, out, request, _limits(options), options.quality)
        stack.callback(proof.publish)
        proof.of_snapshot(options.snapshot, snapshot)
        try:
            outcome = planned()
        except RehomeError as error:
            raise RefusedError.invalid(error) from None
        if outcome.history is not None:
            proof.of_history(outcome.history)
            out.write_json("load.json", outcome.load)
        proof.of_plan(outcome.evidence)
    recorded_in = replace(outcome.plan.summary, ledger_id=options.ledger_id)
    plan = replace(outcome.plan, summary=recorded_in)
    out.save(plan, request, outcome.files)
    return plan


def _plan_with_evidence(
    options: argparse.Namespace, request: ReassignmentRequest, solve: Callable[[Snapshot], Plan]
) -> Planned:
    """The plan, by the rates that the history knows. The caller need not have Spark."""
    snapshot, limits = read_snapshot(options.snapshot), _limits(options)
    if not options.history:
        files, plan = _with_files(solve(snapshot))
        return Planned(plan, evidence_of(snapshot, plan, request, limits, files), files)
    history = LoadHistory.read(Warehouse(options.history), snapshot, demands_of(options))
    files, plan = _with_files(by_history(snapshot, history, solve))
    report = load_report(snapshot, plan, history, options.forecast_days)
    # The gate goes by rates where brokers have caps on them.
    gate_snapshot = history.with_rates(snapshot) if request.caps else snapshot
    evidence = evidence_of(gate_snapshot, plan, request, limits, files)
    return Planned(plan, evidence, files, history, report)


def _with_files(plan: Plan) -> tuple[KafkaFiles, Plan]:
    """Kafka's files of a plan, made once, and the plan with a summary that names them."""
    files = KafkaFiles.of(plan.moves)
    return files, files.with_digests(plan)


def _limits(options: argparse.Namespace) -> GateThresholds:
    return GateThresholds(options.max_snapshot_age_s, options.min_free_disk_fraction)


def demands_of(options: argparse.Namespace) -> Demands:
    """How much history is asked for."""
    return Demands(window_days=options.history_days, min_hours=options.min_history_hours)


def by_history(snapshot: Snapshot, history: LoadHistory, solve: Callable[[Snapshot], Plan]) -> Plan:
    """The plan by the rates that the history knows; it says what that lacks."""
    plan = solve(history.with_rates(snapshot))
    by = plan.summary.planned_by.replace(NO_HISTORY, history.shortcoming())
    by = " ".join(filter(None, (by, history.estimates())))
    return replace(plan, summary=replace(plan.summary, planned_by=by))


def plan_request(
    options: argparse.Namespace, request: ReassignmentRequest, snapshot: Snapshot
) -> Plan:
    """The plan of any request, made in this process."""
    how = _plan_options(options, request)
    if request.action is Action.ROLLBACK:
        if not options.rollback_of:
            raise InvalidRequestError(["A rollback needs --rollback-of: the plan's directory."])
        most = request.max_moves_per_broker
        return rollback_plan(
            _taken_back(options),
            snapshot,
            how,
            max_moves_per_broker=most,
            caps=request.caps,
            broker_sets=request.broker_sets,
        )
    return plan_forward(snapshot, request, how)


def _taken_back(options: argparse.Namespace) -> Plan:
    """The plan to take back, as it was recorded: its own hash counts where no other is given."""
    done = PlanDirectory(options.rollback_of).load()
    refuse_changed(done, done.plan_id, options.rollback_of_hash or done.plan_hash)
    return done


def _plan_options(options: argparse.Namespace, request: ReassignmentRequest) -> PlanOptions:
    plan_id = options.plan_id or Path(options.out.rstrip("/")).name
    return plan_options(options, plan_id, request)


def plan_options(
    options: argparse.Namespace, plan_id: str, request: ReassignmentRequest
) -> PlanOptions:
    """The job's options as the planner takes them."""
    return PlanOptions(
        plan_id=plan_id,
        rate_bytes_per_s=options.rate_bytes_per_s or request.throttle_bytes_per_s,
        throttle_efficiency=options.throttle_efficiency,
        min_free_disk_fraction=options.min_free_disk_fraction,
        reaction_s=options.reaction_s,
        max_partitions_in_flight=options.max_partitions_in_flight,
        small_bytes=options.small_bytes,
    )


def plan_forward(snapshot: Snapshot, request: ReassignmentRequest, options: PlanOptions) -> Plan:
    """The plan of any request but a rollback.

    :raises InvalidRequestError: lists every problem.
    """
    return guard(make_plan(snapshot, request, options), request)


def add_history_options(parser: argparse.ArgumentParser) -> None:
    """The options of a job about the history that it plans by."""
    parser.add_argument("--history", help="URI of the warehouse whose rollups hold the load")
    parser.add_argument("--history-days", type=int, default=7)
    parser.add_argument("--min-history-hours", type=float, default=24.0)
    parser.add_argument("--forecast-days", type=int, default=30)


def add_clusters_file_option(parser: argparse.ArgumentParser) -> None:
    """The option of a job about what holds for the cluster of a request."""
    parser.add_argument(
        "--clusters-file",
        default="",
        help="clusters file: the request's kafka_config_id says whose targets, caps and broker "
        "sets hold where the request has none",
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--snapshot", required=True, help="URI of a snapshot")
    parser.add_argument("--request", required=True, help="JSON file with the parameters")
    parser.add_argument("--out", required=True, help="URI of the plan's directory")
    add_clusters_file_option(parser)
    parser.add_argument("--plan-id", help="default: the last part of --out")
    parser.add_argument("--rate-bytes-per-s", type=int, help="throttle the prediction assumes")
    parser.add_argument("--throttle-efficiency", type=float, default=THROTTLE_EFFICIENCY)
    parser.add_argument("--reaction-s", type=float, default=15.0, help="until a person acts")
    parser.add_argument("--max-partitions-in-flight", type=int, default=200)
    parser.add_argument("--small-bytes", type=int, default=0, help="moves of no more are small")
    parser.add_argument("--min-free-disk-fraction", type=float, default=0.05)
    parser.add_argument("--max-snapshot-age-s", type=float, default=3600.0)
    add_history_options(parser)
    parser.add_argument(
        "--quality", default="", help="URI of the Great Expectations project of all plans"
    )
    parser.add_argument("--ledger-id", default="", help="of the ledger that will record the plan")
    parser.add_argument("--rollback-of", help="URI of the plan to take back (action rollback)")
    parser.add_argument("--rollback-of-hash", help="its hash, as the ledger has recorded it")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
