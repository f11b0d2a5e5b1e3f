"""Two clusters, one ledger, topics of the same name: nothing acts through the wrong connection."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome import installation
from rehome.alerts.kinds import AlertKind
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import PlanState
from tests.conftest import Topics
from tests.dags.clusters import state_of, to
from tests.dags.conftest import CRAWL
from tests.dags.site import Site


@pytest.fixture
def other(secured_cluster: LocalCluster) -> LocalCluster:
    """Another cluster, with brokers of the same ids."""
    return secured_cluster


@pytest.fixture
def other_gateway(other: LocalCluster) -> Iterator[ClusterGateway]:
    with ClusterGateway(Connection.from_settings(other.client_settings())) as opened:
        yield opened


@pytest.fixture
def namesake(secured_topics: Topics) -> Callable[[str], None]:
    """Creates a topic of this name on the other cluster: two partitions, each on [1, 2]."""
    return lambda topic: secured_topics.create_as(topic, [[1, 2], [1, 2]])


def reported(site: Site, plan: Plan) -> dict[str, Any]:
    """All that the ledger says of a plan and its cluster, but for alerts that its people got."""
    ledger = site.ledger
    events = [event for event in ledger.events(plan.plan_id) if event.kind != EventKind.ALERT_SENT]
    return {
        "plan": ledger.plan(plan.plan_id),
        "moves": ledger.view(plan.plan_id).moves,
        "throttles": ledger.throttles(plan.plan_id),
        "reassignments": ledger.reassignments(plan.plan_id),
        "events": events,
        "holder": ledger.holder(plan.cluster_id),
    }


def names_both(log: str, plan: Plan, other: LocalCluster) -> bool:
    leads = f"Connection kafka_default leads to cluster {other.cluster_id}"
    return f"{leads}, but plan {plan.plan_id} is for cluster {plan.cluster_id}" in log


@pytest.mark.parametrize(
    "conf",
    [
        {"dag": "control_reassignment", "action": "cancel"},
        # The operator refuses these as it refuses a cancel.
        pytest.param({"dag": "control_reassignment", "action": "pause"}, marks=pytest.mark.long),
        pytest.param(
            {"dag": "control_reassignment", "action": "change_throttle", "throttle": 5_000_000},
            marks=pytest.mark.long,
        ),
        {"dag": "reassign_partitions", "throttle": 5_000_000},
    ],
    ids=["cancel", "pause", "change_throttle", "continue"],
)
def test_a_request_through_another_clusters_connection_changes_nothing(
    conf: dict[str, Any],
    site: Site,
    other: LocalCluster,
    other_gateway: ClusterGateway,
    abandoned: Callable[[str], Plan],
    namesake: Callable[[str], None],
) -> None:
    topic = site.topics.create([[1, 2], [1, 2]])
    namesake(topic)
    plan = abandoned(topic)
    here, there, ledger = (
        state_of(site.gateway, [topic]),
        state_of(other_gateway, [topic]),
        reported(site, plan),
    )
    assert len(here["ongoing"]) == 1

    run = site.rehome(other, plan_id=plan.plan_id, **conf)
    assert run.state == "failed"
    assert names_both(run.log, plan, other), run.log
    assert "Nothing was changed on either cluster" in run.log
    assert state_of(site.gateway, [topic]) == here
    assert state_of(other_gateway, [topic]) == there
    assert reported(site, plan) == ledger


def test_the_sweep_of_another_cluster_leaves_the_plan_and_its_debts_alone(
    site: Site,
    other: LocalCluster,
    other_gateway: ClusterGateway,
    abandoned: Callable[[str], Plan],
    namesake: Callable[[str], None],
) -> None:
    topic = site.topics.create([[1, 2], [1, 2]])
    namesake(topic)
    plan = abandoned(topic)
    site.ledger.request_cancel(plan.plan_id, "ann")
    here, ledger = state_of(site.gateway, [topic]), reported(site, plan)
    run = site.rehome(other, dag="sweep_throttles")
    assert run.state == "success", run.log
    assert state_of(site.gateway, [topic]) == here
    assert reported(site, plan) == ledger


def test_a_poll_through_another_clusters_connection_writes_nothing_and_wakes_the_worker(
    site: Site,
    other: LocalCluster,
    abandoned: Callable[[str], Plan],
    namesake: Callable[[str], None],
) -> None:
    from rehome.triggers.watch import WRONG_CLUSTER, PlanWatch

    topic = site.topics.create([[1, 2], [1, 2]])
    namesake(topic)
    plan = abandoned(topic)
    before = site.ledger.samples(plan.plan_id)
    gateway = ClusterGateway(Connection.from_settings(other.client_settings()))
    with closing(PlanWatch(gateway, plan.plan_id, installation.settings())) as watch:
        outcome = watch.poll()
    assert outcome.reason == WRONG_CLUSTER
    assert f"plan {plan.plan_id} is for cluster {plan.cluster_id}" in outcome.text
    assert site.ledger.samples(plan.plan_id) == before


@pytest.fixture
def edited(other: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Edits the connection, so that it leads to the other cluster, once this task has ended."""
    from rehome.operators.base import ClusterOperator

    def once_ended(task_id: str) -> None:
        execute = ClusterOperator.execute

        def and_edit(self: ClusterOperator, context: Any) -> Any:
            done = execute(self, context)
            if self.task_id == task_id:
                kafka = {"conn_type": "kafka", "extra": dict(other.client_settings())}
                monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
            return done

        monkeypatch.setattr(ClusterOperator, "execute", and_edit)

    return once_ended


