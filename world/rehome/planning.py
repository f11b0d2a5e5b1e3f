"""In the place of the Spark application: the real planner in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rehome.domain.actions import Action
from rehome.domain.clock import utc_now
from rehome.domain.plan.kafka_json import KafkaFiles
from rehome.domain.plan.plan import Plan
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import ReassignmentRequest
from rehome.errors import InvalidRequestError, RehomeError
from rehome.planning.options import PlanOptions
from rehome.planning.planner import guard, make_plan
from rehome.planning.rollback import rollback_plan
from rehome.quality.gates import Evidence
from rehome.quality.in_process.rules_on_rows import refused_plan
from rehome.quality.in_process.snapshot_rows import refused_snapshot
from rehome.quality.plan.rules import EXPLICIT
from rehome.run.causes.errors import EndedError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.warehouse import PlanDirectory
from world.rehome.installation import Installation

ByHand = Callable[[str], Plan | None]


def plan_in_process(site: Installation, operator: Any, by_hand: ByHand) -> None:
    """As ``spark_jobs/plan.py``: reads and writes what that does.

    :param by_hand: the plan that a person has written, by its id; None = the planner makes one.
    :raises EndedError: there is no plan, and ``failure.json`` says why.
    """
    args: Mapping[str, str] = dict(
        zip(operator.application_args[::2], operator.application_args[1::2], strict=True)
    )
    out = site.warehouse.plan_at(args["--out"])
    plan_id = out.uri.rpartition("/")[2]
    request = parse_request(out.read_json("request.json"), recorded=True)
    try:
        written = by_hand(plan_id)
        if written is None or site.scripts[plan_id].tried_out:
            _judge_snapshot(site, args, out, request)
        plan = written or _planned(site, args, plan_id, request)
    except RehomeError as error:
        problems = error.problems if isinstance(error, InvalidRequestError) else (error.what,)
        raise _failed(out, "invalid_request", str(error), problems) from None
    files = KafkaFiles.of(plan.moves)
    plan = files.with_digests(plan)
    if written is None and (broken := _gate(site, args, plan, request, files)):
        if request.action not in EXPLICIT:  # else the planner has chosen nothing
            site.gate_refused[plan_id] = broken
        raise _failed(out, "gate_refused", "The gate on the plan did not pass", broken)
    snapshot = args["--snapshot"].partition("/snapshots/")[2]
    recorded_in = replace(plan.summary, ledger_id=args["--ledger-id"], snapshot=snapshot)
    out.write_json("gates.json", [])
    out.save(replace(plan, summary=recorded_in), request, files)


def _failed(out: PlanDirectory, kind: str, message: str, details: Sequence[str]) -> EndedError:
    out.write_json("failure.json", {"kind": kind, "message": message, "details": list(details)})
    return EndedError(TaskEnd(TaskReason.JOB_FAILED, said="exit code 1", place="plan", task="plan"))


def _judge_snapshot(
    site: Installation,
    args: Mapping[str, str],
    out: PlanDirectory,
    request: ReassignmentRequest,
) -> None:
    """The gate on the snapshot.

    :raises EndedError: it refuses it.
    """
    snapshot = site.warehouse.read(args["--snapshot"])
    broken = refused_snapshot(snapshot, request, utc_now(), float(args["--max-snapshot-age-s"]))
    if broken:
        rules = [f"{rule}: {dict(row)}" for rule, row in broken.items()]
        site.snapshots_refused[out.uri.rpartition("/")[2]] = rules
        raise _failed(out, "gate_refused", "The gate on the snapshot did not pass", rules)


def _gate(
    site: Installation,
    args: Mapping[str, str],
    plan: Plan,
    request: ReassignmentRequest,
    files: KafkaFiles,
) -> list[str]:
    """What the gate holds against a plan of the planner's."""
    evidence = Evidence.of(
        site.warehouse.read(args["--snapshot"]),
        plan,
        request,
        reassignment=files.reassignment,
        rollback=files.rollback,
        digests=files.digests(),
        min_free_disk_fraction=float(args["--min-free-disk-fraction"]),
    )
    return [f"{rule}: {dict(row)}" for rule, row in refused_plan(evidence).items()]


def _planned(
    site: Installation, args: Mapping[str, str], plan_id: str, request: ReassignmentRequest
) -> Plan:
    snapshot = site.warehouse.read(args["--snapshot"])
    how = _options(args, plan_id)
    if request.action is Action.ROLLBACK:
        done = site.warehouse.plan_at(args["--rollback-of"]).load()
        return rollback_plan(done, snapshot, how, max_moves_per_broker=request.max_moves_per_broker)
    return guard(make_plan(snapshot, request, how), request)


def _options(args: Mapping[str, str], plan_id: str) -> PlanOptions:
    return PlanOptions(
        plan_id,
        rate_bytes_per_s=int(args["--rate-bytes-per-s"]),
        throttle_efficiency=float(args["--throttle-efficiency"]),
        min_free_disk_fraction=float(args["--min-free-disk-fraction"]),
        reaction_s=float(args["--reaction-s"]),
        max_partitions_in_flight=int(args["--max-partitions-in-flight"]),
    )
