"""The main path with exactly the rights it needs, over SASL_SSL, and with each of them missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from include.cluster.connection import Connection
from include.cluster.gateway import ClusterGateway
from include.execution.model import PlanState
from include.ledger.store import Ledger
from local.kafka_cluster import LocalCluster
from local.waiting import wait_until
from tests.conftest import Topics
from tests.dags.clusters import state_of, to
from tests.dags.runs import Run
from tests.rights import REASSIGNER, Right, granted

USER = "reassigner"


@pytest.fixture
def admin(secured_cluster: LocalCluster) -> Iterator[ClusterGateway]:
    """Sees everything, whatever the principal of the run may do."""
    settings = Connection.from_settings(secured_cluster.client_settings())
    with ClusterGateway(settings) as opened:
        yield opened


def test_the_whole_path_passes_with_the_least_rights(
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    admin: ClusterGateway,
    ledger: Ledger,
    rehome: Callable[..., Run],
) -> None:
    topic = secured_topics.create([[4, 1], [2, 4], [1, 2]])
    secured_topics.fill(topic, 200, size_bytes=10_000)
    throttles = state_of(admin, [topic])["throttles"]
    with granted(secured_cluster, USER, *REASSIGNER):
        run = rehome(
            secured_cluster.client_settings(USER), action="drain", brokers=[4], throttle=5_000_000
        )
    assert run.state == "success", run.log
    assert set(run.tasks.values()) == {"success"}
    after = state_of(admin, [topic])
    assert not [row for row in after["replicas"].values() if 4 in row]
    assert not after["ongoing"]
    wait_until(
        lambda: state_of(admin, [topic])["throttles"] == throttles, "the throttles as they were"
    )
    (plan,) = ledger.plans()
    assert plan.state is PlanState.DONE
    assert ledger.throttles()
    assert not ledger.throttles(open_only=True)


@pytest.mark.parametrize("lacking", REASSIGNER, ids=lambda right: "-".join(reversed(right)))
def test_without_one_of_the_rights_the_run_names_it_and_changes_nothing(
    lacking: Right,
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    admin: ClusterGateway,
    ledger: Ledger,
    rehome: Callable[..., Run],
) -> None:
    operation, resource = lacking
    topic = secured_topics.create([[1, 2]])
    left = [right for right in REASSIGNER if right != lacking]
    name = f"{resource.title()} {operation.replace('_', ' ').title().replace(' ', '')}"
    where = f" on {topic}" if resource == "topic" else ""
    before = state_of(admin, [topic])
    with granted(secured_cluster, USER, *left):
        run = rehome(
            secured_cluster.client_settings(USER),
            action="reassign",
            reassignment=to(topic, {0: [3, 2]}),
        )
    assert run.state == run.tasks["snapshot"] == "failed"
    # Whoever lacks Cluster Alter lacks Describe, too, and is told nothing of the cluster's others.
    others = ", Cluster AlterConfigs" if name == "Cluster Alter" else ""
    assert f"Grant {name}{where}{others} to the principal of the connection" in run.log
    assert "Nothing was changed" in run.log
    assert state_of(admin, [topic]) == before
    assert not ledger.plans()


def test_who_may_read_but_not_throttle_a_topic_is_refused_by_the_dry_run(
    secured_cluster: LocalCluster,
    secured_topics: Topics,
    admin: ClusterGateway,
    ledger: Ledger,
    rehome: Callable[..., Run],
) -> None:
    topic = secured_topics.create([[1, 2]])
    before = state_of(admin, [topic])
    rights = [right for right in REASSIGNER if right != ("alter_configs", "topic")]
    with granted(secured_cluster, USER, *rights, ("describe_configs", "topic")):
        run = rehome(
            secured_cluster.client_settings(USER),
            action="reassign",
            reassignment=to(topic, {0: [3, 2]}),
        )
    assert run.state == run.tasks["dry_run"] == "failed"
    assert f"Topic AlterConfigs on {topic}" in run.log
    assert state_of(admin, [topic]) == before
    assert not ledger.throttles()
