"""Plans whose run has died in mid-move: resumed or cancelled by their id."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from local.process.waiting import wait_until
from rehome import installation
from rehome.alerts.kinds import AlertKind
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.clock import utc_now
from rehome.domain.plan.plan import Plan
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base import database
from tests.dags.clusters import no_throttles, state_of, throttles_become, to
from tests.dags.site import Site
from tests.plugins.mailbox import Reported

FAST = 20_000_000


def test_a_new_run_goes_on_with_what_is_in_flight_and_with_what_is_left(
    site: Site, abandoned: Callable[[str], Plan], reported: Reported
) -> None:
    topic = site.topics.create([[1, 2], [1, 2]])
    before = no_throttles(site.gateway, [topic])
    plan = abandoned(topic)
    for _ in range(2):
        swept = site.run(dag="sweep_throttles")
        assert swept.state == "success", swept.log
        assert "its run dead-run sends no heartbeat" in swept.log
    assert reported.kinds() == ["orphaned"]
    (alert,) = reported.webhook.about("dead-run")
    assert alert["plan_id"] == plan.plan_id
    assert "Resume or cancel the plan with control_reassignment." in alert["text"]
    assert len(site.gateway.list_reassignments()) == 1
    refused = site.run(action="reassign", reassignment=to(topic, {0: [4, 2]}))
    assert refused.state == "failed"
    assert "its run sends no heartbeat" in refused.log

    run = site.run(plan_id=plan.plan_id, throttle=FAST)
    assert run.state == "success", run.log
    record = site.ledger.plan(plan.plan_id)
    assert (record.state, record.run_id) == (PlanState.DONE, run.run_id)
    partitions = site.gateway.describe_topics([topic])[topic].partitions
    assert [partitions[n].replicas for n in (0, 1)] == [(3, 2), (3, 2)]
    assert reported.kinds() == ["orphaned", "failed", "done"]
    assert reported.only("done")["plan_id"] == plan.plan_id
    assert reported.only("done")["report"].endswith(f"/files/{plan.plan_id}/report.html")
    assert "It took" in reported.only("done")["text"]
    (orphan,) = (a for a in site.ledger.alerts(plan.plan_id) if a.kind is AlertKind.ORPHANED)
    assert orphan.closed_at is not None, "its new run gives signs of life"
    starts = site.ledger.reassignments(plan.plan_id)
    assert [start.outcome for start in starts] == [MoveState.DONE] * 2, "nothing is moved twice"
    throttles_become(site.gateway, [topic], before)


@pytest.mark.parametrize("by", ["control_reassignment", "sweep_throttles"])
def test_a_cancel_is_carried_out_though_no_run_drives_the_plan(
    by: str, site: Site, abandoned: Callable[[str], Plan], tmp_path: Path
) -> None:
    """Nor does it need the plan's files: the warehouse is away."""
    topic = site.topics.create([[1, 2], [1, 2]])
    before = state_of(site.gateway, [topic])
    plan = abandoned(topic)
    (tmp_path / "warehouse").rename(tmp_path / "away")
    if by == "sweep_throttles":
        site.ledger.request_cancel(plan.plan_id, "ann")
        run = site.run(dag=by)
    else:
        run = site.run(dag=by, plan_id=plan.plan_id, action="cancel")
    assert run.state == "success", run.log
    assert "The plan is cancelled. 1 move in flight was taken back. No throttle is left." in run.log
    assert site.ledger.plan(plan.plan_id).state is PlanState.CANCELLED
    wait_until(lambda: state_of(site.gateway, [topic]) == before, "the cluster as it was")


def test_each_poll_is_a_sign_of_life_of_its_run_and_wakes_a_worker_once_the_lease_is_lost(
    site: Site, abandoned: Callable[[str], Plan]
) -> None:
    from rehome.triggers.watch import PlanWatch

    plan = abandoned(site.topics.create([[1, 2], [1, 2]]))
    gateway = ClusterGateway(Connection.from_settings(site.cluster.client_settings()))
    with closing(PlanWatch(gateway, plan.plan_id, installation.settings())) as watch:
        assert watch.poll().text
        holder = site.ledger.holder(plan.cluster_id)
        assert holder is not None
        assert holder.owner == "dead-run"
        assert holder.expires_at - utc_now() > timedelta(seconds=30)
        site.ledger.acquire_lease(plan.cluster_id, "dead-run", 0.0)
        other = site.ledger.acquire_lease(plan.cluster_id, "another-run", 60.0)
        assert watch.poll().reason == "another run has taken the lease over"
        site.ledger.release_lease(other)


def test_a_stall_is_reported_also_where_each_poll_finds_something_to_do(
    site: Site, abandoned: Callable[[str], Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the controller refuses, again and again, what the worker is woken for."""
    from rehome.triggers.watch import PlanWatch

    monkeypatch.setenv("REHOME_STALL_ALERT_S", "0.01")
    monkeypatch.setattr("rehome.execution.stall.silence_s", lambda rate: 0.0)
    plan = abandoned(site.topics.create([[1, 2], [1, 2]]))
    gateway = ClusterGateway(Connection.from_settings(site.cluster.client_settings()))
    with closing(PlanWatch(gateway, plan.plan_id, installation.settings())) as watch:
        found = wait_until(
            lambda: outcome if (outcome := watch.poll()).due else None,
            "a poll at which nothing has moved",
        )
        assert [due.kind for due in found.due] == [AlertKind.STALLED]
        assert found.reason == "there is something to do"
        assert watch.poll().due == (), "this process was to send it"


def test_a_poll_tolerates_a_locked_ledger_until_the_stall_timeout(
    site: Site,
    abandoned: Callable[[str], Plan],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    from rehome import installation
    from rehome.triggers import watch as watching

    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.1)
    plan = abandoned(site.topics.create([[1, 2], [1, 2]]))
    gateway = ClusterGateway(Connection.from_settings(site.cluster.client_settings()))
    with closing(watching.PlanWatch(gateway, plan.plan_id, installation.settings())) as watch:
        with closing(sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            outcome = watch.poll()
            assert outcome.reason == ""
            assert "database is locked" in outcome.text
            later = time.monotonic() + installation.settings().stall_timeout_s + 1
            monkeypatch.setattr(watching, "monotonic_s", lambda: later)
            assert watch.poll().reason == "the ledger is away"
        assert watch.poll().reason == "there is something to do", "the ledger is back"
