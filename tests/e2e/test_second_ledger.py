"""Two installations of Rehome on one cluster, each with its Airflow; and a ledger of yesterday."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.configs import ConfigResource
from rehome.domain.run.states import PlanState
from rehome.execution.throttle.keys import FOLLOWER_RATE, LEADER_RATE
from tests.conftest import Topics
from tests.dags.clusters import name_of, no_throttles, throttles_become, throttles_of, to
from tests.e2e.conftest import World
from tests.e2e.runs import DAG, TIMEOUT_S, asked, paused, swept, trigger_planned, wait_for_state
from tests.ledger.small_plans import move

MESSAGES, OF_BYTES = 3_000, 10_000
CRAWL = 100_000

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


def started(
    world: World, cluster: LocalCluster, topic: str, plan_id: str, throttle: int = CRAWL
) -> str:
    """A run that copies for minutes."""
    planned = move(topic, 0, (1, 2), (3, 2), MESSAGES * OF_BYTES)
    conf = {"reassignment": to(topic, {0: [3, 2]}), "throttle": throttle, "additional": True}
    run = trigger_planned(world, cluster.cluster_id, plan_id, planned, **conf)
    wait_for_state(world, run, "progress", {"deferred"})
    return run


def test_the_last_of_two_installations_leaves_no_throttle(
    impatient_world: World,
    second_world: World,
    mortal: LocalCluster,
    mortal_gateway: ClusterGateway,
) -> None:
    """The first one ends first: what it finds, and leaves, the other one still needs."""
    topics, gateway = Topics(mortal), mortal_gateway
    pair = [topics.create([[1, 2]]) for _ in range(2)]
    for topic in pair:
        topics.fill(topic, MESSAGES, OF_BYTES)
    nothing = no_throttles(gateway, pair)
    plans = [f"{name}-{topic}" for name, topic in zip(("first", "second"), pair, strict=True)]
    worlds = impatient_world, second_world
    runs = [
        started(world, mortal, topic, plan_id, throttle)
        for world, topic, plan_id, throttle in zip(
            worlds, pair, plans, (2 * CRAWL, CRAWL), strict=True
        )
    ]
    assert len(gateway.list_reassignments()) == 2
    for at, (world, run, plan_id) in enumerate(zip(worlds, runs, plans, strict=True)):
        asked(world, plan_id, "cancel")
        assert world.airflow.api.wait_for_run(DAG, run, TIMEOUT_S) == "failed"
        assert world.ledger.plan(plan_id).state is PlanState.CANCELLED
        if at == 0:
            assert {each.topic for each in gateway.list_reassignments()} == {pair[1]}
            default = throttles_of(gateway, pair)[name_of(ConfigResource.cluster_default())]
            assert default.keys() == {LEADER_RATE, FOLLOWER_RATE}, "what goes on is throttled"
            assert all(int(value) < 2 * CRAWL for value in default.values()), "as it asked for"
    swept(impatient_world)
    throttles_become(gateway, pair, nothing)
    assert not any(world.ledger.throttles(open_only=True) for world in worlds)


def test_a_ledger_that_was_restored_says_nothing_false_of_what_it_does_not_know(
    impatient_world: World, mortal: LocalCluster, mortal_gateway: ClusterGateway, tmp_path: Path
) -> None:
    """After the backup another throttle was set. No task of its run acts meanwhile."""
    world, api, ledger = impatient_world, impatient_world.airflow.api, impatient_world.ledger
    topics, gateway = Topics(mortal), mortal_gateway
    topic = topics.create([[1, 2]])
    topics.fill(topic, MESSAGES, OF_BYTES)
    nothing, plan_id = no_throttles(gateway, [topic]), f"restored-{topic}"
    run = started(world, mortal, topic, plan_id)
    before = throttles_of(gateway, [topic])
    backup = tmp_path / "backup.db"
    copied(world.airflow.home / "ledger.db", backup)
    asked(world, plan_id, "change_throttle", throttle=CRAWL - 20_000)
    wait_until(lambda: throttles_of(gateway, [topic]) != before, "the other rate", TIMEOUT_S)
    wait_for_state(world, run, "progress", {"deferred"})
    with paused(world):
        world.airflow.kill_component("triggerer")
        wait_until(lambda: ledger.holder(mortal.cluster_id) is None, "its lease to end", 60)
        copied(backup, world.airflow.home / "ledger.db")
        answer = asked(world, plan_id, "cancel")
        left = throttles_of(gateway, [topic])
        assert ("No throttle is left." in answer) is (left == nothing), (answer, left)
        assert not gateway.list_reassignments()
        world.airflow.revive()
    assert api.wait_for_run(DAG, run, TIMEOUT_S) == "failed"
    swept(world)
    throttles_become(gateway, [topic], nothing)
    assert not ledger.throttles(plan_id, open_only=True)


def copied(source: Path, target: Path) -> None:
    """As `sqlite3 ledger.db ".backup FILE"` and `.restore` do, whoever has it open."""
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target)) as write:
        read.backup(write)
