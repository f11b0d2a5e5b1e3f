"""The simulator: copies share links fairly, and take the time that their bytes need."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from benchmarks.simulation.cluster import BrokerDies, BrokerReturns, ModelledCluster
from benchmarks.simulation.simulator import Asked, At, Simulation
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.admission.fair_share import max_min_rates
from tests.ledger.small_plans import make_plan, move

T0 = datetime(2030, 1, 1, tzinfo=UTC)
BROKERS = (1, 2, 3, 4, 5)
POLICY = Policy(100, throttle_efficiency=1.0, stall_timeout_s=120)
ONE = make_plan("p", move("t", 0, (1, 2), (3, 2), 3000))


def test_flows_share_what_the_most_loaded_link_leaves() -> None:
    # Links 0 and 1 go out, 2 and 3 come in; link 0 carries three flows, 1 and 3 what is left.
    source, into = np.array([0, 0, 0, 1]), np.array([2, 2, 3, 3])
    assert max_min_rates(source, into, np.full(4, 90.0)).tolist() == [30.0, 30.0, 30.0, 60.0]


def test_a_copy_takes_its_bytes_over_the_rate_and_ends_at_the_next_poll() -> None:
    plan = make_plan("p", move("t", 0, (1, 2), (3, 2), 1234))
    simulation = Simulation(plan, ModelledCluster(BROKERS, plan.moves), POLICY, T0)
    assert simulation.run() is PlanState.DONE
    assert simulation.elapsed_s == 15.0


def test_brokers_deliver_only_a_part_of_the_throttle() -> None:
    plan = make_plan("p", move("t", 0, (1, 2), (3, 2), 1000))
    half = Policy(100, throttle_efficiency=0.5)
    simulation = Simulation(plan, ModelledCluster(BROKERS, plan.moves), half, T0)
    assert simulation.run() is PlanState.DONE
    assert simulation.elapsed_s == 20.0


def test_a_throttle_changed_in_mid_run_changes_the_pace() -> None:
    slower = At(9, Asked(rate_bytes_per_s=50))  # set at 10 s, when 2000 bytes are left
    simulation = Simulation(ONE, ModelledCluster(BROKERS, ONE.moves), POLICY, T0, [slower])
    assert simulation.run() is PlanState.DONE
    assert simulation.elapsed_s == 50.0


def test_a_copy_goes_on_where_it_was_when_its_broker_is_back() -> None:
    away = [At(11, BrokerDies(3)), At(51, BrokerReturns(3))]
    simulation = Simulation(ONE, ModelledCluster(BROKERS, ONE.moves), POLICY, T0, away)
    assert simulation.run() is PlanState.DONE
    assert simulation.elapsed_s == 70.0


def test_a_copy_is_read_from_the_next_leader_when_its_leader_dies() -> None:
    simulation = Simulation(
        ONE, ModelledCluster(BROKERS, ONE.moves), POLICY, T0, [At(11, BrokerDies(1))]
    )
    assert simulation.run() is PlanState.DONE
    assert simulation.elapsed_s == 30.0
    assert simulation.cluster.partitions[TopicPartition("t", 0)].leader == 2


def test_a_refused_move_fails_and_the_others_are_made() -> None:
    plan = make_plan("p", move("t", 0, (1, 2), (3, 2)), move("t", 1, (1, 2), (3, 2)))
    cluster = ModelledCluster(BROKERS, plan.moves, refused=[TopicPartition("t", 0)])
    simulation = Simulation(plan, cluster, POLICY, T0)
    assert simulation.run() is PlanState.FAILED
    assert set(simulation.journal.states.values()) == {MoveState.FAILED, MoveState.DONE}
