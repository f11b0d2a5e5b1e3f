"""Heals that are planned while no window is open: the next window carries them out, on brokers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from local.kafka.cluster import LocalCluster
from rehome.domain.actions import Action
from rehome.domain.run.states import PlanState
from rehome.fleet import attempts
from tests.conftest import Topics
from tests.dags.clusters import state_of
from tests.dags.runs import Run
from tests.dags.watching.healed import EMPTY, Healed, held_by
from tests.plugins.mailbox import Reported

pytestmark = pytest.mark.long  # each run of the DAG takes 10 s

FAST = 20_000_000


def test_a_heal_is_handed_over_and_its_window_carries_out_the_very_plan_before_one_of_its_own(
    mortal: LocalCluster,
    watch: Callable[..., Healed],
    reported: Reported,
    closed: Callable[[], None],
    opened: Callable[[], None],
) -> None:
    seen = watch(mortal, policies={"empty_broker": "heal"}, largest_throttle=FAST)
    topics = Topics(mortal)
    topic = topics.create([[1, 2], [2, 3], [3, 1]])
    topics.fill(topic, 60)
    closed()
    (start,) = seen.at(0, 10, 20)
    before = state_of(seen.gateway, [topic])
    tried: Run = seen.carry_out(start)
    assert tried.state == "success", tried.log
    (plan,) = seen.ledger.handed_over(mortal.cluster_id)
    assert (plan.state, plan.action) == (PlanState.PLANNED, Action.EXPAND)
    assert state_of(seen.gateway, [topic]) == before, "nothing was changed"
    assert seen.at(30) == [], "it waits for its window"

    opened()
    run = seen.rehome(seen.cluster, dag="rebalance_in_window", throttle=FAST)
    assert run.state == "success", run.log
    (healed,) = seen.ledger.plans()
    assert (healed.plan_id, healed.state) == (plan.plan_id, PlanState.DONE)
    assert held_by(seen, topic, 4)
    starts = seen.ledger.watch_starts(mortal.cluster_id)
    assert len(attempts.heals(seen.ledger, starts, healed.created_at)) == 1, "by what it has done"
    seen.at(40)
    assert EMPTY not in seen.open()


def test_what_is_over_when_its_window_opens_is_not_healed(
    mortal: LocalCluster,
    watch: Callable[..., Healed],
    closed: Callable[[], None],
    opened: Callable[[], None],
) -> None:
    seen = watch(mortal, policies={"empty_broker": "heal"})
    topics = Topics(mortal)
    topic = topics.create([[1, 2], [2, 3], [3, 1]])
    closed()
    (start,) = seen.at(0, 10, 20)
    assert seen.carry_out(start).state == "success"
    (plan,) = seen.ledger.handed_over(mortal.cluster_id)
    seen.rules(policies={"empty_broker": "watch"})
    before = state_of(seen.gateway, [topic])
    opened()
    seen.rehome(seen.cluster, dag="rebalance_in_window", exclude_brokers=[4])
    given_up = seen.ledger.plan(plan.plan_id)
    assert given_up.state is PlanState.CANCELLED
    assert "The watch rules no longer say heal for empty_broker broker 4" in given_up.cause
    assert held_by(seen, topic, 4) == 0
    assert state_of(seen.gateway, [topic]).keys() == before.keys()


def test_a_cluster_without_windows_is_healed_at_once_by_the_same_dag(
    mortal: LocalCluster,
    watch: Callable[..., Healed],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = watch(mortal, policies={"empty_broker": "heal"}, largest_throttle=FAST)
    topics = Topics(mortal)
    topic = topics.create([[1, 2], [2, 3], [3, 1]])
    topics.fill(topic, 60)
    path = tmp_path / "clusters.yaml"
    path.write_text("clusters: {main: {connection: kafka_default}}")
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))
    (start,) = seen.at(0, 10, 20)
    assert start["trigger_dag_id"] == "rebalance_in_window"
    run = seen.carry_out(start)
    assert run.state == "success", run.log
    assert held_by(seen, topic, 4)
    assert not seen.ledger.throttles(open_only=True)
