"""Tasks are killed, and Airflow, a part of it or all, while copies are under way; runs go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from local.airflow.standalone import COMPONENTS
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from local.workload import Workload
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.run.states import MoveState, PlanState
from tests.conftest import Topics
from tests.dags.clusters import Throttles, throttles_of, to
from tests.e2e.conftest import World
from tests.e2e.runs import (
    DAG,
    TIMEOUT_S,
    kill_task,
    killed_on_the_way,
    task_instance,
    trigger_planned,
    wait_for_question,
    wait_for_state,
)
from tests.ledger.people import approve_as
from tests.ledger.small_plans import move

SMALL, LARGE = 1, 6
"""Partitions: moved before Airflow is killed; in flight by then, or still to come."""
LARGE_BYTES = 20_000_000
SLOW, SLOWER, FAST = 220_000, 200_000, 50_000_000
"""What is asked for until Airflow is killed, and afterwards.

Copies have to outlast a busy machine's Airflow. Two of them come down to 190 kB/s at the least:
see `CRAWL` in `test_windows_by_schedule`.
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@dataclass
class Moving:
    """A run whose plan was approved.

    :param before: the throttles of other clients that were there before the run.
    """

    world: World
    gateway: ClusterGateway
    producer: Workload
    small: str
    large: str
    run_id: str
    plan_id: str
    before: Throttles

    def states(self) -> set[MoveState]:
        return set(self.world.ledger.view(self.plan_id).moves.values())

    def ask_for(self, rate_bytes_per_s: int) -> None:
        """Ask for another throttle: the run's trigger has to see it, and a worker to set it.

        A person has approved it: a plan that runs goes no faster than that.
        """
        approval = self.world.ledger.plan(self.plan_id).approval
        assert approval is not None
        faster = replace(approval.terms, rate_bytes_per_s=rate_bytes_per_s)
        approve_as(self.world.ledger, "admin", self.plan_id, faster)
        self.world.ledger.request_rate(self.plan_id, rate_bytes_per_s, "ann")

    def get_to_the_middle(self) -> None:
        """Until a move is done, others are in flight, and others wait."""
        wait_for_state(self.world, self.run_id, "progress", {"deferred"})
        wait_until(lambda: MoveState.DONE in self.states(), "the small move", TIMEOUT_S, 0.5)
        wait_for_state(self.world, self.run_id, "progress", {"deferred"})
        self.check_in_the_middle()

    def check_in_the_middle(self) -> None:
        """Copies go on, throttled, whatever has become of Airflow."""
        assert self.gateway.list_reassignments()
        assert self.states() == {MoveState.DONE, MoveState.ADMITTED, MoveState.PENDING}
        assert throttles_of(self.gateway, [self.small, self.large]) != self.before

    def check_done(self) -> None:
        """By the same run, each move once, nothing lost or left behind, and the webhook has it."""
        self.ask_for(FAST)
        state = self.world.airflow.api.wait_for_run(DAG, self.run_id, TIMEOUT_S)
        ledger, plan = self.world.ledger, self.world.ledger.plan(self.plan_id)
        assert (state, plan.state) == ("success", PlanState.DONE), plan.cause
        assert (plan.run_id, plan.approved_by) == (self.run_id, "admin")
        starts = ledger.reassignments(self.plan_id)
        assert sorted(start.partition for start in starts) == sorted(ledger.moves(self.plan_id))
        assert {start.outcome for start in starts} == {MoveState.DONE}
        assert self.states() == {MoveState.DONE}
        assert FAST in {change.limit_bytes_per_s for change in ledger.rate_changes(self.plan_id)}
        found = self.gateway.describe_topics([self.small, self.large])
        replicas = {
            topic: {partition.replicas for partition in found[topic].partitions.values()}
            for topic in found
        }
        assert replicas == {self.small: {(4, 1)}, self.large: {(3, 2)}}
        wait_until(
            lambda: throttles_of(self.gateway, list(found)) == self.before,
            "the throttles as they were",
        )
        assert not ledger.throttles(open_only=True)
        assert ledger.holder(plan.cluster_id) is None
        assert self._end_reported() == ["succeeded"]
        assert "waits for approval" not in self.world.airflow.api.page(f"plans/{self.plan_id}")
        self.producer.stop()
        read = self.producer.read_back()
        assert read.ok, read.problems

    def _end_reported(self) -> list[str]:
        def reported() -> list[str]:
            return [message["ended"] for message in self.world.webhook.ends_of(self.run_id)]

        return wait_until(reported, "the notifier", TIMEOUT_S)


