"""What the account of a cluster goes by: its newest snapshot, and what the ledger has of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from rehome.account.clusters.cluster_facts import ClusterView
from rehome.account.evidence import read_hurting
from rehome.account.hurts import hurts_of
from rehome.domain.run.causes.hurts import Hurt
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding import FindingRecord
from rehome.execution.access import cluster_policy
from rehome.execution.access.lease import is_orphaned
from rehome.execution.access.policy_refusals import PolicyDifference
from rehome.ledger.base.alert_records import AlertRecord
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger


@dataclass(frozen=True, slots=True)
class WindowAhead:
    """The next maintenance window; aware UTC times.

    :param paused: whether its DAG is, so that it does not open.
    """

    opens_at: datetime
    closes_at: datetime
    paused: bool


@dataclass(frozen=True, slots=True)
class WrongConnection:
    """A connection through which nothing acts, and why: a sentence without a full stop."""

    connection: str
    why: str


@dataclass(frozen=True, slots=True)
class ClusterEvidence:
    """Of one moment.

    :param plan: that holds the cluster; None = none does.
    :param plan_hurts: what keeps it from going on as it should.
    :param orphaned: whether it runs, and its run sends no heartbeat.
    :param plans: how many there are, by state.
    :param owed: throttle settings of plans that have ended, which may still be set.
    :param judged_at: when the newest snapshot was taken that watching has judged; None = none was.
    :param findings: open ones, the worst kind first.
    :param alerts: open ones that are about the cluster.
    :param policy_differences: where connections to it do not say the same.
    :param view: as its newest snapshot shows it; None = there is none, or it was not read.
    :param wrong_connections: that lead to it, or are bound to it.
    :param window: the next one; None = it has none, or it is not known.
    """

    cluster_id: str
    plan: PlanRecord | None = None
    plan_hurts: tuple[Hurt, ...] = ()
    orphaned: bool = False
    plans: Mapping[PlanState, int] = field(default_factory=dict)
    owed: int = 0
    judged_at: datetime | None = None
    findings: tuple[FindingRecord, ...] = ()
    alerts: tuple[AlertRecord, ...] = ()
    policy_differences: tuple[PolicyDifference, ...] = ()
    view: ClusterView | None = None
    wrong_connections: tuple[WrongConnection, ...] = ()
    window: WindowAhead | None = None

    def with_seen(
        self,
        view: ClusterView | None,
        wrong_connections: Sequence[WrongConnection] = (),
        window: WindowAhead | None = None,
    ) -> ClusterEvidence:
        """With what the ledger does not have."""
        return replace(self, view=view, wrong_connections=tuple(wrong_connections), window=window)


def read_cluster(ledger: Ledger, cluster_id: str, now: datetime) -> ClusterEvidence:
    """All that the ledger has of a cluster."""
    with ledger.reading():
        plan = ledger.active_plan(cluster_id)
        hurts: tuple[Hurt, ...] = ()
        if plan is not None:
            hurts = hurts_of(read_hurting(ledger, plan), now)
        return ClusterEvidence(
            cluster_id,
            plan,
            hurts,
            plan is not None and is_orphaned(plan, ledger),
            ledger.plan_states_on(cluster_id),
            ledger.owed_on(cluster_id),
            ledger.watched_clusters().get(cluster_id),
            tuple(ledger.open_findings(cluster_id)),
            tuple(ledger.open_alerts_of_cluster(cluster_id)),
            policy_differences(ledger, cluster_id),
        )


def policy_differences(ledger: Ledger, cluster_id: str) -> tuple[PolicyDifference, ...]:
    """Where the connections to a cluster do not say the same of approval and pace, as last read."""
    read = cluster_policy.PaceAndApproval.last_read
    policies_by_name = ledger.last_policies(cluster_id)
    policies = [read(name, each) for name, each in policies_by_name.items() if each]
    return tuple(cluster_policy.differences(policies))
