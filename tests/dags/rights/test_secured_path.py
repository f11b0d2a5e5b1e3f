"""The main path with exactly the rights it needs, over SASL_SSL, and with each of them missing."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.snapshot.take import take_snapshot
from rehome.domain.run.states import PlanState
from rehome.ledger.store import Ledger
from rehome.warehouse import PlanDirectory, Warehouse, read_snapshot
from tests.conftest import Topics
from tests.dags.clusters import to, whole_state
from tests.dags.runs import Run
from tests.rights import REASSIGNER, Right, granted, named

USER = "reassigner"


def test_the_whole_path_passes_with_the_least_rights(
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    admin: ClusterGateway,
    ledger: Ledger,
    rehome: Callable[..., Run],
    tmp_path: Path,
) -> None:
    topic = secured_topics.create([[4, 1], [2, 4], [1, 2]])
    secured_topics.fill(topic, 200, size_bytes=10_000)
    before = whole_state(admin)
    everything = take_snapshot(admin, datetime.now(UTC))
    with granted(secured_cluster, USER, *REASSIGNER):
        run = rehome(
            secured_cluster.client_settings(USER), action="drain", brokers=[4], throttle=5_000_000
        )
    assert run.state == "success", run.log
    skipped = {task for task, state in run.tasks.items() if state != "success"}
    assert skipped == {task for task in run.tasks if task.startswith("follow_up.")}
    assert {run.tasks[task] for task in skipped} == {"skipped"}
    warehouse = Warehouse((tmp_path / "warehouse").as_uri())
    seen = read_snapshot(str(warehouse.latest_snapshot(everything.cluster_id)))
    for table in ("brokers", "topics", "replicas"):  # so the gates and the planner saw it all
        assert getattr(seen, table).to_pylist() == getattr(everything, table).to_pylist()
    (record,) = ledger.plans()
    assert record.state is PlanState.DONE
    assert ledger.throttles()
    assert not ledger.throttles(open_only=True)
    directory = PlanDirectory(record.plan_dir)
    planned = {move.partition: move.target for move in directory.load().moves}
    after = whole_state(admin)
    assert {(topic, 0), (topic, 1)} <= planned.keys()
    assert after["replicas"] == before["replicas"] | planned
    assert not [row for row in after["replicas"].values() if 4 in row]
    assert not after["ongoing"]
    wait_until(lambda: whole_state(admin)["configs"] == before["configs"], "the configs as before")
    assert directory.read_json("verification.json")["ok"]
    assert topic in directory.read_text("report.html")


def every_right() -> list[object]:
    """A right to the cluster and one to topics in `make test`; tests/cluster has each of them."""
    quick = {resource: (operation, resource) for operation, resource in REASSIGNER}.values()
    return [
        pytest.param(
            right,
            id="-".join(reversed(right)),
            marks=[] if right in quick else pytest.mark.long,
        )
        for right in REASSIGNER
    ]


@pytest.mark.parametrize("lacking", every_right())
def test_without_one_of_the_rights_the_run_names_it_and_changes_nothing(
    lacking: Right,
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    admin: ClusterGateway,
    ledger: Ledger,
    rehome: Callable[..., Run],
) -> None:
    topic = secured_topics.create([[1, 2]])
    left = [right for right in REASSIGNER if right != lacking]
    before = whole_state(admin)
    with granted(secured_cluster, USER, *left):
        run = rehome(
            secured_cluster.client_settings(USER),
            action="reassign",
            reassignment=to(topic, {0: [3, 2]}),
        )
    assert run.state == run.tasks["snapshot"] == "failed"
    grant = re.search(r"Grant (.+) to the principal of the connection", run.log)
    assert grant, run.log
    # Another test's groups may have made an internal topic, of which every right is lacking too.
    missing = [right for right in grant[1].split(", ") if "on __consumer_offsets" not in right]
    assert missing == [named(lacking, topic)]
    assert "Nothing was changed" in run.log
    assert whole_state(admin) == before
    assert not ledger.plans()
    assert not ledger.throttles()


def test_a_principal_that_may_not_throttle_a_topic_is_refused_by_the_dry_run(
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    admin: ClusterGateway,
    ledger: Ledger,
    rehome: Callable[..., Run],
) -> None:
    topic = secured_topics.create([[1, 2]])
    before = whole_state(admin)
    rights = [right for right in REASSIGNER if right != ("alter_configs", "topic")]
    with granted(secured_cluster, USER, *rights, ("describe_configs", "topic")):
        run = rehome(
            secured_cluster.client_settings(USER),
            action="reassign",
            reassignment=to(topic, {0: [3, 2]}),
        )
    assert run.state == run.tasks["dry_run"] == "failed"
    assert f"Topic AlterConfigs on {topic}" in run.log
    assert whole_state(admin) == before
    assert not ledger.throttles()
