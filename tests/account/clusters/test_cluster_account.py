"""What is known of a cluster, from the ledger and its newest snapshot."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rehome.account.clusters.cluster_account import account_of_cluster
from rehome.account.clusters.cluster_evidence import (
    ClusterEvidence,
    WrongConnection,
    read_cluster,
)
from rehome.account.clusters.cluster_view import cluster_view
from rehome.account.clusters.troubles import TroubleKind
from rehome.account.known import Known, NotKnown, Source, Unknown
from rehome.alerts.alert import Alert
from rehome.alerts.kinds import AlertKind
from rehome.clusters.watch_rules import WatchRules
from rehome.domain.plan.plan import Plan
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding import Seen
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.ledger.store import Ledger
from rehome.watching.open_and_close import after_snapshot
from tests.ledger.set_clock import SetClock
from tests.quality.snapshots import Rows

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_of_a_cluster_that_nothing_has_read_no_figure_is_given() -> None:
    account = account_of_cluster(ClusterEvidence("c1"), NOW)
    assert account.view == account.imbalance == Unknown(NotKnown.NO_SNAPSHOT)
    assert account.findings == Unknown(NotKnown.NOT_JUDGED)
    assert account.troubles == ()


def test_what_the_ledger_has_of_a_cluster_is_read_and_said_to_be_so_now(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    cluster_id, now = plan.cluster_id, clock()
    hurt = Hurt(HurtKind.DEAD_BROKERS, (4,), since=now)
    ledger.record_hurts(plan.plan_id, now, (hurt,))
    seen = Seen(FindingKind.UNDER_MIN_ISR, "", {"count": 2, "partitions": ["t-0", "t-1"]})
    ledger.follow_findings(
        cluster_id, now, after_snapshot([seen], WatchRules(), longest_gap=timedelta(hours=1))
    )
    (due,) = ledger.raise_alerts(
        [Alert(AlertKind.FOREIGN_LEFTOVERS, "x", "", cluster_id=cluster_id).to_raise(60)]
    )
    ledger.record_sent(due, "", {"chat": "it answers 503"})
    evidence = read_cluster(ledger, cluster_id, now)
    account = account_of_cluster(evidence, now)
    assert account.plan is not None
    assert account.plan.plan_id == plan.plan_id
    assert account.plans == {PlanState.RUNNING: 1}
    assert isinstance(account.findings, Known)
    assert [each.kind for each in account.findings.value] == [FindingKind.UNDER_MIN_ISR]
    kinds = [each.kind for each in account.troubles]
    assert kinds == [TroubleKind.PLAN, TroubleKind.FINDINGS, TroubleKind.NOT_SENT]
    assert {(each.source, each.at) for each in account.troubles} == {(Source.LEDGER, now)}
    of_plan, _, not_sent = account.troubles
    assert (of_plan.names, of_plan.count) == ((plan.plan_id,), len(evidence.plan_hurts))
    assert (not_sent.names, not_sent.said) == (("chat",), "it answers 503")


def test_what_a_snapshot_shows_is_said_to_be_so_when_it_was_taken() -> None:
    rows = Rows()
    rows.lose(2)
    view = cluster_view(rows.snapshot())
    evidence = ClusterEvidence("c1").with_seen(
        view, [WrongConnection("kafka_prod", "it leads away")]
    )
    account = account_of_cluster(evidence, NOW)
    assert account.view == Known(view, view.taken_at, Source.SNAPSHOT)
    wrong, leaderless, dead, lagging = account.troubles
    assert (wrong.kind, wrong.at) == (TroubleKind.WRONG_CONNECTION, NOW)
    assert (leaderless.kind, leaderless.count) == (TroubleKind.NO_LEADER, view.offline.count)
    assert (dead.kind, dead.names, dead.said) == (TroubleKind.BROKER_DEAD, ("2",), "gone")
    under = TroubleKind.UNDER_REPLICATED
    assert (lagging.kind, lagging.count) == (under, view.under_replicated.count)
    assert {each.at for each in (leaderless, dead, lagging)} == {view.taken_at}


def test_how_uneven_a_cluster_is_is_unknown_where_a_broker_has_not_said_its_sizes() -> None:
    view = cluster_view(Rows().snapshot())
    evidence = ClusterEvidence("c1").with_seen(view)
    assert isinstance(account_of_cluster(evidence, NOW).imbalance, Known)
    (rack, brokers), *others = view.racks
    silent = replace(brokers[0], size_bytes=None)
    unread = replace(view, racks=((rack, (silent, *brokers[1:])), *others))
    found = account_of_cluster(evidence.with_seen(unread), NOW).imbalance
    assert found == Unknown(NotKnown.SIZES_UNREAD)
