"""The rest of a plan played out ahead: it matches the execution, and flows share links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulation.cluster import ModelledCluster
from benchmarks.simulation.simulator import Simulation
from rehome.domain.kafka import PartitionState, ReplicaId
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.pace import SMALL_MOVE_S
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import PlanState
from rehome.execution.actions import Decision
from rehome.execution.admission.backlog import Backlog
from rehome.execution.admission.fair_share import Copy, copies_of, grant
from rehome.execution.admission.slots import Direction, Slot
from rehome.execution.decide import decide
from rehome.execution.estimate import projection
from rehome.execution.estimate.projection import Course, play_out
from rehome.execution.progress.eta import Remaining
from tests.examples import few_and_many, property_of
from tests.execution.observed import POLICY, T0, TP, in_flight, running, seen
from tests.execution.random_plans import MB, busiest_bytes, random_plan, tiny
from tests.ledger.small_plans import make_plan, move

LIVE = frozenset({1, 2, 3, 4})
RATE = 9_876_543  # no copy ends exactly at a poll


class PlayedOut:
    """Calls `decide`, and records the end that the projection predicts at each poll."""

    def __init__(self, bytes_per_s: float) -> None:
        self.ends: list[float] = []
        self._bytes_per_s = bytes_per_s

    def __call__(
        self,
        plan: Plan,
        view: LedgerView,
        seen: Observation,
        now: datetime,
        policy: Policy,
        backlog: Backlog,
    ) -> list[Decision]:
        course = course_of(backlog, seen, policy, self._bytes_per_s)
        assert course.whole
        if course.seconds:
            self.ends.append((now - T0).total_seconds() + course.seconds)
        return decide(plan, view, seen, now, policy, backlog)


class Timed(ModelledCluster):
    """Knows when the last copy was complete."""

    elapsed_s = last_copied_s = 0.0

    def run(self, seconds: float) -> bool:
        copying = len(self.copies)
        moving = super().run(seconds)
        self.elapsed_s += seconds
        if len(self.copies) < copying:
            self.last_copied_s = self.elapsed_s
        return moving


def about(seconds: float, rel: float | None = None) -> Any:
    """What a :class:`Course` may hold in place of its seconds, to be compared with another one."""
    return pytest.approx(seconds, rel=rel)


def course_of(backlog: Backlog, sight: Observation, policy: Policy, bytes_per_s: float) -> Course:
    pace = policy.pace(policy.rate_bytes_per_s)
    copying = Remaining.of(backlog, sight, pace).copying
    return play_out(backlog, copying, sight, policy, pace, lambda _: bytes_per_s)


def to_its_end(plan: Plan, sight: Observation, policy: Policy, bytes_per_s: float) -> Course:
    course = course_of(Backlog.of(plan, running(plan), sight), sight, policy, bytes_per_s)
    assert course.whole
    return course


def left_s(plan: Plan, sight: Observation, policy: Policy, bytes_per_s: float) -> float:
    """Of a plan that goes to its end."""
    return to_its_end(plan, sight, policy, bytes_per_s).seconds


plans = st.builds(
    random_plan,
    st.integers(5, 7),
    st.integers(3, 20),
    st.floats(0.1, 1.5),  # of moves that are alike, whole bytes decide which one goes first
    st.integers(0, 999),
    st.integers(1, 3),
    leaders=st.booleans(),
)


@pytest.mark.slow
@few_and_many(4, 300)
def test_the_rest_comes_as_it_was_played_out_at_every_poll(examples: int) -> None:
    """Shares, waits and admission: the simulated cluster gets to the same end."""

    @property_of(examples)
    @given(plans, st.integers(1, 4), st.sampled_from([1.0, 5.0, 15.0]), st.sampled_from([5, 200]))
    def holds(plan: Plan, slots: int, reaction_s: float, at_once: int) -> None:
        policy = Policy(RATE, slots, reaction_s, at_once, reaction_s, throttle_efficiency=0.8)
        brokers = {broker for m in plan.moves for broker in (*m.current, *m.target)}
        played, cluster = PlayedOut(0.8 * RATE), Timed(brokers, plan.moves)
        simulation = Simulation(plan, cluster, policy, T0, decide_by=played)
        assert simulation.run() is PlanState.DONE
        # Sizes are reported in whole bytes, and the simulation counts microseconds.
        assert played.ends == [pytest.approx(cluster.last_copied_s, abs=0.01)] * len(played.ends)

    holds()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "rate", "at_once"),
    [
        (random_plan(30, 100, 1.0, seed=0), MB, 1000),
        pytest.param(random_plan(200, 30, 1.0, seed=0), MB, 200, marks=pytest.mark.long),
        # Copies take seconds:
        pytest.param(random_plan(100, 40, 0.5, seed=0), RATE, 200, marks=pytest.mark.long),
        (random_plan(40, 100, 0.5, seed=0), RATE, 20),
        (tiny(random_plan(20, 200, 1.0, seed=0)), RATE, 1000),
    ],
)
def test_the_rest_of_a_large_plan_follows_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, rate: int, at_once: int
) -> None:
    """Where slots are what limits, where it is the partitions in flight, and where it is polls."""
    sight = seen(plan, live=tuple(range(1, 201)))
    policy = Policy(rate, 4, 15.0, at_once, throttle_efficiency=1.0)
    monkeypatch.setattr(projection, "WORK", 250_000)
    beginning = to_its_end(plan, sight, policy, rate)
    monkeypatch.setattr(projection, "WORK", 10**9)
    whole = to_its_end(plan, sight, policy, rate)
    assert beginning.seconds == pytest.approx(whole.seconds, rel=0.05)
    assert beginning.work < whole.work


@pytest.mark.slow
@pytest.mark.parametrize(
    ("brokers", "moves_per_broker", "sigma", "seed", "adding", "most"),
    [(5, 11, 0.52, 787, 1, 1.02), (5, 9, 0.13, 362, 2, 1.10), (6, 7, 0.56, 74, 3, 1.10)],
)
def test_the_makespan_depends_little_on_the_exact_rate_delivered(
    brokers: int, moves_per_broker: int, sigma: float, seed: int, adding: int, most: float
) -> None:
    """A per cent more or less: it cannot be measured better, so no ETA is better than this.

    A move that adds three replicas waits for four brokers at once.
    """
    plan = random_plan(brokers, moves_per_broker, sigma, seed, adding)
    sight = seen(plan, live=tuple(range(1, brokers + 1)))
    rate = round(busiest_bytes(plan) / 900 / 0.85)
    policy = Policy(rate, 4, 5.0, 1000, throttle_efficiency=0.85)
    parts = [0.85 * (1 + step / 500) for step in range(-4, 5)]
    work = [part * left_s(plan, sight, policy, part * rate) for part in parts]
    assert max(work) / min(work) <= most


def test_the_rest_goes_on_at_the_pace_of_what_was_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each move needs the only slot of four brokers: the busiest one waits half the time."""
    plan = random_plan(7, 20, 0.5, seed=0, adding=3)
    sight = seen(plan, live=tuple(range(1, 8)))
    policy = Policy(RATE, 1, 0.0, 1000, throttle_efficiency=1.0)
    whole_s = left_s(plan, sight, policy, RATE)
    monkeypatch.setattr(projection, "WORK", 8_000)
    assert left_s(plan, sight, policy, RATE) == pytest.approx(whole_s, rel=0.05)


