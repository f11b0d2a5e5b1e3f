"""Validate-only: everything that could refuse or spoil a plan is asked before anything changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from include.cluster.port import ClusterPort
from include.cluster.snapshot import Snapshot
from include.execution.drift import drift
from include.execution.findings import DryRunResult, Finding, Severity, describe
from include.execution.headroom import disk_findings, inflow_findings
from include.execution.policy import rate_for
from include.execution.reading import Reading, read_cluster
from include.execution.throttle_trial import throttle_findings
from include.execution.verdicts import predict
from include.planning.plan import Plan
from include.planning.request import ReassignmentRequest
from include.settings import Settings

__all__ = ["DryRunResult", "Finding", "Severity", "describe", "dry_run"]

_SHOWN = 50
"""Findings of one check that are spelled out."""


def dry_run(
    plan: Plan,
    request: ReassignmentRequest,
    snapshot: Snapshot,
    cluster: ClusterPort,
    settings: Settings,
    *,
    active_plan: str | None = None,
    rate_bytes_per_s: int | None = None,
) -> DryRunResult:
    """Check a plan against the cluster as it is now, and change nothing.

    :param active_plan: id of the plan that holds the cluster, by the ledger.
    :param rate_bytes_per_s: the throttle to be set; None = what request and settings say.
    :raises ClusterError: the cluster could not be read at all.
    """
    rate = rate_for(request, settings) if rate_bytes_per_s is None else rate_bytes_per_s
    now = read_cluster(plan, cluster)
    checks: dict[str, Callable[[], Iterator[Finding]]] = {
        "active plan": lambda: _active(plan, active_plan),
        "rights": lambda: _rights(now),
        "brokers": lambda: _brokers(plan, now),
        "drift": lambda: _drift(plan, cluster),
        "foreign reassignments": lambda: _foreign(plan, request, now),
        "verdict": lambda: _verdicts(plan, now),
        "throttle": lambda: throttle_findings(plan, cluster, rate),
        "inflow": lambda: inflow_findings(plan, request, snapshot, now, rate),
        "disk": lambda: disk_findings(plan, now, settings.min_free_disk_fraction),
    }
    findings: list[Finding] = []
    for check in checks.values():
        found = list(check())
        findings += found[:_SHOWN]
        if len(found) > _SHOWN:
            more = f"{len(found) - _SHOWN} more of the same kind"
            last = found[-1]
            findings.append(Finding(last.severity, last.check, "and", more))
    return DryRunResult(plan.plan_id, plan.plan_hash, tuple(checks), tuple(findings))


def _active(plan: Plan, active_plan: str | None) -> Iterator[Finding]:
    if active_plan is not None and active_plan != plan.plan_id:
        yield Finding(
            Severity.ERROR,
            "active plan",
            active_plan,
            "is active on this cluster",
            "Wait until it has ended, or cancel it.",
        )


def _rights(now: Reading) -> Iterator[Finding]:
    for right in now.missing_rights:
        yield Finding(
            Severity.ERROR,
            "rights",
            right,
            "this principal lacks the right",
            "Grant it (docs/security.md).",
            code=29 if right.startswith("Topic") else 31,
        )


def _brokers(plan: Plan, now: Reading) -> Iterator[Finding]:
    """The controller accepts a dead target, and the copy would wait for it for ever."""
    for move in plan.moves:
        dead = sorted(set(move.target) - now.cluster.brokers.keys())
        if dead:
            yield Finding(
                Severity.ERROR,
                "brokers",
                str(move.partition),
                f"its target names brokers that are not alive: {dead}",
                "Bring them back, or plan without them.",
            )
    for broker, error in now.log_dirs.missing.items():
        yield Finding(
            Severity.ERROR,
            "brokers",
            f"broker {broker}",
            f"did not answer: {error}",
            "Find out why, then run again.",
            code=error.code,
        )


def _drift(plan: Plan, cluster: ClusterPort) -> Iterator[Finding]:
    for changed in drift(plan, cluster):
        yield Finding(
            Severity.ERROR,
            "drift",
            changed.split(" ", 1)[0],
            f"changed since the snapshot: {changed}",
            "Trigger again: a new plan is made from what is there now.",
        )


def _foreign(plan: Plan, request: ReassignmentRequest, now: Reading) -> Iterator[Finding]:
    for partition, entry in sorted(now.ongoing.items()):
        if partition in plan.by_partition:
            yield Finding(
                Severity.ERROR,
                "foreign reassignments",
                str(partition),
                f"somebody else is reassigning it to {list(entry.target)}",
                "Wait for it to end; it will not be superseded.",
                code=60,
            )
        elif not request.additional:
            yield Finding(
                Severity.ERROR,
                "foreign reassignments",
                str(partition),
                f"a reassignment to {list(entry.target)} is in flight",
                "Wait for it to end, or allow it with the parameter additional.",
                code=60,
            )


def _verdicts(plan: Plan, now: Reading) -> Iterator[Finding]:
    targets = {move.partition: move.target for move in plan.moves}
    facts = now.controller_facts(allow=plan.allow_replication_factor_change)
    for partition, error in predict(targets, facts).items():
        if error is not None:
            yield Finding(
                Severity.ERROR,
                "verdict",
                str(partition),
                f"the controller would refuse it: {error.name}: {error.message}",
                "Correct the assignment.",
                code=error.code,
            )
