"""Scheduled DAGs: snapshots for the history, and the sweep of throttles."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from local.process.waiting import wait_until
from rehome.domain.text import count_text
from rehome.execution.control.cancel import abort
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from rehome.execution.throttle.set_up import set_up_throttle
from rehome.ledger.store import Ledger
from rehome.load_history.daily_rollups import window
from rehome.warehouse import PlanDirectory, Warehouse, read_snapshot
from tests.dags.clusters import MARKS, Throttles, throttles_become, throttles_of
from tests.dags.runs import Run
from tests.dags.site import Site
from tests.ledger.small_plans import make_plan, move
from tests.metrics.statsd_listener import StatsdListener


def test_a_snapshot_lands_in_the_warehouse_and_in_the_history_of_plans(
    tmp_path: Path, site: Site, statsd: StatsdListener
) -> None:
    topic = site.topics.create([[1, 2], [4, 3]])
    site.topics.fill(topic, 20)
    run = site.run(dag="collect_snapshots")
    assert run.state == "success", run.log
    warehouse = Warehouse((tmp_path / "warehouse").as_uri())
    uri = warehouse.latest_snapshot(site.cluster.cluster_id)
    assert uri is not None
    assert uri in run.log
    snapshot = read_snapshot(uri)
    assert extras("rehome_snapshots", run) == [
        {
            "cluster_id": site.cluster.cluster_id,
            "connection": "kafka_default",
            "uri": uri,
            "taken_at": snapshot.taken_at.isoformat(),
            "brokers": 4,
            "topics": len(snapshot.topics),
            "replicas": len(snapshot.replicas),
            "hidden_topics": 0,
        }
    ]
    taken = f"airflow.rehome.cluster.snapshot_taken_at.{site.cluster.cluster_id}"
    wait_until(statsd.values, "its metric")
    assert statsd.values() == {taken: [snapshot.taken_at.timestamp()]}
    assert [row["broker"] for row in snapshot.brokers.to_pylist() if row["answered"]] == [
        1,
        2,
        3,
        4,
    ]
    replicas = [row for row in snapshot.replicas.to_pylist() if row["topic"] == topic]
    placed = {(row["partition"], row["broker"]) for row in replicas}
    assert placed == {(0, 1), (0, 2), (1, 4), (1, 3)}
    assert all(row["size_bytes"] > 20_000 for row in replicas)
    assert not site.ledger.plans()
    history = window(warehouse, site.cluster.cluster_id, 7)
    assert history.span.snapshots == 1
    assert history.span.through == snapshot.taken_at.isoformat()

    tried = site.run(action="drain", brokers=[4], topics=[topic], dry_run=True)
    assert tried.state == "success", tried.log
    (plan,) = site.ledger.plans()
    (reported,) = extras("rehome_plans", tried)
    assert reported["plan_id"] == plan.plan_id
    assert (reported["plan_hash"], reported["uri"]) == (plan.plan_hash, plan.plan_dir)
    assert (reported["cluster_id"], reported["dry_run"]) == (plan.cluster_id, True)
    assert (reported["moves"], reported["bytes_to_copy"]) == (1, plan.bytes_total)
    load = PlanDirectory(plan.plan_dir).read_json("load.json")
    assert load["history"]["snapshots"] == 1
    reported = "the history covers 0.0 h of the 24 h it takes"
    assert [item["problems"] for item in load["resources"]] == [[reported]] * 3


def test_the_sweep_takes_back_what_is_owed_and_only_reports_what_is_not_ours(
    foreign_throttle: Callable[[str], Throttles], site: Site, statsd: StatsdListener
) -> None:
    topic = site.topics.create([[1, 2], [2, 3]])
    foreign = foreign_throttle(topic)
    plan = make_plan("left", move(topic, 0, (1, 2), (3, 2)), cluster_id=site.cluster.cluster_id)
    site.ledger.create_plan(plan, {}, "file:///nowhere", "a-run", "test")
    site.ledger.approve(plan.plan_id, plan.plan_hash, "test")
    set_up_throttle(plan, site.ledger, site.gateway, 5_000_000)
    with_ours = foreign | {
        "broker ": {LEADER_RATE: "5000000", FOLLOWER_RATE: "5000000"},
        "broker 2": {LEADER_RATE: "5000000"},
        f"topic {topic}": {
            LEADER_REPLICAS: "1:2,0:1,0:2",
            FOLLOWER_REPLICAS: "1:3,0:3",
        },
        MARKS: throttles_of(site.gateway, [])[MARKS],
    }
    assert with_ours[MARKS]
    throttles_become(site.gateway, [topic], with_ours)
    rate = "broker 2 leader.replication.throttled.rate=7654321"
    reported = {
        rate,
        f"topic {topic} leader.replication.throttled.replicas=1:2,0:1",
        f"topic {topic} follower.replication.throttled.replicas=1:3",
    }

    running = site.run(dag="sweep_throttles")
    assert running.state == "success", running.log
    assert "0 throttle settings taken back" in running.log
    throttles_become(site.gateway, [topic], with_ours)

    abort(plan.plan_id, site.ledger, site.gateway, "its run was lost")
    owed = len(site.ledger.throttles(open_only=True))
    assert owed
    lease = site.ledger.acquire_lease(plan.cluster_id, "a-run-that-begins", 60)
    at_once = site.run(dag="sweep_throttles")
    assert at_once.state == "success", at_once.log
    assert "a-run-that-begins holds cluster" in at_once.log
    assert len(site.ledger.throttles(open_only=True)) == owed, "it is paid by that run"
    site.ledger.release_lease(lease)
    ended = site.run(dag="sweep_throttles")
    assert ended.state == "success", ended.log
    assert count_text(owed, "throttle setting") + " taken back" in ended.log
    assert "Nothing is being reassigned, so these are probably left over" in ended.log
    assert not site.ledger.throttles(open_only=True)
    throttles_become(site.gateway, [topic], foreign)

    def of_cluster() -> dict[str, list[float]]:
        return {
            name.removeprefix("airflow.rehome.cluster.").split(".")[0]: values
            for name, values in statsd.values().items()
            if name.endswith(f".{site.cluster.cluster_id}")
        }

    by_sweeps = ("throttles_owed", "throttles_foreign", "plans_orphaned", "swept_at")
    wait_until(
        lambda: all(len(of_cluster().get(name, ())) >= 3 for name in by_sweeps),
        "the metrics of three sweeps",
    )
    measured = of_cluster()
    assert measured["throttles_owed"] == [0, owed, 0]
    assert measured["throttles_foreign"] == [len(reported) - 1, len(reported) - 1, len(reported)]
    assert measured["plans_orphaned"] == [1, 0, 0], "nothing holds the lease of the first"
    assert len(measured["swept_at"]) == 3
    assert left_alone(ended) == reported
    assert left_alone(running) == reported - {rate}, "the plan had a lower rate stand there"


def test_the_schedule_opens_no_connection_that_no_plan_was_made_through(ledger: Ledger) -> None:
    assert not ledger.was_planned_through("kafka_default")
    ledger.create_plan(make_plan("p1"), {}, "file:///x", "a-run", "test", planned_through="tokyo")
    assert not ledger.was_planned_through("kafka_default")
    assert ledger.was_planned_through("tokyo")
    ledger.create_plan(make_plan("p2"), {}, "file:///x", "a-run", "test")
    assert ledger.was_planned_through("kafka_default"), "not known for plans of an earlier Rehome"


def extras(asset: str, run: Run) -> list[Any]:
    """What the events of an asset say that a run has made."""
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    query = select(AssetEvent).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
    query = query.where(AssetModel.name == asset, AssetEvent.source_run_id == run.run_id)
    with create_session() as session:
        return [event.extra for event in session.scalars(query)]


def left_alone(run: Run) -> set[str]:
    """The throttles that a sweep reported as those of others."""
    found = (line.partition(" and left alone: ")[2] for line in run.log.splitlines())
    return {line.split(" [")[0].strip() for line in found if line}
