"""The response to findings: nothing, a proposal, or healing. Pure: no I/O, no clock."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from include.domain.request.request import Action
from include.domain.run.findings import Severity
from include.watching.finding import FindingRecord
from include.watching.kinds import FindingKind, WatchPolicy
from include.watching.remedy import action_of, remedy
from include.watching.rules import WatchRules

DAY = timedelta(days=1)


class Wait(enum.Enum):
    """Why nothing is started now."""

    PLAN_ACTIVE = "plan_active"  # or one is about to be made
    GATE_REFUSES = "gate_refuses"
    RETURNED = "returned"  # the newest snapshot does not show it
    BROKER_AWAY = "broker_away"  # one may be restarting: only what is offline is repaired
    HEALING_STOPPED = "healing_stopped"  # the circuit breaker
    NOT_ALLOWED = "not_allowed"  # the connection's policy refuses it now
    OUTSIDE_WINDOW = "outside_window"  # the cluster has windows, and none is open
    BUDGET_TOO_SMALL = "budget_too_small"  # it pays for nothing of what is left


@dataclass(frozen=True, slots=True)
class Heal:
    """One start of healing; ``failed`` if that is known."""

    started_at: datetime
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts on which the response depends: from the ledger, the clusters file and the connection.

    :param active_plan: id of the plan that is active on the cluster; None = none.
    :param pending: a run that was started to heal a finding has not ended.
    :param proposed: a run that proposes a plan has not ended; it usually waits for approval.
    :param gate_refuses: the gate refuses the newest snapshot.
    :param away: a broker is not alive, and its finding has not opened yet.
    :param answered: findings for which a run was started since they opened, unless it failed or the
        budget left a part.
    :param unpaid: those of them whose remaining parts all exceed the budget.
    :param outside_window: the cluster has windows, and none is open: nothing is healed.
    :param window_end: end of the open window: healing must have nothing in flight then.
    :param refused: actions that the connection's policy does not allow now.
    :param targets: of the cluster: its defaults for the parameters of runs.
    """

    active_plan: str | None = None
    pending: bool = False
    proposed: bool = False
    gate_refuses: bool = False
    away: bool = False
    heals: Sequence[Heal] = ()
    answered: Collection[tuple[FindingKind, str, datetime]] = frozenset()
    unpaid: Collection[tuple[FindingKind, str, datetime]] = frozenset()
    outside_window: bool = False
    window_end: datetime | None = None
    refused: Collection[str] = frozenset()
    targets: Mapping[str, Any] = field(default_factory=dict)


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
    """At most one start, and for other findings the reason to wait.

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
        policy = rules.policy_of(finding.kind, finding.subject)
        if not finding.open or finding.opened_at is None or policy is WatchPolicy.WATCH:
            continue
        this = (finding.kind, finding.subject, finding.opened_at)
        if this in facts.unpaid:
            waits[finding.kind, finding.subject] = Wait.BUDGET_TOO_SMALL
        if this in facts.answered:
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
        params = remedy(finding, policy, rules, facts.targets)
        if policy is WatchPolicy.HEAL and facts.window_end is not None:
            params["window_end"] = facts.window_end.isoformat()
        start = Start(finding, policy, params, deadline)
    return Response(start, waits, stopped)


def _wait(
    finding: FindingRecord, policy: WatchPolicy, facts: Facts, *, stopped: bool
) -> Wait | None:
    if finding.clean:
        return Wait.RETURNED
    urgent = policy is WatchPolicy.HEAL and finding.kind.severity is Severity.ERROR
    if facts.active_plan is not None or facts.pending or (facts.proposed and not urgent):
        return Wait.PLAN_ACTIVE
    if facts.gate_refuses:
        return Wait.GATE_REFUSES
    action = action_of(finding.kind, finding.subject)
    if facts.away and action is not Action.FIX_OFFLINE_REPLICAS:
        return Wait.BROKER_AWAY
    if action.value in facts.refused:
        return Wait.NOT_ALLOWED
    if policy is not WatchPolicy.HEAL:
        return None
    if stopped:
        return Wait.HEALING_STOPPED
    return Wait.OUTSIDE_WINDOW if facts.outside_window else None


def _stopped(heals: Sequence[Heal], rules: WatchRules, now: datetime) -> bool:
    lately = [heal for heal in heals if now - heal.started_at < DAY]
    failed = sum(heal.failed for heal in lately)
    return len(lately) >= rules.heals_a_day or failed >= rules.failures_to_stop