def side_by_side(sizes: Sequence[int], adding: int = 1) -> Plan:
    """Moves each of whose brokers have no other one."""
    brokers = range(1, 10**6, 1 + adding)
    return make_plan(
        "p",
        *(
            move("t", n, (first,), tuple(range(first, first + adding + 1)), size)
            for n, (first, size) in enumerate(zip(brokers, sizes, strict=False))
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "seconds"),
    [
        (side_by_side([250 - n // 100 for n in range(400)]), 40 * 30),  # three polls each
        (side_by_side([100 - n // 100 for n in range(400)] + [0] * 400), 80 * 10),
        (side_by_side([5000] * 9 + [50 - n // 100 for n in range(400)]), 500 + 35 * 10),
        (side_by_side([250 - n // 50 for n in range(200)], adding=2), 20 * 50),
    ],
)
@pytest.mark.parametrize("work", [3_000, pytest.param(6_000, marks=pytest.mark.long), 20_000])
def test_a_place_is_taken_until_a_poll(
    monkeypatch: pytest.MonkeyPatch, plan: Plan, seconds: float, work: int
) -> None:
    """Ten may be in flight, none of which shares a broker with another; a poll each 10 s."""
    monkeypatch.setattr(projection, "WORK", work)
    sight = seen(plan, live=tuple(range(1, 5000)))
    policy = Policy(10, 1, 10.0, 10, throttle_efficiency=1.0)
    assert left_s(plan, sight, policy, 10) == pytest.approx(seconds, rel=0.05)


def test_copies_between_log_dirs_pass_a_link_of_their_own() -> None:
    """Broker 3 moves a replica of its own while it receives another: neither waits."""
    across = move("t", 0, (3,), (3,), 1000, current_log_dirs=("/a",), target_log_dirs=("/b",))
    plan = make_plan("p", across, move("t", 1, (1,), (3,), 600))
    sight = seen(plan, log_dirs={ReplicaId(*TP[0], 3): "/a"})
    assert left_s(plan, sight, POLICY, 100) == pytest.approx(10)


def test_moves_that_cannot_go_on_are_left_out() -> None:
    """A dead broker, a topic that is gone, a partition without a leader."""
    plan = make_plan("p", move("t", 0, (1,), (3,), 1000), move("t", 1, (1,), (4,), 5000))
    sight = seen(plan, live=(1, 3))
    gone = replace(sight, partitions={TP[0]: sight.partitions[TP[0]]}, live_brokers=LIVE)
    for waits in (sight, gone):
        backlog = Backlog.of(plan, running(plan), waits)
        assert course_of(backlog, waits, POLICY, 100) == Course(about(10), False)
    view, flying = in_flight(plan)
    dead = replace(flying, live_brokers=frozenset({1, 3}))
    backlog = Backlog.of(plan, view, dead)
    assert course_of(backlog, dead, POLICY, 100) == Course(about(10), False)
    leaderless = {tp: PartitionState(None, (1,), frozenset()) for tp in flying.partitions}
    without_leaders = replace(flying, partitions=leaderless)
    assert course_of(
        Backlog.of(plan, view, without_leaders), without_leaders, POLICY, 100
    ) == Course(0, False)


@pytest.mark.slow
def test_moves_that_wait_for_a_dead_broker_are_left_out_of_large_plans_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = random_plan(8, 100, 0.5, seed=0)
    sight = seen(plan, live=tuple(range(1, 8)))
    backlog = Backlog.of(plan, running(plan), sight)
    whole = course_of(backlog, sight, POLICY, RATE)
    monkeypatch.setattr(projection, "WORK", 20_000)
    beginning = course_of(backlog, sight, POLICY, RATE)
    assert not whole.whole
    assert beginning == Course(about(whole.seconds, rel=0.10), False)


def test_a_throttle_at_which_nothing_ends_in_years_is_played_out_no_longer_than_it_is_worth() -> (
    None
):
    """Ten kB/s instead of ten MB/s: polls a quarter of a minute apart would be millions."""
    huge = [move("t", n, (1,), (3,), 250_000_000_000) for n in range(40)]
    small = [move("u", n, (2,), (3,), 60_000 + n) for n in range(400)]
    plan = make_plan("p", *huge, *small)
    policy = Policy(10_000, reaction_s=15.0, throttle_efficiency=1.0)
    sight = seen(plan)
    took = left_s(plan, sight, policy, 10_000)
    assert took == pytest.approx(40 * 250_000_000_000 / 10_000, rel=0.01)


def test_a_replica_that_the_plan_moves_again_between_log_dirs_may_start_on_any_broker() -> None:
    """It was in the log dir wanted when the backlog was made, and is not any more."""
    across = move("t", 0, (3,), (3,), 1000, current_log_dirs=("/a",), target_log_dirs=("/b",))
    plan = make_plan("p", across, move("t", 1, (1,), (2,), 600))
    there = seen(plan, log_dirs={ReplicaId(*TP[0], 3): "/b"})
    backlog = Backlog.of(plan, running(plan), there)
    back = seen(plan, log_dirs={ReplicaId(*TP[0], 3): "/a"})
    assert course_of(backlog, back, POLICY, 100) == Course(about(10), True)


def test_playing_out_changes_nothing_of_what_it_begins_with() -> None:
    plan = random_plan(4, 10, 0.5, seed=3)
    sight = seen(plan)
    backlog = Backlog.of(plan, running(plan), sight)
    course_of(backlog, sight, POLICY, RATE)
    again = decide(plan, running(plan), sight, T0, POLICY, backlog)
    assert again == decide(plan, running(plan), sight, T0, POLICY)
    assert not sight.sizes
    assert backlog.pending_count == len(plan.moves)


def test_empty_partitions_wait_for_polls_too() -> None:
    """Forty of them share four slots, ten to each: the rest start at the next poll."""
    plan = make_plan("p", *(move("t", n, (1,), (3,), 0) for n in range(100)))
    policy, sight = replace(POLICY, reaction_s=10.0), seen(plan)
    assert left_s(plan, sight, policy, RATE) == pytest.approx(20, abs=0.1)


def copies(*moves: Move) -> list[Copy]:
    sight = seen(make_plan("p", *moves))
    return [copy for m in moves for copy in copies_of(m, sight)]


def test_what_is_granted_to_a_broker_is_what_the_other_ends_leave() -> None:
    """Broker 1 sends to 3 and 4; what it leaves of 3's share, broker 2 may fill."""
    three = copies(
        move("t", 0, (1,), (3,), 10_000),
        move("t", 1, (1,), (4,), 10_000),
        move("t", 2, (2,), (3,), 10_000),
    )
    slots = {("in", 3): 1000, ("in", 4): 500, ("out", 1): 1000, ("out", 2): 500}
    expected = {Slot(Direction(way), broker): size for (way, broker), size in slots.items()}
    assert grant(three, 10, lambda _: 100) == expected
    slow = {Slot(Direction.OUT, 1): 20.0}
    passed = grant(three, 10, lambda slot: slow.get(slot, 100.0))
    assert passed[Slot(Direction.IN, 4)] == 100
    assert passed[Slot(Direction.IN, 3)] == 1000


def test_a_copy_that_ends_leaves_its_share_to_others() -> None:
    two = copies(move("t", 0, (1,), (3,), 250), move("t", 1, (2,), (3,), 10_000))
    passed = grant(two, 10, lambda _: 100)
    assert passed[Slot(Direction.OUT, 1)] == 250
    assert passed[Slot(Direction.IN, 3)] == 1000
    assert not grant([], 10, lambda _: 100)


def test_small_moves_take_what_brokers_do_for_each_and_longer_where_topics_are_large() -> None:
    """They change its metadata one after the other, however many are in flight."""
    small = replace(POLICY, small_bytes=100, max_small_in_flight=50, reaction_s=10.0)

    def of(partitions: int) -> float:
        plan = make_plan("p", *(move("t", n, (1,), (3,), 0) for n in range(partitions)))
        return left_s(plan, seen(plan), small, RATE)

    few_s = 40 * SMALL_MOVE_S  # all of them start at once
    assert of(40) == pytest.approx(few_s)
    assert of(2_000) == pytest.approx(2_000 * 20 * SMALL_MOVE_S, rel=0.02)
    large = move("u", 0, (1,), (3,), 60 * RATE)
    both = make_plan("p", large, *(move("t", n, (1,), (3,), 0) for n in range(40)))
    assert left_s(both, seen(both), small, RATE) == pytest.approx(60, abs=0.1)
