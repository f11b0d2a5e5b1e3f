"""The predicted time: a range that contains the true one, as wide as the uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.simulation.cluster import ModelledCluster
from benchmarks.simulation.quota import ThrottledCopies
from benchmarks.simulation.simulator import Simulation
from rehome.domain.kafka import (
    Broker,
    ClusterDescription,
    Partial,
    PartitionState,
    ReplicaId,
    TopicDescription,
    TopicPartition,
)
from rehome.domain.plan.plan import Plan
from rehome.domain.run.flows import FETCH_BYTES, QUOTA_WINDOW_S
from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import PlanState
from rehome.domain.time_range import TimeRange
from rehome.execution.admission.slots import Direction, Slot
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.estimate.airflow_times import AirflowTimes
from rehome.execution.estimate.estimate import BURST_S, Beforehand, around, before_start
from tests.examples import few_and_many
from tests.execution.observed import T0
from tests.execution.random_plans import MB, busiest_bytes, random_plan
from tests.ledger.small_plans import make_plan, move

AT_ONCE = AirflowTimes(TimeRange(0, 0), TimeRange(0, 0), 0.0)
ONE = make_plan("p", move("t", 0, (1, 2), (1, 3), 600 * MB))


def reading(plan: Plan) -> ClusterState:
    """The cluster as the plan found it."""
    partitions = {
        m.partition.partition: PartitionState(m.current[0], m.current, frozenset(m.current))
        for m in plan.moves
    }
    brokers = {b: Broker(b, "127.0.0.1", 9000 + b, None) for b in range(1, 10)}
    return ClusterState(
        taken_at=T0,
        cluster=ClusterDescription("c1", 1, brokers, None),
        topics={"t": TopicDescription("t", "", False, partitions)},
        ongoing={},
        log_dirs=Partial([]),
        missing_rights=(),
        min_isr={},
        sizes={
            ReplicaId(*m.partition, broker): m.size_bytes
            for m in plan.moves
            for broker in m.current
        },
    )


def predicted(
    plan: Plan,
    rate: int,
    airflow: AirflowTimes = AT_ONCE,
    growth: Mapping[TopicPartition, float] | None = None,
    held: Mapping[Slot, int] | None = None,
) -> TimeRange:
    terms = Beforehand(Policy(rate), rate, airflow, held or {}, growth or {})
    found = before_start(plan, reading(plan).observation(plan), terms)
    assert found is not None
    return found


def test_a_throttle_of_nothing_never_ends() -> None:
    sight = reading(ONE).observation(ONE)
    nothing = Beforehand(Policy(1), 0, AT_ONCE, {}, {})
    assert before_start(ONE, sight, nothing) is None
    held = Beforehand(Policy(1), 10 * MB, AT_ONCE, {Slot(Direction.IN, 3): 0}, {})
    assert before_start(ONE, sight, held) is None


def test_a_leftover_rate_on_one_broker_is_what_the_plan_waits_for() -> None:
    held = predicted(ONE, 10 * MB, held={Slot(Direction.IN, 3): 1 * MB})
    assert held.holds(600)
    assert predicted(ONE, 10 * MB, held={Slot(Direction.IN, 4): 1 * MB}) == predicted(ONE, 10 * MB)


def test_a_plan_that_needs_a_dead_broker_has_no_end() -> None:
    sight = replace(reading(ONE).observation(ONE), live_brokers=frozenset({1, 2}))
    assert before_start(ONE, sight, Beforehand(Policy(MB), MB, AT_ONCE, {}, {})) is None


@pytest.mark.parametrize(
    ("done", "least_s", "most_s"), [(5, 70.0, 130.0), (50, 80.0, 120.0), (99, 0.0, 200.0)]
)
def test_what_a_poll_shows_is_off_by_a_part_of_the_whole_time(
    done: int, least_s: float, most_s: float
) -> None:
    found = around(ProgressSample(T0, done, 100, 0, 3, 3, eta_s=100.0))
    assert found is not None
    assert found.least_s == pytest.approx(least_s, abs=5)
    assert found.most_s == pytest.approx(most_s, abs=5)
    assert around(ProgressSample(T0, done, 100, 0, 3, 3)) is None


def test_the_time_of_the_bytes_lies_in_the_range() -> None:
    found = predicted(ONE, 10 * MB)
    assert found.holds(60)
    assert found.least_s > 50
    assert found.most_s < 90


def test_writes_during_the_copies_lengthen_the_predicted_time() -> None:
    growing = predicted(ONE, 10 * MB, growth={TopicPartition("t", 0): 2.0 * MB})
    assert growing.least_s == predicted(ONE, 10 * MB).least_s
    assert growing.most_s == pytest.approx(predicted(ONE, 10 * MB).most_s + 12, abs=3)


def test_how_soon_airflow_acts_widens_the_range_at_both_ends() -> None:
    slow = replace(AT_ONCE, start_s=TimeRange(2, 8), wake_s=TimeRange(1, 4), poll_interval_s=5.0)
    at_once, later = predicted(ONE, 10 * MB), predicted(ONE, 10 * MB, slow)
    assert later.least_s == at_once.least_s + 2 + 1
    assert later.most_s == at_once.most_s + 8 + 4


def test_a_plan_whose_moves_wait_for_free_slots_takes_as_many_steps_of_airflow() -> None:
    small = make_plan("p", *(move("t", n, (1, 2), (1, 3), 10 * MB) for n in range(8)))
    slow = replace(AT_ONCE, wake_s=TimeRange(30, 40), poll_interval_s=5.0)
    found = predicted(small, 100 * MB, slow)
    assert found.least_s > 35 + 30 - BURST_S
    assert found.most_s > 45 + 40


def test_fetches_that_are_large_against_the_rate_are_reckoned_with() -> None:
    """Four copies bring 4 MiB in each quota window of 11 s, whatever lower rate is set."""
    four = make_plan("p", *(move("t", n, (1, 2), (1, 3), 25 * MB) for n in range(4)))
    slow, slower = predicted(four, 300_000), predicted(four, 200_000)
    assert slow.least_s == slower.least_s
    assert slow.least_s == pytest.approx(100 * MB / (4 * FETCH_BYTES / QUOTA_WINDOW_S), abs=12)
    assert slower.most_s > 1.4 * slow.most_s


@pytest.mark.slow
@few_and_many(10, 300)
def test_nine_of_ten_plans_on_brokers_that_keep_quotas_take_as_long_as_predicted(
    examples: int,
) -> None:
    """As in production: polls, wakes, quota windows, a governed rate; 30 s to 10 min."""
    random = np.random.default_rng(7)
    inside, widths = [], []
    for seed in range(examples):
        poll_s, wake_s, least_s = random.uniform((0.3, 1, 30), (1.5, 6, 600)).tolist()
        brokers, moves = random.integers((4, 3), (7, 26)).tolist()
        plan = random_plan(brokers, moves, random.uniform(0, 1.2), seed)
        rate = round(busiest_bytes(plan) / least_s)
        copies = ThrottledCopies(range(1, 7), poll_s)
        cluster = ModelledCluster(range(1, 7), plan.moves, copies=copies)
        policy = Policy(rate, reaction_s=15.0)
        simulation = Simulation(plan, cluster, policy, T0, governed=True, wake_s=wake_s)
        assert simulation.run() is PlanState.DONE
        airflow = AirflowTimes(TimeRange(0, 0), TimeRange(0.7 * wake_s, 1.3 * wake_s), 5.0)
        terms = Beforehand(policy, rate, airflow, {}, {})
        found = before_start(plan, reading(plan).observation(plan), terms)
        assert found is not None
        inside.append(found.holds((simulation.now - T0).total_seconds()))
        widths.append(found.most_s / found.least_s)
    assert np.mean(inside) >= 0.9
    assert np.median(widths) < 1.6
