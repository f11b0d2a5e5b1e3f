"""The time left: the bytes left of the busiest broker over the pace measured there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.execution.foretelling import Foretelling
from benchmarks.simulation.cluster import ModelledCluster
from benchmarks.simulation.quota import ThrottledCopies
from benchmarks.simulation.simulator import Asked, At, Simulation
from rehome.domain.kafka import BrokerId, PartitionState, ReplicaId
from rehome.domain.plan.plan import Plan
from rehome.domain.run.flows import FlowSample, RateChange, RateReason
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.progress import ProgressSample
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import PlanState
from rehome.execution.admission.backlog import Backlog
from rehome.execution.admission.fair_share import Copies
from rehome.execution.estimate import projection
from rehome.execution.progress.eta import Remaining, eta_errors, foretell
from tests.examples import ALL, few_and_many, property_of
from tests.execution.observed import POLICY, T0, TP, flows, in_flight, running, seen
from tests.execution.random_plans import busiest_bytes, random_plan, tiny
from tests.ledger.small_plans import make_plan, move

RATE = 10_000_000
SOME_POLLS = 1 if ALL else 6
"""Of a long simulation, how many polls there are for each at which the rest is played out."""


def run(
    plan: Plan,
    policy: Policy,
    delivered: float,
    *events: At,
    wake_s: float | None = None,
    polls: int = 1,
) -> list[ProgressSample]:
    brokers = {broker for m in plan.moves for broker in (*m.current, *m.target)}
    foretelling = Foretelling(polls)
    cluster = ModelledCluster(brokers, plan.moves)
    simulation = Simulation(
        plan,
        cluster,
        policy,
        T0,
        events,
        decide_by=foretelling,
        delivered=delivered,
        wake_s=wake_s,
    )
    assert simulation.run() is PlanState.DONE
    return foretelling.samples


def check_promise(
    plan: Plan,
    delivered: float,
    expected: float,
    reaction_s: float,
    least_s: float,
    polls: int = 1,
) -> None:
    """After the first tenth of the bytes, the foretold end is right to a tenth of the time.

    :param least_s: no execution is faster at what is delivered.
    """
    policy = Policy(
        round(busiest_bytes(plan) / least_s / delivered),
        throttle_efficiency=expected,
        poll_interval_s=reaction_s,
        reaction_s=reaction_s,
        max_partitions_in_flight=1000,
    )
    samples = run(plan, policy, delivered, polls=polls)
    errors = {e.tenth: e.worst for e in eta_errors(samples) if e.tenth >= 1}
    assert errors
    assert max(map(abs, errors.values())) <= 0.10, errors


plans = st.builds(
    random_plan,
    st.integers(3, 6),
    st.integers(15, 30),
    st.floats(0, 1.2),
    st.integers(0, 10**6),
    st.integers(1, 3),
    leaders=st.booleans(),
)
reactions_s = st.sampled_from([5.0, 15.0])


@pytest.mark.slow
@few_and_many(3, 500)
def test_the_eta_keeps_its_promise_where_brokers_deliver_what_is_expected(examples: int) -> None:
    @property_of(examples)
    @given(plans, st.floats(0.6, 1.0), reactions_s, st.floats(16, 100))
    @example(random_plan(3, 17, 0.0, 17), 1.0, 5.0, 17)
    def holds(plan: Plan, delivered: float, reaction_s: float, polls: float) -> None:
        check_promise(plan, delivered, delivered, reaction_s, polls * reaction_s)

    holds()


@pytest.mark.slow
@few_and_many(1, 500)
def test_the_eta_of_a_long_plan_keeps_its_promise_whatever_brokers_deliver(examples: int) -> None:
    @property_of(examples)
    @given(plans, st.floats(0.6, 1.0), reactions_s, st.floats(600, 1000))
    @example(random_plan(3, 15, 0.0, 15), 1.0, 5.0, 734)
    @example(random_plan(3, 24, 1.0, 10925), 1.0, 5.0, 600)
    @example(random_plan(5, 15, 0.0, 0), 0.609, 5.0, 600)
    def holds(plan: Plan, delivered: float, reaction_s: float, least_s: float) -> None:
        check_promise(plan, delivered, 0.85, reaction_s, least_s, SOME_POLLS)

    holds()


@pytest.mark.slow
def test_waits_for_other_brokers_are_predicted() -> None:
    """What the busiest broker lacks takes a tenth less than the plan does."""
    plan = random_plan(5, 4, 0.8, seed=2)
    busiest_s = 600
    policy = replace(POLICY, rate_bytes_per_s=round(busiest_bytes(plan) / busiest_s))
    first, *_, last = run(plan, policy, 1.0)
    took_s = (last.sampled_at - first.sampled_at).total_seconds()
    assert took_s > 1.1 * busiest_s
    assert first.eta_s == pytest.approx(took_s, rel=0.02)


class OneSlow(Copies):
    """Broker 2 has a disk that is not up to the throttle."""

    def set_rate(self, rate_bytes_per_s: float, live: Collection[BrokerId]) -> None:
        super().set_rate(rate_bytes_per_s, live)
        self.set_rates(lambda slot: rate_bytes_per_s * (0.5 if slot.broker == 2 else 1.0))


@pytest.mark.slow
def test_a_slow_broker_is_found_out_before_the_others_have_ended() -> None:
    plan = random_plan(5, 20, 0.5, seed=4)
    policy = replace(POLICY, rate_bytes_per_s=round(busiest_bytes(plan) / 900), reaction_s=5.0)
    cluster = ModelledCluster(range(1, 6), plan.moves, copies=OneSlow(range(1, 6)))
    foretelling = Foretelling(SOME_POLLS)
    assert Simulation(plan, cluster, policy, T0, decide_by=foretelling).run() is PlanState.DONE
    errors = {error.tenth: error.worst for error in eta_errors(foretelling.samples)}
    assert errors[0] < -0.4
    assert max(abs(errors[tenth]) for tenth in range(3, 10)) <= 0.10, errors


@pytest.mark.slow
def test_a_throttle_changed_in_mid_run_changes_the_eta_at_once() -> None:
    plan = random_plan(4, 20, 0.5, seed=1)
    rate = round(busiest_bytes(plan) / 600)
    policy = replace(POLICY, rate_bytes_per_s=rate, poll_interval_s=15.0)
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
    assert (left.busiest_bytes, left.waiting, len(left.copying)) == (1000, 2, 0)


def test_bytes_already_copied_are_not_counted_as_left() -> None:
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
    assert (left.busiest_bytes, len(left.copying)) == (600, 1)


def test_an_empty_partition_counts_for_its_part_of_a_slot() -> None:
    plan = make_plan("p", *(move("t", n, (1,), (3,), 0) for n in range(8)))
    policy = Policy(1000, throttle_efficiency=1.0, reaction_s=40.0)
    view, sight = running(plan), seen(plan)
    left = Remaining.of(Backlog.of(plan, view, sight), sight, policy.pace(1000))
    assert left.busiest_bytes == 8 * 1000  # ten at a time in each of four slots, for 40 s


def eta_s(
    plan: Plan, view: LedgerView, sight: Observation, policy: Policy = POLICY
) -> float | None:
    """At a poll whose only predecessors are the view's flows."""
    return foretell(view, Backlog.of(plan, view, sight), sight, policy, {}, None, ()).eta_s


