"""The makespan of plans in the simulator, relative to the least possible time."""

from __future__ import annotations

import pytest

from benchmarks.simulation.cluster import ModelledCluster
from benchmarks.simulation.simulator import Simulation
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import PlanState
from tests.execution.observed import T0
from tests.execution.random_plans import MB, busiest_bytes, random_plan

FEW_IN_FLIGHT = 60, 10, 0.7, 0, 1
ONE_REPLICA = 12, 12, 0.7, 0, 1
THREE_REPLICAS = 8, 12, 0.7, 1, 3


def over_bound(plan: Plan, brokers: range, policy: Policy) -> float:
    """Makespan over what the busiest broker's bytes take."""
    simulation = Simulation(plan, ModelledCluster(brokers, plan.moves), policy, T0)
    assert simulation.run() is PlanState.DONE
    return simulation.elapsed_s * policy.rate_bytes_per_s / busiest_bytes(plan)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("drawn", "at_once"), [(FEW_IN_FLIGHT, 60), (ONE_REPLICA, 1000), (THREE_REPLICAS, 1000)]
)
def test_the_busiest_broker_copies_all_the_time(
    drawn: tuple[int, int, float, int, int], at_once: int
) -> None:
    """Also where only one partition for each broker may be in flight, and where moves need four."""
    policy = Policy(MB, max_partitions_in_flight=at_once, throttle_efficiency=1.0)
    assert over_bound(random_plan(*drawn), range(1, drawn[0] + 1), policy) <= 1.03
