"""The time left: from what the busiest broker lacks, at the pace that is measured there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.cluster.model import PartitionState, ReplicaId
from include.execution.backlog import Backlog
from include.execution.decide import decide
from include.execution.eta import EtaError, Remaining, Throttle, eta_errors, with_eta
from include.execution.model import (
    Action,
    LedgerView,
    MoveState,
    Observation,
    PlanState,
    Policy,
    ProgressSample,
)
from include.execution.progress import admitted, measure, replica_statuses
from include.execution.rates import RateChange, RateReason
from include.execution.simulation.cluster import ModelledCluster
from include.execution.simulation.quota import ThrottledCopies
from include.execution.simulation.simulator import Asked, At, Simulation
from include.planning.plan import Plan
from tests.execution.observed import POLICY, T0, TP, in_flight, looks, running, seen
from tests.execution.properties import few_and_many, property_of
from tests.ledger.small_plans import make_plan, move

RATE = 10_000_000
MB = 1_000_000


@dataclass
class Foretold:
    """`decide`, with a sample of each poll as production records it.

    :param expected: the part of the throttle that Rehome expects brokers to deliver; None = as
        in production.
    """

    expected: float | None = None
    samples: list[ProgressSample] = field(default_factory=list)

    def __call__(
        self,
        plan: Plan,
        view: LedgerView,
        seen: Observation,
        now: datetime,
        policy: Policy,
        backlog: Backlog,
    ) -> list[Action]:
        states = {m.partition: view.moves.get(m.partition, MoveState.PENDING) for m in plan.moves}
        whole = replace(view, moves=states)
        throttle = Throttle.of(view, policy)
        if self.expected is not None:
            throttle = replace(throttle, expected_part=self.expected)
        statuses = replica_statuses(admitted(plan, whole), seen)
        sample = measure(plan, whole, seen, statuses, self.samples)
        left = Remaining.of(backlog, seen, policy.pace(policy.rate_bytes_per_s))
        self.samples.append(with_eta(sample, self.samples, left, policy, throttle))
        return decide(plan, view, seen, now, policy, backlog)


def random_plan(brokers: int, moves_per_broker: int, sigma: float, seed: int) -> Plan:
    """Each move brings one replica to a random broker; sizes are log-normal."""
    random = np.random.default_rng(seed)
    count = moves_per_broker * brokers
    sizes = random.lognormal(np.log(30 * MB), sigma, count).astype(int).tolist()
    moves = []
    for number, size in enumerate(sizes):
        a, b, c = (random.permutation(brokers)[:3] + 1).tolist()
        moves.append(move("t", number, (a, b), (a, c), size))
    return make_plan("p", *moves)


def busiest_bytes(plan: Plan) -> int:
    view, sight = running(plan), seen(plan)
    return Remaining.of(Backlog.of(plan, view, sight), sight, POLICY.pace(RATE)).busiest_bytes


def run(plan: Plan, policy: Policy, expected: float, *events: At) -> list[ProgressSample]:
    brokers = {broker for m in plan.moves for broker in (*m.current, *m.target)}
    foretold = Foretold(expected)
    cluster = ModelledCluster(brokers, plan.moves)
    simulation = Simulation(plan, cluster, policy, T0, events, decide_by=foretold)
    assert simulation.run() is PlanState.DONE
    return foretold.samples


def check_promise(
    plan: Plan, delivered: float, expected: float, reaction_s: float, least_s: float
) -> None:
    """After the first tenth of the bytes, the foretold end is right to a tenth of the time.

    :param least_s: no execution is faster at what is delivered.
    """
    policy = Policy(
        round(busiest_bytes(plan) / least_s / delivered),
        throttle_efficiency=delivered,
        poll_interval_s=reaction_s,
        reaction_s=reaction_s,
        max_partitions_in_flight=1000,
    )
    errors = {e.tenth: e.worst for e in eta_errors(run(plan, policy, expected)) if e.tenth >= 1}
    assert errors
    assert max(map(abs, errors.values())) <= 0.10, errors


plans = st.builds(
    random_plan, st.integers(3, 6), st.integers(15, 30), st.floats(0, 1.2), st.integers(0, 10**6)
)
reactions_s = st.sampled_from([5.0, 15.0])


@few_and_many(8, 500)
def test_the_eta_keeps_its_promise_where_brokers_deliver_what_is_expected(examples: int) -> None:
    @property_of(examples)
    @given(plans, st.floats(0.6, 1.0), reactions_s, st.floats(16, 100))
    def holds(plan: Plan, delivered: float, reaction_s: float, polls: float) -> None:
        check_promise(plan, delivered, delivered, reaction_s, polls * reaction_s)

    holds()


@few_and_many(8, 500)
def test_the_eta_of_a_long_plan_keeps_its_promise_whatever_brokers_deliver(examples: int) -> None:
    @property_of(examples)
    @given(plans, st.floats(0.6, 1.0), reactions_s, st.floats(600, 1000))
    def holds(plan: Plan, delivered: float, reaction_s: float, least_s: float) -> None:
        check_promise(plan, delivered, 0.85, reaction_s, least_s)

    holds()


def test_a_throttle_changed_in_mid_run_changes_the_eta_at_once() -> None:
    plan = random_plan(4, 20, 0.5, seed=1)
    policy = replace(POLICY, rate_bytes_per_s=round(busiest_bytes(plan) / 600))
    half = Asked(rate_bytes_per_s=policy.rate_bytes_per_s // 2)
    samples = run(plan, policy, 1.0, At(297.0, half))
    changed_at = T0 + timedelta(seconds=300)
    before = next(sample for sample in samples if sample.sampled_at == changed_at)
    after = next(sample for sample in samples if sample.sampled_at > changed_at)
    assert before.eta_s == pytest.approx(300, rel=0.05)
    assert after.eta_s == pytest.approx(600, rel=0.05)


def test_the_busiest_broker_counts_and_not_all_bytes() -> None:
    """A thousand bytes go to broker 3, and as many to others: they pass side by side."""
    plan = make_plan("p", move("t", 0, (1, 2), (1, 3), 1000), move("t", 1, (2, 4), (2, 5), 900))
    view, sight = running(plan), seen(plan, live=(1, 2, 3, 4, 5))
    left = Remaining.of(Backlog.of(plan, view, sight), sight, POLICY.pace(RATE))
    assert (left.busiest_bytes, left.waiting, left.in_flight) == (1000, 2, 0)


def test_what_was_copied_is_not_left_and_what_has_arrived_neither() -> None:
    plan = make_plan("p", move("t", 0, (1,), (3,), 1000), move("t", 1, (1,), (3,), 500))
    view, sight = in_flight(plan)
    arrived = {TP[1]: PartitionState(3, (3,), frozenset({3}))}
    sight = replace(
        sight,
        sizes={ReplicaId(*TP[0], 3): 400},
        partitions={**sight.partitions, **arrived},
        ongoing={TP[0]: sight.ongoing[TP[0]]},
    )
    left = Remaining.of(Backlog.of(plan, view, sight), sight, POLICY.pace(RATE))
    assert (left.busiest_bytes, left.copying) == (600, 1)


def test_an_empty_partition_counts_for_its_part_of_a_slot() -> None:
    plan = make_plan("p", *(move("t", n, (1,), (3,), 0) for n in range(8)))
    policy = Policy(1000, throttle_efficiency=1.0, reaction_s=40.0)
    view, sight = running(plan), seen(plan)
    left = Remaining.of(Backlog.of(plan, view, sight), sight, policy.pace(1000))
    assert left.busiest_bytes == 8 * 1000  # ten at a time in each of four slots, for 40 s


def test_nothing_is_foretold_while_nothing_comes_through() -> None:
    history, hundred = looks((0, 9000), (30, 9000), (60, 9000)), Throttle(100, 1.0)
    stuck = with_eta(history[-1], history[:-1], Remaining(9000, 0, 1, 1), POLICY, hundred)
    assert stuck.eta_s is None
    ended = with_eta(history[-1], history[:-1], Remaining(0, 0, 0, 0), POLICY, hundred)
    assert ended.eta_s == 0


def test_of_what_brokers_are_told_the_governors_target_is_expected() -> None:
    plan, policy = make_plan("p"), replace(POLICY, throttle_efficiency=0.9)
    told = RateChange(T0, 1250, 1000, 1000, RateReason.RAISED, "they deliver too little")
    view = running(plan, rate_bytes_per_s=1250)
    assert Throttle.of(replace(view, rates=(told,)), policy) == Throttle(1250, pytest.approx(0.72))
    assert Throttle.of(view, policy) == Throttle(1250, 0.9)


def test_when_every_copy_is_complete_no_time_is_left() -> None:
    complete = Remaining(0, 0, 3, 0)
    (sample,) = looks((0, 0))
    assert with_eta(sample, [], complete, POLICY, Throttle(1000, 1.0)).eta_s == 0


brokers_plans = st.builds(
    random_plan, st.integers(4, 6), st.integers(12, 25), st.floats(0, 0.8), st.integers(0, 10**6)
)


@few_and_many(8, 60)
def test_on_brokers_that_keep_quotas_the_eta_is_off_by_a_tenth_at_most_as_a_rule(
    examples: int,
) -> None:
    """From a minute on, as in production: looks, wakes, quota windows, a governed rate."""
    worst: list[float] = []

    @property_of(examples)
    @given(brokers_plans, st.floats(0.3, 1.5), st.floats(1, 4), st.floats(66, 150))
    def tried(plan: Plan, look_s: float, wake: float, least_s: float) -> None:
        foretold, brokers = Foretold(), range(1, 7)
        policy = Policy(round(busiest_bytes(plan) / least_s), reaction_s=15.0)
        copies = ThrottledCopies(brokers, look_s)
        cluster = ModelledCluster(brokers, plan.moves, copies=copies)
        simulation = Simulation(
            plan, cluster, policy, T0, decide_by=foretold, governed=True, wake_s=wake
        )
        assert simulation.run() is PlanState.DONE
        errors = [abs(e.worst) for e in eta_errors(foretold.samples) if e.tenth >= 1]
        worst.append(max(errors))

    tried()
    assert np.quantile(worst, 0.75) <= 0.10, worst
    assert max(worst) <= 0.25, worst


def foretold(*points: tuple[float, int, float | None]) -> list[ProgressSample]:
    """Samples of a plan of 100 bytes: seconds, bytes done, ETA."""
    return [
        ProgressSample(
            T0 + timedelta(seconds=at), done, 100, 0, 2, 1, eta_s=eta, busiest_bytes=100 - done
        )
        for at, done, eta in points
    ]


def test_errors_of_the_eta_are_told_by_tenths_of_the_bytes() -> None:
    samples = foretold(
        (0, 0, 110), (20, 15, 85), (22, 16, 60), (50, 50, None), (99, 99, None), (101, 100, 0)
    )
    assert eta_errors(samples) == (EtaError(0, 0.1), EtaError(1, -0.18))
    assert eta_errors(samples[:1]) == ()


def test_the_end_is_that_of_the_last_copy_and_not_when_the_worker_has_noticed_it() -> None:
    copied = foretold((0, 0, 100), (50, 50, 60), (99, 99, 1), (101, 100, 0))
    assert eta_errors([*copied, *foretold((109, 100, 0))]) == eta_errors(copied)
    assert eta_errors(copied)[1] == EtaError(5, 0.1)


def test_of_a_plan_that_has_paused_only_what_came_after_is_judged() -> None:
    night = foretold(
        (0, 0, 5),
        (10, 50, 5),
        (10_000, 50, 60),
        (10_050, 90, 40),
        (10_099, 99, None),
        (10_101, 100, 0),
    )
    assert eta_errors(night) == (EtaError(5, -0.4), EtaError(9, -0.1))