def test_nothing_is_predicted_while_nothing_comes_through() -> None:
    plan = make_plan("p", move("t", 0, (1,), (3,), 9000))
    view, sight = in_flight(plan)
    assert eta_s(plan, view, sight) == pytest.approx(9000 / POLICY.rate_bytes_per_s)
    stuck = flows((0, 90_000), (15, 90_000), (30, 90_000), throttle=POLICY.rate_bytes_per_s)
    later = replace(sight, taken_at=T0 + timedelta(seconds=30))
    assert eta_s(plan, replace(view, flows=tuple(stuck)), later) is None


def test_bytes_after_a_poll_without_an_answer_span_a_longer_time_and_do_not_count() -> None:
    plan = make_plan("p", move("t", 0, (1,), (3,), 9000))
    view, sight = in_flight(plan)
    sight = replace(sight, taken_at=T0 + timedelta(seconds=10))
    (polled,) = flows((0, 9000), (5, 9000))

    def reported(look_before: FlowSample) -> list[str]:
        known = replace(view, flows=(look_before,))
        before = T0 + timedelta(seconds=5)
        backlog = Backlog.of(plan, view, sight)
        foretold = foretell(known, backlog, sight, POLICY, {}, before, ())
        assert foretold.flows is not None
        return [flow.direction for flow in foretold.flows.flows]

    assert reported(polled) == ["in", "out"]
    assert reported(replace(polled, silent=(3,))) == []
    earlier = timedelta(seconds=3)
    assert reported(replace(polled, silent=(3,), at=polled.at - earlier)) == ["in", "out"]


def test_moves_that_wait_for_a_dead_broker_are_not_predicted() -> None:
    plan = make_plan("p", move("t", 0, (1,), (3,), 9000), move("t", 1, (1,), (4,), 2000))
    view, sight = in_flight(plan)
    assert eta_s(plan, view, sight) == pytest.approx(11)
    assert eta_s(plan, view, replace(sight, live_brokers=frozenset({1, 4}))) == pytest.approx(2)
    assert eta_s(plan, view, replace(sight, live_brokers=frozenset({1}))) is None
    assert eta_s(plan, running(plan), replace(sight, live_brokers=frozenset({1}))) is None