def test_a_connection_edited_in_mid_run_fails_the_run_and_the_right_one_cleans_up(
    site: Site,
    other_gateway: ClusterGateway,
    other: LocalCluster,
    namesake: Callable[[str], None],
    edited: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    topics: Topics,
) -> None:
    monkeypatch.setenv("REHOME_LEASE_S", "1")
    topic = topics.create([[1, 2], [1, 2]])
    namesake(topic)
    topics.fill(topic, 1000, size_bytes=10_000)
    before, there = state_of(site.gateway, [topic]), state_of(other_gateway, [topic])
    edited("execute")
    target = to(topic, {0: [3, 2], 1: [3, 2]})
    run = site.run(action="reassign", reassignment=target, throttle=CRAWL)
    assert run.state == "failed"
    assert {run.tasks[name] for name in ("progress", "clear_throttle")} == {"failed"}, run.tasks
    (record,) = site.ledger.plans(site.cluster.cluster_id)
    assert record.planned_through == "kafka_default"
    assert f"planned through connection {record.planned_through}" in run.log
    assert "Let it lead to cluster" in run.log
    assert record.state is PlanState.RUNNING
    assert len(site.gateway.list_reassignments()) == 2
    assert all(site.ledger.throttles(record.plan_id, open_only=True))
    assert state_of(other_gateway, [topic]) == there

    wait_until(lambda: site.ledger.holder(record.cluster_id) is None, "the lease to end")
    back = site.run(dag="control_reassignment", plan_id=record.plan_id, action="cancel")
    assert back.state == "success", back.log
    assert "2 moves in flight were taken back. No throttle is left." in back.log
    wait_until(lambda: state_of(site.gateway, [topic]) == before, "the cluster as it was")


def test_nothing_starts_through_an_edited_connection_until_a_person_binds_it_anew(
    site: Site,
    other: LocalCluster,
    other_gateway: ClusterGateway,
    namesake: Callable[[str], None],
    topics: Topics,
) -> None:
    """The sweep goes on meanwhile: it takes back what is owed on whichever cluster it finds."""
    topic = topics.create([[1, 2], [1, 2]])
    namesake(topic)
    there, ledger = state_of(other_gateway, [topic]), site.ledger
    assert site.run(dag="collect_snapshots").state == "success"

    target = to(topic, {0: [2, 1], 1: [2, 1]})
    run = site.rehome(other, action="reassign", reassignment=target, throttle=CRAWL)
    assert run.state == "failed"
    bound_to = f"is bound to cluster {site.cluster.cluster_id}"
    assert f"kafka_default leads to cluster {other.cluster_id}, but {bound_to}" in run.log
    assert ledger.plans() == []
    assert [each.subject for each in ledger.open_alerts(AlertKind.WRONG_CLUSTER)] == [
        "kafka_default"
    ]
    assert site.rehome(other, dag="sweep_throttles").state == "success"
    assert state_of(other_gateway, [topic]) == there

    ledger.rebind("kafka_default", None, other.cluster_id, "ann")
    assert site.rehome(other, dag="collect_snapshots").state == "success"
    assert ledger.open_alerts(AlertKind.WRONG_CLUSTER) == []
