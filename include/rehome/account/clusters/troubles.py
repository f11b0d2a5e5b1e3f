"""What is not well with a cluster, in the order of what to do about it. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from rehome.account.clusters.cluster_evidence import ClusterEvidence
from rehome.account.clusters.cluster_facts import ClusterView, Named
from rehome.account.known import Source
from rehome.execution.access.policy_refusals import PolicyDifference


class TroubleKind(enum.StrEnum):
    """What is not well, in the order of what to do about it."""

    WRONG_CONNECTION = "wrong_connection"
    """A connection leads to another cluster than it is bound to: nothing starts through it."""
    NO_LEADER = "no_leader"
    """Partitions had no leader."""
    BROKER_DEAD = "broker_dead"
    """A broker was not alive."""
    BROKER_SILENT = "broker_silent"
    """A broker was alive, and has answered in part or not at all."""
    PLAN = "plan"
    """The plan that holds the cluster is kept from going on as it should."""
    OWED = "owed"
    """Throttle settings of plans that have ended may still be set."""
    FINDINGS = "findings"
    """Watching has open findings."""
    UNDER_REPLICATED = "under_replicated"
    """Partitions had replicas out of the ISR."""
    FOREIGN_REASSIGNMENTS = "foreign_reassignments"
    """Other clients reassigned partitions."""
    FOREIGN_THROTTLES = "foreign_throttles"
    """Other clients had set throttles."""
    NOT_SENT = "not_sent"
    """An open alert has not reached every channel."""
    POLICIES_DIFFER = "policies_differ"
    """Connections to the cluster do not say the same of approval and pace."""
    HIDDEN_TOPICS = "hidden_topics"
    """There are topics that the connection may not describe."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that is not well.

    :param at: when that was so; aware UTC.
    :param count: how many things it is about: partitions, settings, findings, problems of a plan.
    :param names: the first of them; of a broker, its id; of a connection, its name; of a plan, its
        id; of an alert, the channels.
    :param said: words of others: of a broker, a channel, a check of settings; "" = none.
    :param alert: the kind of the alert, of ``NOT_SENT``; ``differs``: what policies differ in.
    """

    kind: TroubleKind
    source: Source
    at: datetime
    count: int = 1
    names: tuple[str, ...] = ()
    said: str = ""
    alert: str = ""
    differs: PolicyDifference | None = None


def troubles_of(evidence: ClusterEvidence, now: datetime) -> tuple[Trouble, ...]:
    """All of them, the first to do something about first."""
    troubles = list(_of_ledger(evidence, now))
    if evidence.view is not None:
        troubles += _of_snapshot(evidence.view)
    order = list(TroubleKind)
    return tuple(sorted(troubles, key=lambda each: order.index(each.kind)))


def _of_ledger(evidence: ClusterEvidence, now: datetime) -> Iterator[Trouble]:
    def of_ledger(kind: TroubleKind, *names: str, count: int = 1, said: str = "") -> Trouble:
        return Trouble(kind, Source.LEDGER, now, count, names, said)

    for each in evidence.wrong_connections:
        yield of_ledger(TroubleKind.WRONG_CONNECTION, each.connection, said=each.why)
    if evidence.plan is not None and evidence.plan_hurts:
        yield of_ledger(TroubleKind.PLAN, evidence.plan.plan_id, count=len(evidence.plan_hurts))
    if evidence.owed:
        yield of_ledger(TroubleKind.OWED, count=evidence.owed)
    if evidence.findings:
        yield of_ledger(TroubleKind.FINDINGS, count=len(evidence.findings))
    for alert in evidence.alerts:
        if alert.failed_channels and alert.closed_at is None:
            why = next(iter(alert.failed_channels.values()))
            channels = tuple(alert.failed_channels)
            yield Trouble(
                *(TroubleKind.NOT_SENT, Source.LEDGER, now, 1, channels, why), alert.kind.value
            )
    for difference in evidence.policy_differences:
        yield replace(of_ledger(TroubleKind.POLICIES_DIFFER), differs=difference)


def _of_snapshot(view: ClusterView) -> Iterator[Trouble]:
    def of_snapshot(kind: TroubleKind, names: Named) -> Iterator[Trouble]:
        if names.count:
            yield Trouble(kind, Source.SNAPSHOT, view.taken_at, names.count, names.first)

    for broker in view.brokers:
        if broker.problem:
            kind = TroubleKind.BROKER_SILENT if broker.live else TroubleKind.BROKER_DEAD
            names = (str(broker.broker),)
            yield Trouble(kind, Source.SNAPSHOT, view.taken_at, 1, names, broker.problem)
    yield from of_snapshot(TroubleKind.NO_LEADER, view.offline)
    yield from of_snapshot(TroubleKind.UNDER_REPLICATED, view.under_replicated)
    yield from of_snapshot(TroubleKind.FOREIGN_REASSIGNMENTS, view.reassigning)
    yield from of_snapshot(TroubleKind.FOREIGN_THROTTLES, view.foreign_throttles)
    yield from of_snapshot(TroubleKind.HIDDEN_TOPICS, Named(view.hidden_topics, ()))
