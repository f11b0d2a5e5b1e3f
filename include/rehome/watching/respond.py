"""The response to findings: nothing, a proposal, or healing. Pure: no I/O, no clock."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from rehome.clusters.watch_rules import WatchRules
from rehome.domain.actions import Action
from rehome.domain.kafka import BrokerId
from rehome.domain.run.findings import Severity
from rehome.domain.run.watched.finding import FindingRecord
from rehome.domain.run.watched.finding_kinds import FindingKind, WatchPolicy
from rehome.watching.last_attempt import LastAttempt
from rehome.watching.remedy import action_of, policy_for, remedy

DAY = timedelta(days=1)


class NotNow(enum.Enum):
    """Why nothing is started now."""

    PLAN_ACTIVE = "plan_active"  # or one is about to be made
    GATE_REFUSES = "gate_refuses"
    RETURNED = "returned"  # the newest snapshot does not show it
    BROKER_AWAY = "broker_away"  # one may be restarting: only what is offline is repaired
    DOMAIN_AWAY = "domain_away"  # a rack, a data centre or many brokers, rather than one
    HEALING_STOPPED = "healing_stopped"  # the circuit breaker
    NOT_ALLOWED = "not_allowed"  # the connection's policy refuses it now
    WINDOW_DAG_PAUSED = "window_dag_paused"  # in Airflow: it carries heals out
    PROPOSED = "proposed"  # a proposal that is as severe waits for its answer
    ATTEMPTED = "attempted"  # by the last attempt, none is made now


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts on which the response depends: from the ledger, the clusters file and the connection.

    :param active_plan: id of the plan that is active on the cluster; None = none.
    :param stuck: that plan is paused, and no move of it could end in its last window: while one is
        open, it makes way for a heal of what is worst. A heal that is handed over ends no plan.
    :param pending: a run that was started to heal a finding has not ended.
    :param proposed: severities of findings for which a run proposes a plan and has not ended; it
        usually waits for approval.
    :param heals: when those of the last day began that have changed something, or may.
    :param gate_refuses: the gate refuses the newest snapshot.
    :param away: a broker is not alive, and its finding has not opened yet.
    :param attempts: the last one for each kind and subject.
    :param by_person: a person has asked to try again.
    :param in_window: a window of the cluster is open; one without windows is always open.
    :param has_question: a run of its windows' DAG waits for a person's answer: others of it wait
        behind.
    :param window_closes: of the window that is open; None = none is, or it has none.
    :param window_began: the window's own run has begun by now, and has taken up what it could.
    :param window_dag_paused: the DAG of its windows is paused in Airflow.
    :param refused_actions: actions that the connection's policy does not allow now.
    :param approval: the connection's policy, or a target, has a person approve every plan.
    :param targets: of the cluster: its defaults for the parameters of runs.
    :param drained: live brokers that a plan has emptied: nothing that is started fills them.
    :param domains_away: what is away as a whole, as people name it.
    """

    active_plan: str | None = None
    stuck: bool = False
    pending: bool = False
    proposed: Collection[Severity] = frozenset()
    gate_refuses: bool = False
    away: bool = False
    heals: Sequence[datetime] = ()
    attempts: Mapping[tuple[FindingKind, str], LastAttempt] = field(default_factory=dict)
    by_person: bool = False
    in_window: bool = True
    has_question: bool = False
    window_closes: datetime | None = None
    window_began: bool = True
    window_dag_paused: bool = False
    refused_actions: Collection[str] = frozenset()
    approval: bool = False
    targets: Mapping[str, Any] = field(default_factory=dict)
    drained: Collection[BrokerId] = frozenset()
    domains_away: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Start:
    """A run to start.

    :param params: of the run; ``deadline``: of a proposal's approval, None = no person is asked.
    :param in_window: the run is one of the cluster's window, and carries the plan out. Else it is
        one of reassign_partitions, which asks a person, hands its plan over to the next window, or
        carries it out beside a run of the window that waits for a person.
    """

    finding: FindingRecord
    policy: WatchPolicy
    params: Mapping[str, Any]
    deadline: datetime | None
    in_window: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """At most one start, and for other findings the reason to wait."""

    start: Start | None = None
    waits: Mapping[tuple[FindingKind, str], NotNow] = field(default_factory=dict)


