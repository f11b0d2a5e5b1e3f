"""Alerts of findings of watched clusters. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from rehome.alerts.alert import Alert
from rehome.alerts.kinds import AlertKey, AlertKind
from rehome.clusters.watch_rules import WatchRules
from rehome.domain.actions import Action
from rehome.domain.run.watched.finding import FindingRecord
from rehome.domain.run.watched.finding_kinds import REMEDIED, FindingKind, WatchPolicy
from rehome.domain.text import count_text
from rehome.ledger.base.alert_records import AlertRecord
from rehome.watching.finding_text import text_of, title_of
from rehome.watching.remedy import action_of, policy_for
from rehome.watching.respond import NotNow

CAUSES: Mapping[FindingKind, frozenset[FindingKind]] = {
    FindingKind.UNDER_REPLICATED: frozenset({FindingKind.DEAD_BROKER, FindingKind.OFFLINE_LOG_DIR})
}
"""What explains a finding: while one of these is open, it alone raises an alert."""
_NEXT_STEPS: Mapping[FindingKind, str] = {
    FindingKind.UNDER_MIN_ISR: "Producers with acks=all are refused: check the brokers that hold "
    "the replicas out of sync.",
    FindingKind.FLAPPING_BROKER: "Read its logs, and those of what restarts it. While it keeps "
    "coming back nothing is copied off it, and while it is away other findings wait.",
    FindingKind.WRONG_CLOCK: "Compare the clocks of the machines that run tasks. Nothing is found, "
    "planned or healed by such snapshots.",
    FindingKind.UNDER_REPLICATED: "Check the brokers that hold the replicas out of sync.",
    FindingKind.SLOW_BROKER: "Check its disks, its network and its logs.",
    FindingKind.SLOW_LOG_DIR: "Check the disk; evacuate_log_dirs empties it.",
    FindingKind.REMOVED_RULE: "Remove it: the next version refuses it.",
    FindingKind.FOREIGN_REASSIGNMENT: "Rehome leaves it alone. Plans wait for it, unless they are "
    "allowed to run at the same time (additional).",
}
_ON_SITE: Mapping[FindingKind, str] = {
    FindingKind.OFFLINE_LOG_DIR: "The finding stays open until the disk is free, or replaced, and "
    "the broker is restarted: that is for a person.",
}
"""What no plan does."""


def with_own_alert(*, planned_through: bool) -> frozenset[FindingKind]:
    """Kinds of findings whose cause raises an alert of its own on a cluster.

    :param planned_through: a plan was made through the cluster's connection: the sweep opens no
        other, and raises ``foreign_leftovers``.
    """
    kinds = {FindingKind.WRONG_CONNECTION, FindingKind.DISK_FULL_SOON}
    if planned_through:
        kinds.add(FindingKind.LEFTOVER_THROTTLE)
    return frozenset(kinds)


def of_findings(
    findings: Iterable[FindingRecord],
    raised: Iterable[AlertRecord],
    connection: str,
    rules: WatchRules,
    own_alert: Collection[FindingKind],
) -> tuple[list[Alert], list[AlertKey]]:
    """An alert for each open finding that no other alert is about; and which are over.

    :param raised: alerts of this kind about the cluster that are open.
    :param own_alert: kinds that have an alert of their own on this cluster.
    """
    shown = list(findings)
    there = {each.kind for each in shown}
    alerts = [
        _alert(each, connection, rules)
        for each in shown
        if each.kind not in own_alert and not there & CAUSES.get(each.kind, frozenset())
    ]
    lasting = {subject_of(each) for each in shown}
    return alerts, [(each.kind, each.subject) for each in raised if each.subject not in lasting]


def healing_stopped(
    cluster_id: str, connection: str, rules: WatchRules, waits: Collection[NotNow]
) -> Alert | None:
    """Of heals that wait for a person: the circuit breaker is open, or the DAG is paused that
    carries them out. None = none does.
    """
    if NotNow.HEALING_STOPPED in waits:
        started = count_text(rules.heals_a_day, "run was", "runs were")
        text = f"Nothing more is healed: within a day, {started} started."
        step = (
            "Read why they failed, or why findings come back. Healing goes on when the oldest of "
            "them is a day old."
        )
    elif NotNow.WINDOW_DAG_PAUSED in waits:
        text = "Nothing is healed: rebalance_in_window carries heals out, and is paused in Airflow."
        step = (
            "Unpause rebalance_in_window of this cluster, with own_plan false if its windows are "
            "to make no plan of their own; or set the policy to propose or watch."
        )
    else:
        return None
    return Alert(
        AlertKind.HEALING_STOPPED,
        cluster_id,
        text,
        step,
        cluster_id=cluster_id,
        connection=connection,
    )


def subject_of(finding: FindingRecord) -> str:
    """What an alert of a finding is about: no two findings share it."""
    return " ".join([finding.cluster_id, finding.kind.value, finding.subject]).strip()


def _alert(finding: FindingRecord, connection: str, rules: WatchRules) -> Alert:
    return Alert(
        AlertKind.FINDING,
        subject_of(finding),
        f"{title_of(finding.kind)}. {text_of(finding)}",
        next_step(finding, policy_for(finding, rules)),
        cluster_id=finding.cluster_id,
        connection=connection,
        graded=finding.kind.severity,
        facts={"finding": finding.kind.value, "subject": finding.subject, **finding.facts},
    )


def next_step(finding: FindingRecord, policy: WatchPolicy) -> str:
    """What a person should do, or what happens if no one does anything."""
    kind = finding.kind
    if finding.facts.get("domains_away"):
        return (
            "Bring the brokers back: they have their data. If they are lost, trigger "
            f"reassign_partitions with action {action_of(kind)} by hand."
        )
    if kind not in REMEDIED:
        return _NEXT_STEPS.get(kind, "Read the cluster's page.")
    return f"{_by_policy(action_of(kind), policy)} {_ON_SITE.get(kind, '')}".rstrip()


def _by_policy(action: Action, policy: WatchPolicy) -> str:
    why_not = "Why none is started, or not yet, is in the log of watch_clusters."
    match policy:
        case WatchPolicy.WATCH:
            return f"Find out why; reassign_partitions with action {action} remedies it."
        case WatchPolicy.PROPOSE:
            run = f"the run of reassign_partitions with action {action}"
            return f"Answer {run} that asks for approval. {why_not}"
        case WatchPolicy.HEAL:
            return f"A run of rebalance_in_window with action {action} heals it. {why_not}"


def kinds_counted(findings: Sequence[FindingRecord]) -> dict[tuple[str, str], int]:
    """How many of each kind are open, by kind and severity; every kind is there."""
    counted = Counter(each.kind for each in findings)
    return {(kind.value, kind.severity.value): counted[kind] for kind in FindingKind}
