"""What is done about findings: nothing, a proposal, or healing. Pure: no I/O, no clock."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from include.domain.request.request import Action
from include.watching.finding import FindingRecord
from include.watching.kinds import FindingKind, WatchPolicy
from include.watching.rules import WatchRules

DAY = timedelta(days=1)


class Wait(enum.Enum):
    """Why nothing is started now."""

    PLAN_ACTIVE = "plan_active"
    GATE_REFUSES = "gate_refuses"
    RETURNED = "returned"  # the newest snapshot does not show it
    HEALING_STOPPED = "healing_stopped"  # the circuit breaker


@dataclass(frozen=True, slots=True)
class Heal:
    """One start of healing; ``failed`` as far as it is known."""

    started_at: datetime
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What the ledger knows when findings are answered.

    :param active_plan: id of the plan that holds the cluster; None = none does.
    :param gate_refuses: the gate refuses the newest snapshot.
    :param answered: findings that something was started for since they opened.
    """

    active_plan: str | None = None
    gate_refuses: bool = False
    heals: Sequence[Heal] = ()
    answered: Collection[tuple[FindingKind, str, datetime]] = frozenset()


@dataclass(frozen=True, slots=True)
class Start:
    """A run of reassign_partitions to start.

    :param params: of the run; ``deadline``: of a proposal's approval, None = it is carried out.
    """

    finding: FindingRecord
    policy: WatchPolicy
    params: Mapping[str, Any]
    deadline: datetime | None


@dataclass(frozen=True, slots=True)
class Response:
    """At most one start; of the others, why they wait.

    :param healing_stopped: the circuit breaker is open: people are alerted.
    """

    start: Start | None = None
    waits: Mapping[tuple[FindingKind, str], Wait] = field(default_factory=dict)
    healing_stopped: bool = False


def respond(
    findings: Sequence[FindingRecord], facts: Facts, rules: WatchRules, now: datetime
) -> Response:
    """What to start for open findings, the worst first; one at a time."""
    stopped = _stopped(facts.heals, rules, now)
    waits: dict[tuple[FindingKind, str], Wait] = {}
    start: Start | None = None
    for finding in sorted(findings, key=lambda f: (list(FindingKind).index(f.kind), f.subject)):
        policy = rules.policy_of(finding.kind)
        if not finding.open or finding.opened_at is None or policy is WatchPolicy.WATCH:
            continue
        if (finding.kind, finding.subject, finding.opened_at) in facts.answered:
            continue
        wait = _wait(finding, policy, facts, stopped=stopped)
        if wait is None and start is not None:
            wait = Wait.PLAN_ACTIVE
        if wait is not None:
            waits[finding.kind, finding.subject] = wait
            continue
        deadline = None
        if policy is WatchPolicy.PROPOSE:
            deadline = now + timedelta(seconds=rules.approval_s)
        start = Start(finding, policy, _params(finding, policy, rules), deadline)
    return Response(start, waits, stopped)


def _wait(
    finding: FindingRecord, policy: WatchPolicy, facts: Facts, *, stopped: bool
) -> Wait | None:
    if finding.clean:
        return Wait.RETURNED
    if facts.active_plan is not None:
        return Wait.PLAN_ACTIVE
    if facts.gate_refuses:
        return Wait.GATE_REFUSES
    return Wait.HEALING_STOPPED if stopped and policy is WatchPolicy.HEAL else None


def _stopped(heals: Sequence[Heal], rules: WatchRules, now: datetime) -> bool:
    lately = [heal for heal in heals if now - heal.started_at < DAY]
    failed = sum(heal.failed for heal in lately)
    return len(lately) >= rules.heals_a_day or failed >= rules.failures_to_stop


def _params(finding: FindingRecord, policy: WatchPolicy, rules: WatchRules) -> dict[str, Any]:
    """Of the run that remedies a finding, within the rules' throttle and budget."""
    params: dict[str, Any] = {
        "throttle": "auto",
        "throttle_max": rules.largest_throttle,
        "approval": policy is WatchPolicy.PROPOSE,
    }
    match finding.kind:
        case FindingKind.DEAD_BROKER:
            params |= {"action": Action.FIX_OFFLINE_REPLICAS, "brokers": [_broker(finding)]}
        case FindingKind.OFFLINE_LOG_DIR:
            params |= {"action": Action.FIX_OFFLINE_REPLICAS, "brokers": [_broker(finding)]}
        case FindingKind.EMPTY_BROKER:
            params |= {"action": Action.EXPAND, "brokers": [_broker(finding)]}
        case FindingKind.RACK_VIOLATION:
            params |= {"action": Action.REPAIR_RACKS}
        case FindingKind.REPLICATION_FACTOR:
            factor = finding.facts["replication_factor"]
            topics = [finding.subject]
            params |= {"action": Action.SET_REPLICATION_FACTOR, "topics": topics}
            params["replication_factor"] = factor
        case FindingKind.LEADER_SKEW:
            params |= {"action": Action.BALANCE_LEADERS}
        case _:
            params |= {"action": Action.REBALANCE}
            if rules.budget_bytes is not None:
                params["budget_bytes"] = rules.budget_bytes
    return {**params, "action": params["action"].value}


def _broker(finding: FindingRecord) -> int:
    return int(finding.subject.split()[1])