@pytest.fixture
def moving(
    world: World,
    cluster: LocalCluster,
    topics: Topics,
    gateway: ClusterGateway,
    foreign_throttle: Callable[[str], Throttles],
) -> Iterator[Moving]:
    # The small ones need slots of other brokers: they would have to wait for the large ones.
    small, large = topics.create([[2, 1]] * SMALL), topics.create([[1, 2]] * LARGE)
    producer = Workload(
        cluster.client_settings(), {small: SMALL, large: LARGE}, messages_per_s=20, consume=False
    )
    producer.fill(LARGE * LARGE_BYTES, {small: 0.01})
    foreign = foreign_throttle(large)
    before = {**throttles_of(gateway, [small]), **foreign}
    wanted = to(small, {n: [4, 1] for n in range(SMALL)})
    wanted["partitions"] += to(large, {n: [3, 2] for n in range(LARGE)})["partitions"]
    moves = [move(small, n, (2, 1), (4, 1)) for n in range(SMALL)]
    moves += [move(large, n, (1, 2), (3, 2), LARGE_BYTES) for n in range(LARGE)]
    conf = {"reassignment": wanted, "throttle": SLOW, "max_moves_per_broker": 2, "approval": True}
    with producer:
        run = trigger_planned(world, cluster.cluster_id, f"dies-{large}", *moves, **conf)
        plan = wait_for_question(world, run)
        assert throttles_of(gateway, [small, large]) == before
        assert not gateway.list_reassignments()
        world.airflow.api.answer(DAG, run, "approve", "Approve")
        yield Moving(world, gateway, producer, small, large, run, plan.plan_id, before)


@pytest.mark.long
def test_an_approved_run_goes_on_when_its_tasks_and_then_all_of_airflow_were_killed(
    moving: Moving,
) -> None:
    world, airflow, run = moving.world, moving.world.airflow, moving.run_id
    wait_for_state(world, run, "execute", {"running"}, 0.3)
    assert kill_task(world, run, "execute"), "the task had ended before it could be killed"
    moving.get_to_the_middle()
    moving.ask_for(SLOWER)
    wait_until(
        lambda: killed_on_the_way(world, run, "progress"), "progress to be killed", TIMEOUT_S, 0.2
    )
    wait_for_state(world, run, "progress", {"deferred"})
    moving.check_in_the_middle()

    assert airflow.missing_components() == set()
    airflow.kill_component("triggerer")
    wait_until(lambda: airflow.missing_components() == {"triggerer"}, "its end to be noticed")
    airflow.kill()
    assert airflow.missing_components() == set(COMPONENTS)
    moving.check_in_the_middle()
    airflow.restart()
    assert airflow.missing_components() == set()
    moving.check_done()


@pytest.mark.long
def test_a_run_goes_on_when_the_triggerer_was_killed(moving: Moving) -> None:
    airflow = moving.world.airflow
    moving.get_to_the_middle()
    airflow.kill_component("triggerer")
    wait_until(lambda: airflow.missing_components() == {"triggerer"}, "its end")
    moving.check_in_the_middle()
    airflow.revive()
    moving.check_done()


@pytest.mark.long
def test_a_run_goes_on_when_the_scheduler_was_killed_with_its_tasks(moving: Moving) -> None:
    world = moving.world
    moving.get_to_the_middle()
    moving.ask_for(SLOWER)
    wait_for_state(world, moving.run_id, "progress", {"running"}, 0.05)
    world.airflow.kill_component("scheduler")
    wait_until(lambda: world.airflow.missing_components() == {"scheduler"}, "its end")
    dead = task_instance(world, moving.run_id, "progress")
    assert dead["state"] == "running", "the task had ended before it could be killed"
    moving.check_in_the_middle()
    world.airflow.revive()
    moving.check_done()
    anew = task_instance(world, moving.run_id, "progress")
    assert anew["try_number"] == dead["try_number"] + 1
