"""What is known of a cluster at one moment: made by one function, and shown by everybody. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rehome.account.clusters.cluster_evidence import ClusterEvidence, WindowAhead
from rehome.account.clusters.cluster_facts import ClusterView, imbalance
from rehome.account.clusters.troubles import Trouble, troubles_of
from rehome.account.known import Fact, Known, NotKnown, Source, Unknown
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding import FindingRecord
from rehome.ledger.base.records import PlanRecord


@dataclass(frozen=True, slots=True)
class ClusterAccount:
    """A cluster at one moment: views of it show these fields, and work out none of their own.

    :param view: as its newest snapshot shows it.
    :param imbalance: of the broker that holds most beyond its share of bytes, as part of that
        share.
    :param plan: that holds the cluster; None = none does.
    :param orphaned: whether that plan runs, and its run sends no heartbeat.
    :param plans: how many there are, by state.
    :param owed: throttle settings of plans that have ended, which may still be set.
    :param findings: open ones, the worst kind first.
    :param troubles: what is not well, the first to do something about first.
    :param window: the next one; None = it has none, or it is not known.
    """

    cluster_id: str
    view: Fact[ClusterView]
    imbalance: Fact[float]
    plan: PlanRecord | None
    orphaned: bool
    plans: Mapping[PlanState, int]
    owed: int
    findings: Fact[tuple[FindingRecord, ...]]
    troubles: tuple[Trouble, ...]
    window: WindowAhead | None


def account_of_cluster(evidence: ClusterEvidence, now: datetime) -> ClusterAccount:
    """What follows from the evidence."""
    return ClusterAccount(
        evidence.cluster_id,
        _as_seen(evidence.view),
        _imbalance(evidence.view),
        evidence.plan,
        evidence.orphaned,
        evidence.plans,
        evidence.owed,
        _findings(evidence),
        troubles_of(evidence, now),
        evidence.window,
    )


def _as_seen(view: ClusterView | None) -> Fact[ClusterView]:
    if view is None:
        return Unknown(NotKnown.NO_SNAPSHOT)
    return Known(view, view.taken_at, Source.SNAPSHOT)


def _imbalance(view: ClusterView | None) -> Fact[float]:
    if view is None:
        return Unknown(NotKnown.NO_SNAPSHOT)
    excess = imbalance(view.brokers)
    if excess is None:
        return Unknown(NotKnown.SIZES_UNREAD)
    return Known(excess, view.taken_at, Source.SNAPSHOT)


def _findings(evidence: ClusterEvidence) -> Fact[tuple[FindingRecord, ...]]:
    if evidence.judged_at is None:
        return Unknown(NotKnown.NOT_JUDGED)
    return Known(evidence.findings, evidence.judged_at, Source.SNAPSHOT)
