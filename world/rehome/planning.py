"""From a snapshot to a plan that may run: the real planner and the real dry run, in process."""

from __future__ import annotations

from typing import Any

from include.cluster.interface.port import ClusterPort
from include.cluster.snapshot.take import take_snapshot
from include.domain.clock import utc_now
from include.domain.plan.plan import Plan
from include.domain.request.parse_request import parse_request
from include.domain.request.request import Action, ReassignmentRequest
from include.domain.run.states import PlanState
from include.execution.completion.drained import Drained, wait_until_drained
from include.execution.completion.follow_up import follow_up_request, why_no_follow_up
from include.execution.dry_run.dry_run import dry_run
from include.execution.throttle.foreign import set_by_plans
from include.planning.options import PlanOptions
from include.planning.planner import make_plan
from include.planning.rollback import rollback_plan
from include.settings import Settings
from world.rehome.installation import Bounds, Installation

SETTINGS = Settings()


def request_for(bounds: Bounds, **params: Any) -> ReassignmentRequest:
    """A request with these parameters, within the bounds of a run."""
    pace: dict[str, Any] = {
        "throttle": str(bounds.rate_bytes_per_s),
        "max_moves_per_broker": bounds.max_moves_per_broker,
        "window_end": None if bounds.window_end is None else bounds.window_end.isoformat(),
    }
    if bounds.unthrottled:
        pace |= {"throttle": "", "unthrottled": True}
    return parse_request({**pace, **params})


def drain_plan(plan_id: str, request: ReassignmentRequest, cluster: ClusterPort) -> Plan:
    """A plan of the real planner, of the cluster as it is now."""
    snapshot = take_snapshot(cluster, utc_now())
    return make_plan(snapshot, request, PlanOptions(plan_id))


def way_back(plan_id: str, done: Plan, cluster: ClusterPort) -> Plan:
    """A plan that takes another one back."""
    snapshot = take_snapshot(cluster, utc_now())
    return rollback_plan(done, snapshot, PlanOptions(plan_id))


def try_out(site: Installation, plan_id: str) -> bool:
    """As ``DryRunOperator``: what the dry run refuses has failed, and changes nothing."""
    ledger, plan, request = site.ledger(), site.plans[plan_id], site.requests[plan_id]
    record = ledger.plan(plan_id)
    active = ledger.active_plan(plan.cluster_id)
    cluster = site.cluster_of(record)
    result = dry_run(
        plan,
        request,
        take_snapshot(cluster, utc_now()),
        cluster,
        SETTINGS,
        active_plan=active.plan_id if active else None,
        rate_bytes_per_s=record.requested_rate_bytes_per_s,
        timings=ledger.run_timings(),
        ours=set_by_plans(ledger, plan.cluster_id),
    )
    if not result.ok:
        ledger.transition(plan_id, PlanState.FAILED, "refused by the dry run")
    return result.ok


def is_drain(site: Installation, plan_id: str) -> bool:
    """Whether a plan empties brokers."""
    asked = site.requests.get(plan_id)
    return asked is not None and asked.action is Action.DRAIN


def look_whether_drained(site: Installation, plan_id: str) -> tuple[Drained, Plan | None]:
    """What is on the brokers still, and the plan that moves it away: as the task ``drained``."""
    ledger, plan = site.ledger(), site.plans[plan_id]
    record, request = ledger.plan(plan_id), site.requests[plan_id]
    cluster = site.cluster_of(record)
    found = wait_until_drained(cluster, request)
    if not found.left or why_no_follow_up(found, request, plan, utc_now()) is not None:
        return found, None
    again = follow_up_request(request, plan, record.requested_rate_bytes_per_s)
    return found, drain_plan(f"{plan_id}-follow_up", again, cluster)
