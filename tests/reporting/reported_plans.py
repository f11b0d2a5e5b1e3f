"""Plans in every state, as a report gets them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from rehome.account.evidence import FilesRead, PlanEvidence
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.figures import BudgetPoint, TargetPrice
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.plan import Plan
from rehome.domain.plan.summary import BrokerLoad
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.findings import Finding, Severity
from rehome.domain.run.ledger_view import MoveSums
from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.states import MoveState, PlanState
from rehome.domain.time_range import TimeRange
from rehome.execution.dry_run.result import DryRunResult
from rehome.ledger.base.records import Event, MoveRecord, PlanRecord, ThrottleEntry, ThrottleState
from rehome.ledger.stores.approvals.written_files import DryRun
from rehome.reporting.data import ReportData
from tests.ledger.small_plans import make_plan, move

START = datetime(2026, 3, 1, 22, 0, tzinfo=UTC)
MB = 1_000_000


def moves(count: int = 3, topic: str = "orders") -> list[Move]:
    return [
        replace(
            move(topic, number, (4, 1), (2, 1), size_bytes=50 * MB),
            reason=MoveReason.DRAIN,
            causes=(MoveCause(CauseCode.DRAINED, 4),),
        )
        for number in range(count)
    ]


def plan_of(*chosen: Move) -> Plan:
    plan = make_plan("plan-1", *chosen)
    loads = (
        BrokerLoad(1, 150 * MB, 150 * MB, 3, 3, 0, 0, 0, 0),
        BrokerLoad(2, 40 * MB, 190 * MB, 1, 4, 1, 4, 150 * MB, 0),
        BrokerLoad(4, 150 * MB, 0, 3, 0, 3, 0, 0, 150 * MB),
    )
    summary = replace(
        plan.summary,
        action="drain",
        brokers=loads,
        predicted_s=88.0,
        rate_bytes_per_s=2 * MB,
        lower_bound_bytes=150 * MB,
    )
    return replace(plan, action="drain", summary=summary)


def record(plan: Plan, state: PlanState, cause: str = "", **values: Any) -> PlanRecord:
    return replace(
        PlanRecord(
            plan_id=plan.plan_id,
            cluster_id=plan.cluster_id,
            state=state,
            cause=cause,
            action=plan.action,
            plan_hash=plan.plan_hash,
            request={},
            plan_dir="file:///warehouse/plans/plan-1",
            planned_through=None,
            run_id="run-1",
            actor="asker",
            approved_by=None,
            bytes_total=plan.summary.bytes_to_move,
            rate_bytes_per_s=None,
            requested_rate_bytes_per_s=None,
            cancel_requested=False,
            pause_requested=False,
            created_at=START,
            approved_at=None,
            started_at=None,
            last_progress_at=None,
            held_at=None,
            ended_at=None,
        ),
        **values,
    )


def dry_run_json(*findings: Finding) -> Mapping[str, Any]:
    checks = ("rights", "verdict", "disk")
    return DryRunResult(
        "plan-1",
        "abc",
        checks,
        findings,
        partitions=3,
        rate_bytes_per_s=2 * MB,
        predicted=TimeRange(88.0, 125.0),
    ).to_json()


TRIED = DryRun(
    "plan-1", "dag", "run", True, 2 * MB, "", "a" * 64, moves=3, least_s=88.0, most_s=125.0
)
"""The same as the ledger knows it."""
NO_ROOM = Finding(Severity.ERROR, "disk", "broker 2", "too little room", "Free disk.")


def gates_json(*, failed: bool = False) -> tuple[Mapping[str, Any], ...]:
    outcome = {
        "name": "every live broker answered",
        "table": "brokers",
        "status": "failed" if failed else "passed",
        "remedy": "Find out why.",
        "offending_count": 3 if failed else 0,
        "offending_rows": ["broker=3"] if failed else [],
        "exception": "",
    }
    return ({"gate": "snapshot", "passed": not failed, "outcomes": [outcome]},)


def dry_run_only(*findings: Finding) -> ReportData:
    """The files after the dry run of a run that asked for nothing more."""
    plan = plan_of(*moves())
    state = PlanState.FAILED if findings else PlanState.PLANNED
    request = {"action": "drain", "brokers": [4], "dry_run": True, "throttle": 2 * MB}
    files = FilesRead(dry_run_json(*findings), gates_json(), plan.summary)
    return ReportData(
        plan=plan,
        written_at=START,
        evidence=PlanEvidence(
            record(plan, state, request=request), _sums(plan, *[MoveState.PENDING] * 3), files=files
        ),
        request=request,
        moves=move_records(plan, *[MoveState.PENDING] * 3),
    )


def with_evidence(data: ReportData, **values: Any) -> ReportData:
    """The same plan, of which something else is known."""
    return replace(data, evidence=replace(data.evidence, **values))


def with_record(data: ReportData, **values: Any) -> ReportData:
    """With these columns of its row in the ledger."""
    return with_evidence(data, record=replace(data.record, **values))


def with_files(data: ReportData, **values: Any) -> ReportData:
    """With these files."""
    return with_evidence(data, files=replace(data.evidence.files, **values))


def with_throttles(data: ReportData, *entries: ThrottleEntry) -> ReportData:
    """With these throttle settings."""
    counts = Counter(entry.state for entry in entries)
    return replace(with_evidence(data, throttles=counts), throttles=entries)


def _sums(plan: Plan, *states: MoveState) -> dict[MoveState, MoveSums]:
    size = plan.moves[0].bytes_to_copy
    return {
        each: MoveSums(count, count * size, *_in_place(each, count * size))
        for each, count in Counter(states).items()
    }


def move_records(plan: Plan, *states: MoveState) -> dict[TopicPartition, MoveRecord]:
    return {
        item.partition: MoveRecord(
            item.partition,
            state,
            "refused by the controller" if state is MoveState.FAILED else "",
            item.bytes_to_move,
            START,
            item.bytes_to_move if state is MoveState.DONE else None,
        )
        for item, state in zip(plan.moves, states, strict=True)
    }


def throttle(state: ThrottleState, detail: str = "") -> ThrottleEntry:
    return ThrottleEntry(
        plan_id="plan-1",
        cluster_id="c1",
        resource=ConfigResource.cluster_default(),
        key="follower.replication.throttled.rate",
        ours=(str(2 * MB),),
        prior_value="7000000",
        prior_source="DYNAMIC_DEFAULT_BROKER_CONFIG",
        state=state,
        detail=detail,
    )


def carried_out(
    state: PlanState, cause: str, *states: MoveState, problems: Mapping[str, str] | None = None
) -> ReportData:
    """A plan that started, and is in this state 100 s later."""
    dry = dry_run_only()
    plan = dry.plan
    end = START + timedelta(seconds=100)
    samples = tuple(
        ProgressSample(
            *(START + timedelta(seconds=10 * tick), 15 * MB * tick, 150 * MB, tick // 4, 3, 1),
            grown_bytes=0,
            shrunk_bytes=0,
        )
        for tick in range(1, 11)
    )
    verification = {
        "plan_id": plan.plan_id,
        "ok": not problems,
        "partitions": 3,
        "problems": dict(problems or {}),
    }
    request = dict(dry.request) | {"dry_run": False}
    of_plan = record(
        plan,
        state,
        cause,
        request=request,
        started_at=START,
        ended_at=end if state.ended else None,
        approved_by="approver",
    )
    cleared = throttle(ThrottleState.CLEARED)
    evidence = PlanEvidence(
        of_plan,
        _sums(plan, *states),
        samples[-1:],
        dry_runs=(TRIED,),
        throttles={ThrottleState.CLEARED: 1},
        run_over=state.ended,
        files=replace(
            dry.evidence.files, verification=verification if state is PlanState.DONE else None
        ),
    )
    return replace(
        dry,
        written_at=end,
        request=request,
        evidence=evidence,
        moves=move_records(plan, *states),
        throttles=(cleared,),
        samples=samples,
        events=(
            Event(START, "asker", EventKind.PLANNED, "3 moves", "plan-1", "c1"),
            Event(end, "rehome", EventKind.of_plan(state), cause, "plan-1", "c1"),
        ),
    )


def _in_place(state: MoveState, size_bytes: int) -> tuple[int, int]:
    """What is recorded of moves that are done: all is as planned."""
    return (size_bytes, size_bytes) if state is MoveState.DONE else (0, 0)


def good_end() -> ReportData:
    return carried_out(PlanState.DONE, "every move is done", *[MoveState.DONE] * 3)


def failed_end() -> ReportData:
    return carried_out(
        PlanState.FAILED,
        "nothing moved for 600 s",
        MoveState.DONE,
        MoveState.FAILED,
        MoveState.CANCELLED,
    )


def offered(plan_bytes: int, replicas: int) -> dict[str, Any]:
    """Figures of a plan that copies so much: a curve up to it, and what two targets cost."""
    parts = ((0.0, 0.72), (0.1, 0.41), (0.25, 0.22), (0.5, 0.11), (0.75, 0.05), (1.0, 0.019))
    curve = tuple(
        BudgetPoint(
            int(part * plan_bytes),
            int(part * plan_bytes),
            int(part * replicas),
            {"bytes": off, "bytes_out": off / 2},
        )
        for part, off in parts
    )
    prices = (
        TargetPrice("replicas", plan_bytes // 2, 3, "solved"),
        TargetPrice("topic_spread", 10 * MB, 1, "at_least"),
        TargetPrice("leaders", 0, 0, "free"),
    )
    return {"curve": curve, "prices": prices}
