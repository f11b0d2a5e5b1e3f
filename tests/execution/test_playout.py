"""The rest of a plan played out ahead: as it then comes, and who leaves what to whom."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.cluster.model import PartitionState, ReplicaId
from include.execution.backlog import Backlog
from include.execution.decide import decide
from include.execution.eta import PLAYED_MOVES, Remaining
from include.execution.model import Action, LedgerView, Observation, PlanState, Policy
from include.execution.playout import Copy, copies_of, granted, time_left_s
from include.execution.simulation.cluster import ModelledCluster
from include.execution.simulation.simulator import Simulation
from include.execution.slots import Direction, Slot
from include.planning.plan import Move, Plan
from tests.execution.observed import POLICY, T0, TP, in_flight, running, seen
from tests.execution.properties import few_and_many, property_of
from tests.execution.test_eta import random_plan
from tests.ledger.small_plans import make_plan, move

RATE = 9_876_543  # no copy ends just when somebody looks


class PlayedOut:
    """`decide`, and at each look the end that is foretold."""

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
    ) -> list[Action]:
        left = left_s(backlog, seen, policy, self._bytes_per_s)
        self.ends.append((now - T0).total_seconds() + left)
        return decide(plan, view, seen, now, policy, backlog)


def left_s(backlog: Backlog, sight: Observation, policy: Policy, bytes_per_s: float) -> float:
    pace = policy.pace(policy.rate_bytes_per_s)
    copying = Remaining.of(backlog, sight, pace).copying
    return time_left_s(backlog, copying, sight, policy, pace, lambda _: bytes_per_s)


@few_and_many(10, 300)
def test_the_rest_comes_as_it_was_played_out_at_every_look(examples: int) -> None:
    """Shares, waits and admission: the simulated cluster gets to the same end."""
    plans = st.builds(
        random_plan, st.integers(3, 6), st.integers(3, 25), st.floats(0, 1.5), st.integers(0, 999)
    )

    @property_of(examples)
    @given(plans, st.integers(1, 4), st.sampled_from([1.0, 5.0, 15.0]), st.sampled_from([5, 200]))
    def holds(plan: Plan, slots: int, reaction_s: float, at_once: int) -> None:
        policy = Policy(RATE, slots, reaction_s, at_once, reaction_s, throttle_efficiency=0.8)
        brokers = {broker for m in plan.moves for broker in (*m.current, *m.target)}
        played = PlayedOut(0.8 * RATE)
        cluster = ModelledCluster(brokers, plan.moves)
        simulation = Simulation(plan, cluster, policy, T0, decide_by=played)
        assert simulation.run() is PlanState.DONE
        noticed_s = simulation.elapsed_s
        # The end is noticed at the first look after it; a size is told in whole bytes.
        late = [
            end
            for end in played.ends
            if not noticed_s - reaction_s - 0.01 <= end <= noticed_s + 0.01
        ]
        assert not late, (noticed_s, late)

    holds()


@pytest.mark.parametrize("brokers", [5, 10, 50, 100])
def test_of_large_plans_what_the_busiest_broker_lacks_tells_within_three_per_cent(
    brokers: int,
) -> None:
    """So they need not be played out. All in ten minutes, at a look every fifteen seconds."""
    plan = random_plan(brokers, PLAYED_MOVES // brokers, 1.0, seed=0)
    sight = seen(plan, live=tuple(range(1, brokers + 1)))
    backlog = Backlog.of(plan, running(plan), sight)
    rate = round(Remaining.of(backlog, sight, POLICY.pace(RATE)).busiest_bytes / 600)
    policy = Policy(rate, reaction_s=15.0, throttle_efficiency=1.0, max_partitions_in_flight=1000)
    assert 600 <= left_s(backlog, sight, policy, rate) <= 618


def test_copies_between_log_dirs_pass_a_link_of_their_own() -> None:
    """Broker 3 moves a replica of its own while it receives another: neither waits."""
    across = move("t", 0, (3,), (3,), 1000, current_log_dirs=("/a",), target_log_dirs=("/b",))
    plan = make_plan("p", across, move("t", 1, (1,), (3,), 600))
    sight = seen(plan, log_dirs={ReplicaId(*TP[0], 3): "/a"})
    backlog = Backlog.of(plan, running(plan), sight)
    assert left_s(backlog, sight, POLICY, 100) == pytest.approx(10)


def test_what_cannot_start_is_left_out() -> None:
    plan = make_plan("p", move("t", 0, (1,), (3,), 1000), move("t", 1, (1,), (4,), 5000))
    sight = seen(plan, live=(1, 3))
    assert left_s(Backlog.of(plan, running(plan), sight), sight, POLICY, 100) == pytest.approx(10)
    gone = replace(sight, partitions={TP[0]: sight.partitions[TP[0]]})
    assert left_s(Backlog.of(plan, running(plan), gone), gone, POLICY, 100) == pytest.approx(10)
    view, flying = in_flight(plan)
    leaderless = {tp: PartitionState(None, (1,), frozenset()) for tp in flying.partitions}
    nobody = replace(flying, partitions=leaderless)
    assert left_s(Backlog.of(plan, view, nobody), nobody, POLICY, 100) == 0


def test_playing_out_changes_nothing_of_what_it_begins_with() -> None:
    plan = random_plan(4, 10, 0.5, seed=3)
    sight = seen(plan)
    backlog = Backlog.of(plan, running(plan), sight)
    left_s(backlog, sight, POLICY, RATE)
    again = decide(plan, running(plan), sight, T0, POLICY, backlog)
    assert again == decide(plan, running(plan), sight, T0, POLICY)
    assert not sight.sizes
    assert backlog.pending_count == len(plan.moves)


def test_empty_partitions_wait_for_looks_too() -> None:
    """Forty of them share four slots, ten to each: the rest start at the next look."""
    plan = make_plan("p", *(move("t", n, (1,), (3,), 0) for n in range(100)))
    policy, sight = replace(POLICY, reaction_s=10.0), seen(plan)
    left = left_s(Backlog.of(plan, running(plan), sight), sight, policy, RATE)
    assert left == pytest.approx(20, abs=0.1)


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
    assert granted(three, 10, lambda _: 100) == expected
    slow = {Slot(Direction.OUT, 1): 20.0}
    passed = granted(three, 10, lambda slot: slow.get(slot, 100.0))
    assert passed[Slot(Direction.IN, 4)] == 100
    assert passed[Slot(Direction.IN, 3)] == 1000


def test_a_copy_that_ends_leaves_its_share_to_others() -> None:
    two = copies(move("t", 0, (1,), (3,), 250), move("t", 1, (2,), (3,), 10_000))
    passed = granted(two, 10, lambda _: 100)
    assert passed[Slot(Direction.OUT, 1)] == 250
    assert passed[Slot(Direction.IN, 3)] == 1000
    assert not granted([], 10, lambda _: 100)
