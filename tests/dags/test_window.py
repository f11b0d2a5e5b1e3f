"""Windows: what does not fit waits for the next one, and goes on there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from include.cluster.gateway import ClusterGateway
from include.execution.model import MoveState, PlanState
from include.ledger.requests import CONTINUED
from include.ledger.store import Ledger
from include.planning.request import parse_request
from include.warehouse import Warehouse
from local.kafka_cluster import LocalCluster
from local.waiting import wait_until
from tests.conftest import Topics
from tests.dags.clusters import throttles_of
from tests.dags.runs import Run
from tests.ledger.small_plans import make_plan, move

DAG = "rebalance_in_window"
CRAWL, FAST = 10_000, 20_000_000


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Windows of ten minutes that open by a cron expression."""

    def opens(cron: str) -> None:
        monkeypatch.setenv("REHOME_WINDOW_CRON", cron)
        monkeypatch.setenv("REHOME_WINDOW_DURATION_S", "600")

    return opens


def test_what_does_not_fit_into_a_window_goes_on_in_the_next(
    cluster: LocalCluster,
    topics: Topics,
    gateway: ClusterGateway,
    ledger: Ledger,
    window: Callable[[str], None],
    rehome: Callable[..., Run],
) -> None:
    small, large = topics.create([[4]]), topics.create([[4]])
    topics.fill(small, 5)
    topics.fill(large, 1000, size_bytes=10_000)
    before = throttles_of(gateway, [small, large])
    drain = {"action": "drain", "brokers": [4], "topics": [small, large]}
    window("* * * * *")
    first = rehome(cluster, dag=DAG, throttle=CRAWL, **drain)
    assert first.state == "success", first.log
    (plan,) = ledger.plans()
    assert plan.state is PlanState.PAUSED, first.log
    assert plan.cause == "what is left does not fit into the window"
    states = {p.topic: record.state for p, record in ledger.moves(plan.plan_id).items()}
    assert states == {small: MoveState.DONE, large: MoveState.PENDING}
    wait_until(lambda: throttles_of(gateway, [small, large]) == before, "no throttle")

    then = rehome(cluster, dag=DAG, throttle=FAST, **drain)
    assert then.state == "success", then.log
    assert [(p.plan_id, p.state) for p in ledger.plans()] == [(plan.plan_id, PlanState.DONE)]
    assert [e.detail for e in ledger.events(plan.plan_id) if e.kind == CONTINUED] == [
        f"{DAG}/{then.run_id}"
    ]
    for topic in (small, large):
        assert 4 not in gateway.describe_topics([topic])[topic].partitions[0].replicas
    assert len(ledger.reassignments(plan.plan_id)) == 2, "nothing is moved twice"
    wait_until(lambda: throttles_of(gateway, [small, large]) == before, "no throttle")


def test_a_waiting_plan_that_fits_no_more_is_given_up_for_a_new_one(
    cluster: LocalCluster,
    topics: Topics,
    gateway: ClusterGateway,
    ledger: Ledger,
    window: Callable[[str], None],
    rehome: Callable[..., Run],
    tmp_path: Path,
) -> None:
    topic = topics.create([[4]])
    topics.fill(topic, 5)
    drain = {"action": "drain", "brokers": [4], "topics": [topic]}
    old = make_plan("old", move(topic, 0, (1,), (2,)), cluster_id=cluster.cluster_id)
    directory = Warehouse((tmp_path / "warehouse").as_uri()).plan("old")
    directory.save(old, parse_request(drain))
    ledger.create_plan(old, drain, directory.uri, "last-night", "test")
    ledger.approve("old", old.plan_hash, "test")
    ledger.claim("old")
    ledger.transition("old", PlanState.PAUSED, "the window has ended")
    window("* * * * *")

    ledger.request_pause("old", "ann")
    refused = rehome(cluster, dag=DAG, **drain)
    assert refused.state == "failed"
    assert "Plan old is paused on this cluster (run last-night)" in refused.log
    assert ledger.plan("old").state is PlanState.PAUSED, "a person's pause is a person's to end"

    ledger.withdraw_pause("old", "ann")
    run = rehome(cluster, dag=DAG, **drain)
    assert run.state == "success", run.log
    new, given_up = ledger.plans()
    assert (given_up.plan_id, given_up.state) == ("old", PlanState.CANCELLED)
    assert f"{topic}-0 has replicas [4], not [1]" in given_up.cause
    assert new.state is PlanState.DONE
    assert 4 not in gateway.describe_topics([topic])[topic].partitions[0].replicas


def test_a_run_by_hand_outside_of_windows_is_refused(
    cluster: LocalCluster,
    ledger: Ledger,
    window: Callable[[str], None],
    rehome: Callable[..., Run],
) -> None:
    window("0 0 29 2 *")
    run = rehome(cluster, dag=DAG)
    assert run.state == "failed"
    assert "window_end" in run.log
    assert "has passed already" in run.log
    assert not ledger.plans()
