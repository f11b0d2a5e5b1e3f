"""Findings of sweeps and polls reach a mail server and a webhook, each once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

from local.process.waiting import wait_until
from rehome import alerting, installation
from rehome.alerts.due_alerts import approval_waits
from rehome.alerts.kinds import AlertKind
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.clock import utc_now
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.plan.plan import Plan
from rehome.domain.run.flows import RateReason
from rehome.domain.run.states import PlanState
from rehome.execution.throttle.keys import FOLLOWER_RATE, LEADER_REPLICAS
from rehome.ledger.base.records import ThrottleEntry, ThrottleState
from tests.dags.site import Site
from tests.ledger.small_plans import make_plan
from tests.plugins.mailbox import Reported

NO_BROKER = 99
"""A broker that there is not."""


def test_a_sweep_reports_debts_and_throttles_that_others_have_left_once(
    site: Site, reported: Reported
) -> None:
    topic, cluster_id = site.topics.create([[1, 2]]), site.cluster.cluster_id
    resource = ConfigResource.topic(topic)
    plan = make_plan("owing", cluster_id=cluster_id)
    ledger = site.ledger
    ledger.create_plan(plan, {}, "file:///x", "run-1", "ann", "kafka_default", "a-dag")
    ledger.approve("owing", plan.plan_hash, "ann")
    ledger.claim("owing")
    broker = ConfigResource.broker(NO_BROKER)
    entry = ThrottleEntry("owing", cluster_id, broker, FOLLOWER_RATE, ("5",), None, "NOT_SET")
    ledger.journal_throttles([entry])
    ledger.transition("owing", PlanState.FAILED, "nothing moved")
    left = ConfigChange(resource, LEADER_REPLICAS, ConfigOperation.SET, "0:1")
    assert site.gateway.alter_configs([left]) == {resource: None}
    closes_at = utc_now() + timedelta(minutes=30)
    elsewhere = make_plan("asked-for", cluster_id="another-cluster")
    ledger.create_plan(elsewhere, {}, "file:///x", "run-2", "ann", "another", "a-dag")
    question = approval_waits(elsewhere, ledger.plan("asked-for"), "run-2#1", closes_at)
    alerting.raise_alerts(ledger, [question])
    for _ in range(2):
        swept = site.run(dag="sweep_throttles")
        assert swept.state == "success", swept.log
    assert sorted(reported.kinds()) == [*["approval_waiting"] * 2, "foreign_leftovers", "owed"]
    assert "less than an hour is left" in reported.webhook.about("run-2")[-1]["text"]
    ledger.close_alerts("asked-for", AlertKind.APPROVAL_WAITING)
    owed, foreign = reported.only("owed"), reported.only("foreign_leftovers")
    assert (owed["plan_id"], owed["state"]) == ("owing", "failed")
    assert f"{broker} {FOLLOWER_RATE}" in owed["text"]
    assert topic in foreign["text"]
    assert (foreign["cluster_id"], foreign["connection"]) == (cluster_id, "kafka_default")

    back = ConfigChange(resource, LEADER_REPLICAS, ConfigOperation.DELETE)
    assert site.gateway.alter_configs([back]) == {resource: None}
    (entry,) = ledger.throttles("owing")
    assert entry.state is ThrottleState.OWED
    site.ledger.mark_throttles(
        [
            ThrottleEntry(
                "owing",
                cluster_id,
                broker,
                FOLLOWER_RATE,
                ("5",),
                None,
                "NOT_SET",
                ThrottleState.CLEARED,
            )
        ]
    )
    assert site.run(dag="sweep_throttles").state == "success"
    assert all(alert.closed_at is not None for alert in ledger.alerts())
    assert len(reported.webhook.reported) == 4


def test_polls_report_a_lowered_throttle_and_a_window_that_will_be_missed_once(
    site: Site, abandoned: Callable[..., Plan], reported: Reported
) -> None:
    """20 MB at 10 kB/s, and a window that is open for two minutes and a half."""
    from rehome.triggers.watch import PlanWatch

    closes = (utc_now() + timedelta(seconds=150)).isoformat()
    plan = abandoned(site.topics.create([[1, 2], [1, 2]]), window_end=closes)
    site.ledger.set_rate(
        plan.plan_id,
        5_000,
        "2 followers left their ISR",
        reason=RateReason.STRAIN,
        target_bytes_per_s=5_000,
        limit_bytes_per_s=10_000,
    )
    gateway = ClusterGateway(Connection.from_settings(site.cluster.client_settings()))
    with closing(PlanWatch(gateway, plan.plan_id, installation.settings())) as watch:

        def both() -> bool:
            alerting.send(watch.poll().due)
            return len(reported.webhook.reported) >= 2

        wait_until(both, "both to be reported", 140, 1)
        alerting.send(watch.poll().due)
    assert sorted(reported.kinds()) == ["throttle_lowered", "window_will_be_missed"]
    assert "2 followers left their ISR" in reported.only("throttle_lowered")["text"]
    assert "after the window closes" in reported.only("window_will_be_missed")["text"]
