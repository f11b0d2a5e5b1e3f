"""Plan a reassignment: gate the snapshot, place replicas, gate the plan, in one application.

    python spark_jobs/plan.py --snapshot URI --request FILE --out URI
    spark-submit --py-files include.zip spark_jobs/plan.py --snapshot URI --request FILE --out URI

Exits with 0 when a proven plan was written, 2 when the request cannot be carried out, 3 when a
gate refused, 4 when a check of a gate crashed. Whatever it refuses is told on stderr and in
failure.json; reassignment.json is only there when everything held.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __package__ in (None, "") and (Path(__file__).resolve().parent.parent / "include").is_dir():
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run by hand, no zip shipped

from include.errors import InvalidRequestError, RehomeError
from include.planning.kafka_json import reassignment_json, rollback_json
from include.planning.plan import Plan
from include.planning.planner import make_plan
from include.planning.request import Action, ReassignmentRequest, parse_request, request_to_params
from include.planning.rollback import rollback_plan
from include.quality.gates import check_plan, check_snapshot
from include.quality.results import GateResult, describe, refusal
from include.warehouse import PlanDirectory, read_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from include.cluster.snapshot import Snapshot

EXIT_CODES = {"invalid_request": 2, "gate_refused": 3, "expectation_crashed": 4}


class _RefusedError(Exception):
    """The job ends without a plan; ``kind`` is a key of EXIT_CODES.

    :param details: what the message tells, as a list: problems, or names of expectations.
    """

    def __init__(self, kind: str, message: str, details: Sequence[str]) -> None:
        self.kind = kind
        self.details = list(details)
        super().__init__(message)

    @classmethod
    def invalid(cls, error: RehomeError) -> _RefusedError:
        problems = error.problems if isinstance(error, InvalidRequestError) else (error.what,)
        return cls("invalid_request", str(error), problems)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    options = _options(arguments)
    out = PlanDirectory(options.out)
    out.discard()
    try:
        plan = _run(options, out)
    except _RefusedError as error:
        out.write_json("failure.json", _failure(error))
        print(error, file=sys.stderr)
        return EXIT_CODES[error.kind]
    print(f"{len(plan.moves)} moves, hash {plan.plan_hash}: {out.uri}")
    return 0


def _failure(error: _RefusedError) -> dict[str, Any]:
    return {"kind": error.kind, "message": str(error), "details": error.details}


def _run(options: argparse.Namespace, out: PlanDirectory) -> Plan:
    try:
        request = _read_request(options.request)
        out.write_json("request.json", request_to_params(request))
        snapshot = read_snapshot(options.snapshot)
    except RehomeError as error:
        raise _RefusedError.invalid(error) from None
    with _session() as spark:
        plan = _gated(spark, options, out, request, snapshot)
    out.save(plan, request)
    return plan


def _gated(
    spark: SparkSession,
    options: argparse.Namespace,
    out: PlanDirectory,
    request: ReassignmentRequest,
    snapshot: Snapshot,
) -> Plan:
    gates: list[GateResult] = []
    now = datetime.now(UTC)
    seen = check_snapshot(
        spark,
        options.snapshot,
        snapshot,
        now,
        max_age_s=options.max_snapshot_age_s,
        additional=request.additional,
    )
    _record(out, gates, seen)
    plan = _plan(options, request, snapshot)
    checked = check_plan(
        spark,
        snapshot,
        plan,
        request,
        reassignment=reassignment_json(plan.moves),
        rollback=rollback_json(plan.moves),
        min_free_disk_fraction=options.min_free_disk_fraction,
    )
    _record(out, gates, checked)
    return plan


def _plan(options: argparse.Namespace, request: ReassignmentRequest, snapshot: Snapshot) -> Plan:
    common: dict[str, Any] = {
        "plan_id": options.plan_id or Path(options.out.rstrip("/")).name,
        "rate_bytes_per_s": options.rate_bytes_per_s or request.throttle_bytes_per_s,
        "throttle_efficiency": options.throttle_efficiency,
        "min_free_disk_fraction": options.min_free_disk_fraction,
    }
    try:
        if request.action is Action.ROLLBACK:
            if not options.rollback_of:
                raise InvalidRequestError(["A rollback needs --rollback-of: the plan's directory."])
            return rollback_plan(PlanDirectory(options.rollback_of).moves(), snapshot, **common)
        plan = make_plan(snapshot, request, **common)
    except RehomeError as error:
        raise _RefusedError.invalid(error) from None
    if request.action is not Action.SET_REPLICATION_FACTOR:
        # Whatever came out: the controller is told to refuse a changed replication factor.
        return replace(plan, allow_replication_factor_change=False)
    return plan


def _record(out: PlanDirectory, gates: list[GateResult], result: GateResult) -> None:
    gates.append(result)
    out.write_json("gates.json", [gate.to_json() for gate in gates])
    print(describe([result]))
    if not result.passed:
        kind = "expectation_crashed" if result.crashed else "gate_refused"
        raise _RefusedError(
            kind,
            f"The gate on the {result.gate} did not pass:\n{refusal(result)}",
            [outcome.name for outcome in (*result.crashed, *result.failed)],
        )


def _read_request(path: str) -> ReassignmentRequest:
    import json

    import fsspec

    try:
        with fsspec.open(path, "r", encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError) as error:
        raise InvalidRequestError([f"The request {path} cannot be read: {error}."]) from None
    if not isinstance(content, dict):
        raise InvalidRequestError([f"The request {path} is not a JSON object."])
    return parse_request(content)


@contextmanager
def _session() -> Iterator[SparkSession]:
    """The session that is there already, or one of our own, which ends with the job."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.appName("rehome-plan")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "8")
        .config("spark.sql.session.timeZone", "UTC")
    )
    if "SPARK_ENV_LOADED" not in os.environ:  # by hand; spark-submit names the master itself
        builder = builder.master(os.environ.get("MASTER", "local[*]"))
        builder = builder.config("spark.driver.host", "127.0.0.1")
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--snapshot", required=True, help="URI of a snapshot")
    parser.add_argument("--request", required=True, help="JSON file with the parameters")
    parser.add_argument("--out", required=True, help="URI of the plan's directory")
    parser.add_argument("--plan-id", help="default: the last part of --out")
    parser.add_argument("--rate-bytes-per-s", type=int, help="throttle the prediction assumes")
    parser.add_argument("--throttle-efficiency", type=float, default=0.85)
    parser.add_argument("--min-free-disk-fraction", type=float, default=0.05)
    parser.add_argument("--max-snapshot-age-s", type=float, default=3600.0)
    parser.add_argument("--rollback-of", help="URI of the plan to take back (action rollback)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