def respond(
    findings: Sequence[FindingRecord], facts: Facts, rules: WatchRules, now: datetime
) -> Response:
    """What to start for open findings, the worst first; one at a time."""
    stopped = sum(now - at < DAY for at in facts.heals) >= rules.heals_a_day
    waits: dict[tuple[FindingKind, str], NotNow] = {}
    start: Start | None = None
    for finding in sorted(findings, key=lambda f: (list(FindingKind).index(f.kind), f.subject)):
        policy = _policy(finding, facts, rules)
        if not finding.open or finding.opened_at is None or policy is WatchPolicy.WATCH:
            continue
        wait = _wait(finding, policy, facts, now, stopped=stopped)
        if wait is None and start is not None:
            wait = NotNow.PLAN_ACTIVE
        if wait is not None:
            waits[finding.key] = wait
            continue
        params = remedy(finding, policy, rules, facts.targets, facts.drained)
        if policy is WatchPolicy.PROPOSE:
            deadline = now + timedelta(seconds=rules.approval_s)
            start = Start(finding, policy, params, deadline)
        elif facts.in_window and facts.has_question and makes_others_way(finding.kind, policy):
            start = Start(finding, policy, params | _until(facts.window_closes), None)
        elif facts.in_window:
            start = Start(finding, policy, params, None, in_window=True)
        else:
            start = Start(finding, policy, {**params, "dry_run": True}, None)
    return Response(start, waits)


def _policy(finding: FindingRecord, facts: Facts, rules: WatchRules) -> WatchPolicy:
    """What follows: a heal that a person has to approve is a proposal, with its deadline."""
    policy = policy_for(finding, rules)
    asks = policy is WatchPolicy.HEAL and facts.approval
    return WatchPolicy.PROPOSE if asks else policy


def _wait(
    finding: FindingRecord,
    policy: WatchPolicy,
    facts: Facts,
    now: datetime,
    *,
    stopped: bool,
) -> NotNow | None:
    if finding.clean:
        return NotNow.RETURNED
    last = facts.attempts.get(finding.key)
    began = facts.in_window and facts.window_began
    if last is not None and last.holds(
        finding.opened_at, now, by_person=facts.by_person, window_began=began
    ):
        return NotNow.ATTEMPTED
    makes_way = facts.stuck and facts.in_window and makes_others_way(finding.kind, policy)
    if facts.pending or (facts.active_plan is not None and not makes_way):
        return NotNow.PLAN_ACTIVE
    if _behind_a_proposal(finding.kind.severity, policy, facts):
        return NotNow.PROPOSED
    if facts.gate_refuses:
        return NotNow.GATE_REFUSES
    action = action_of(finding.kind)
    if facts.away and action is not Action.FIX_OFFLINE_REPLICAS:
        return NotNow.BROKER_AWAY
    if action.value in facts.refused_actions:
        return NotNow.NOT_ALLOWED
    return _wait_to_heal(facts, stopped=stopped) if policy is WatchPolicy.HEAL else None


def _until(window_closes: datetime | None) -> dict[str, str]:
    """What keeps a run of another DAG within the window."""
    return {} if window_closes is None else {"window_end": window_closes.isoformat()}


def makes_others_way(kind: FindingKind, policy: WatchPolicy) -> bool:
    """Whether a plan that gets nowhere makes way for what is started."""
    return policy is WatchPolicy.HEAL and kind.severity is Severity.ERROR


def _wait_to_heal(facts: Facts, *, stopped: bool) -> NotNow | None:
    if facts.domains_away:
        return NotNow.DOMAIN_AWAY
    if stopped:
        return NotNow.HEALING_STOPPED
    return NotNow.WINDOW_DAG_PAUSED if facts.window_dag_paused else None


def _behind_a_proposal(severity: Severity, policy: WatchPolicy, facts: Facts) -> bool:
    """Whether a proposal waits that is at least as severe. What is started meanwhile may change
    partitions of the proposed plan, so that its approval comes to nothing: that is worth it for
    what is worse alone, and for data at risk in any case.
    """
    if policy is WatchPolicy.HEAL and severity is Severity.ERROR:
        return False
    worst_first = list(Severity)
    return any(worst_first.index(each) <= worst_first.index(severity) for each in facts.proposed)