@pytest.mark.slow
def test_the_cap_on_partitions_in_flight_bounds_large_plans_too() -> None:
    """A hundred brokers that could all be busy, and few partitions that may be moved at once."""
    plan = random_plan(100, 6, 0.3, seed=1)
    policy = replace(POLICY, rate_bytes_per_s=RATE, max_partitions_in_flight=33, reaction_s=5.0)
    first, *_, last = samples = run(plan, policy, 1.0)
    errors = {error.tenth: error.worst for error in eta_errors(samples)}
    assert max(abs(errors[tenth]) for tenth in range(1, 10)) <= 0.10, errors
    assert (last.sampled_at - first.sampled_at).total_seconds() > 2 * busiest_bytes(plan) / RATE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("drawn", "at_once", "wake_s", "from_tenth"),
    [
        pytest.param((300, 6, 0.3, 1), 100, 10.0, 1, marks=pytest.mark.long),
        ((50, 40, 0.5, 0), 100, 10.0, 1),
        pytest.param((50, 40, 0.5, 0), 100, 2.0, 2, marks=pytest.mark.long),
        pytest.param((50, 40, 0.5, 0), 100, 14.0, 3, marks=pytest.mark.long),
    ],
)
def test_how_soon_the_next_moves_start_counts_where_few_may_be_in_flight(
    monkeypatch: pytest.MonkeyPatch,
    drawn: tuple[int, int, float, int],
    at_once: int,
    wake_s: float,
    from_tenth: int,
) -> None:
    check_large(monkeypatch, random_plan(*drawn), at_once, wake_s, from_tenth)


@pytest.mark.slow
def test_how_soon_the_next_moves_start_counts_where_tiny_ones_share_slots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_large(monkeypatch, tiny(random_plan(10, 800, 1.0, 0)), 1000, 2.0, 5)


def check_large(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, at_once: int, wake_s: float, from_tenth: int
) -> None:
    """The promise, where Airflow wakes as set (10 s), or otherwise, which is to be measured first.

    Only the beginning is played out, as it is of plans with thousands of moves more.
    """
    monkeypatch.setattr(projection, "WORK", 250_000)
    policy = replace(
        POLICY, rate_bytes_per_s=RATE, max_partitions_in_flight=at_once, reaction_s=15.0
    )
    samples = run(plan, policy, 1.0, wake_s=wake_s, polls=SOME_POLLS)
    errors = [error for error in eta_errors(samples) if error.tenth >= from_tenth]
    assert max(abs(error.worst) for error in errors) <= 0.10, errors


def test_the_governors_target_is_the_expected_delivery() -> None:
    plan = make_plan("p", move("t", 0, (1,), (3,), 72_000))
    policy, sight = replace(POLICY, throttle_efficiency=0.9), seen(plan)
    reported = RateChange(T0, 1250, 1000, 1000, RateReason.RAISED, "they deliver too little")
    view = running(plan, rate_bytes_per_s=1250)
    assert eta_s(plan, replace(view, rates=(reported,)), sight, policy) == pytest.approx(72 / 0.9)
    assert eta_s(plan, view, sight, policy) == pytest.approx(72 / 1.25 / 0.9)


def test_when_every_copy_is_complete_no_time_is_left() -> None:
    plan = make_plan("p", move("t", 0, (1,), (3,), 9000))
    view, sight = in_flight(plan)
    arrived = {TP[0]: PartitionState(3, (3,), frozenset({3}))}
    assert eta_s(plan, view, replace(sight, partitions=arrived, ongoing={})) == 0


@pytest.mark.slow
@few_and_many(10, 200)
def test_on_brokers_that_keep_quotas_the_eta_is_off_by_a_tenth_at_most_as_a_rule(
    examples: int,
) -> None:
    """From a minute on, as in production: polls, wakes, quota windows, a governed rate."""
    random = np.random.default_rng(0)
    worst: list[float] = []
    for seed in range(examples):
        poll_s, wake_s, least_s = random.uniform((0.3, 1, 66), (1.5, 4, 150)).tolist()
        count, moves = random.integers((4, 12), (7, 26)).tolist()
        plan = random_plan(count, moves, random.uniform(0, 0.8), seed)
        foretelling, brokers = Foretelling(SOME_POLLS), range(1, 7)
        policy = Policy(round(busiest_bytes(plan) / least_s), reaction_s=15.0)
        copies = ThrottledCopies(brokers, poll_s)
        cluster = ModelledCluster(brokers, plan.moves, copies=copies)
        simulation = Simulation(
            plan, cluster, policy, T0, decide_by=foretelling, governed=True, wake_s=wake_s
        )
        assert simulation.run() is PlanState.DONE
        errors = [abs(e.worst) for e in eta_errors(foretelling.samples) if e.tenth >= 1]
        worst.append(max(errors))
    assert np.quantile(worst, 0.75) <= 0.10, worst
    assert max(worst) <= 0.25, worst
