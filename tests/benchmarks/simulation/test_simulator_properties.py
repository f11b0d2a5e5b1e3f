"""`decide` over random clusters, plans, policies and faults: invariants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulation.cluster import (
    BrokerDies,
    BrokerReturns,
    ForeignEnds,
    ForeignStarts,
    ModelledCluster,
)
from benchmarks.simulation.journal import Journal
from benchmarks.simulation.simulator import Asked, At, Simulation
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.actions import Admit, Cancel, Decision
from rehome.execution.admission.backlog import Backlog
from rehome.execution.decide import decide
from tests.examples import few_and_many, property_of
from tests.ledger.small_plans import make_plan, move

T0 = datetime(2030, 1, 1, tzinfo=UTC)
BROKERS = (1, 2, 3, 4, 5)
OTHER = TopicPartition("other", 0)
RATE = 100
MAX_POLLS = 2000


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    moves = []
    for number in range(draw(st.integers(1, 12))):
        brokers = draw(st.permutations(BROKERS))
        factor = draw(st.integers(1, 3))
        target = draw(st.permutations(brokers))[: draw(st.integers(1, 3))]
        size = draw(st.integers(0, 3000))
        moves.append(move("t", number, tuple(brokers[:factor]), tuple(target), size))
    return make_plan("p", *moves)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    return Policy(
        RATE,
        throttle_efficiency=1.0,
        stall_timeout_s=120,
        max_moves_per_broker=draw(st.integers(1, 3)),
        max_partitions_in_flight=draw(st.integers(1, 12)),
        reaction_s=draw(st.sampled_from([0.0, 5.0, 20.0])),
        additional=draw(st.booleans()),
    )


@st.composite
def faults(draw: st.DrawFn) -> list[At]:
    """Brokers die and may return; others reassign something, and that ends; people ask."""
    events = []
    for victim in draw(st.sets(st.sampled_from(BROKERS), max_size=2)):
        dies = draw(st.floats(0, 60))
        events.append(At(dies, BrokerDies(victim)))
        if draw(st.booleans()):
            events.append(At(dies + draw(st.floats(0.1, 90)), BrokerReturns(victim)))
    for partition in draw(st.sets(st.sampled_from([OTHER, TopicPartition("t", 0)]))):
        begins = draw(st.floats(0, 60))
        target = (draw(st.sampled_from(BROKERS)),)
        events.append(At(begins, ForeignStarts(partition, target)))
        events.append(At(begins + draw(st.floats(0.1, 60)), ForeignEnds(partition)))
    asked = draw(
        st.sampled_from([None, Asked(cancel=True), Asked(pause=True), Asked(rate_bytes_per_s=37)])
    )
    return [*events, At(draw(st.floats(0, 60)), asked)] if asked else events


def disks() -> st.SearchStrategy[dict[int, int]]:
    return st.dictionaries(st.sampled_from(BROKERS), st.integers(0, 6000))


@dataclass
class Watched:
    """A run whose invariants are checked after every poll."""

    simulation: Simulation
    admitted: set[TopicPartition] = field(default_factory=set)

    def check(self, simulation: Simulation, actions: list[Decision]) -> None:
        new = {p for action in actions if isinstance(action, Admit) for p in action.partitions}
        self.admitted |= new
        self._slots(new)
        self._partitions_at_controller(new)
        assert min(simulation.cluster.usable_bytes().values(), default=0) >= 0, "a disk is over"
        for action in actions:
            if isinstance(action, Cancel):
                assert set(action.partitions) <= self.admitted, "what is not ours was cancelled"

    def _slots(self, new: set[TopicPartition]) -> None:
        """Never more than the slots with more left than a slot's share; never more than ten each.

        A change of leaders may give a broker more, without an admission: that stops new ones.
        """
        policy = self.simulation.policy
        slots = policy.max_moves_per_broker
        share = RATE * policy.reaction_s / slots
        for slot, left in self.simulation.cluster.left_bytes().items():
            if new.isdisjoint(left):
                continue
            long = {partition for partition, size in left.items() if size >= share}
            assert len(long - new) < slots, slot
            assert len(long) <= slots, slot
            assert len(left) <= 10 * slots, slot

    def _partitions_at_controller(self, new: set[TopicPartition]) -> None:
        if new:
            limit = self.simulation.policy.max_partitions_in_flight
            assert len(self.simulation.cluster.ours) <= limit

    def run(self) -> PlanState:
        """To the plan's end; pauses are ended at once."""
        while True:
            state = self.simulation.run(MAX_POLLS)
            if state is not PlanState.PAUSED:
                return state
            self.simulation.resume(self.simulation.policy)


def watched(
    plan: Plan,
    policy: Policy,
    events: Iterable[At] = (),
    usable: dict[int, int] | None = None,
    **options: Any,
) -> Watched:
    cluster = ModelledCluster(BROKERS, plan.moves, usable)
    run = Watched(Simulation(plan, cluster, policy, T0, events, **options))
    run.simulation.watch = run.check
    return run


def check_every_admission_has_an_outcome(simulation: Simulation) -> None:
    assert MoveState.ADMITTED not in simulation.journal.states.values()
    assert not simulation.cluster.ours


@pytest.mark.slow
@few_and_many(60, 5000)
def test_every_plan_is_done_within_its_slots(examples: int) -> None:
    @property_of(examples)
    @given(plans(), policies())
    def holds(plan: Plan, policy: Policy) -> None:
        run = watched(plan, policy)
        assert run.run() is PlanState.DONE
        assert run.simulation.cluster.replicas == {m.partition: m.target for m in plan.moves}

    holds()


@pytest.mark.slow
@few_and_many(60, 5000)
def test_in_any_simulation_no_disk_overflows_and_every_admission_has_an_outcome(
    examples: int,
) -> None:
    @property_of(examples)
    @given(plans(), policies(), faults(), disks())
    def holds(plan: Plan, policy: Policy, events: list[At], usable: dict[int, int]) -> None:
        run = watched(plan, policy, events, usable)
        assert run.run().ended
        check_every_admission_has_an_outcome(run.simulation)

    holds()


@pytest.mark.slow
@few_and_many(60, 5000)
def test_resuming_from_any_prefix_of_the_ledger_ends_in_the_same_assignment(examples: int) -> None:
    @property_of(examples)
    @given(plans(), policies(), st.data())
    def holds(plan: Plan, policy: Policy, data: st.DataObject) -> None:
        policy = replace(policy, metadata_grace_s=0)
        whole = watched(plan, policy)
        assert whole.run() is PlanState.DONE
        prefixes = st.integers(1, len(whole.simulation.journal.entries))
        journal = Journal(
            plan.by_partition, crash_after=data.draw(st.sets(prefixes, min_size=1, max_size=4))
        )
        crashed = watched(plan, policy, journal=journal)
        assert crashed.run() is PlanState.DONE
        assert crashed.simulation.journal is not journal
        assert crashed.simulation.cluster.replicas == whole.simulation.cluster.replicas
        assert set(crashed.simulation.journal.states.values()) == {MoveState.DONE}

    holds()


@pytest.mark.slow
@few_and_many(60, 5000)
def test_crashes_and_faults_together_leave_nothing_of_ours_in_flight(examples: int) -> None:
    @property_of(examples)
    @given(plans(), policies(), faults(), st.sets(st.integers(1, 30), max_size=4))
    def holds(plan: Plan, policy: Policy, events: list[At], crashes: set[int]) -> None:
        run = watched(plan, policy, events, journal=Journal(plan.by_partition, crash_after=crashes))
        assert run.run().ended
        check_every_admission_has_an_outcome(run.simulation)

    holds()


@pytest.mark.slow
@few_and_many(60, 5000)
def test_nothing_is_in_flight_after_a_window_and_the_next_one_goes_on(examples: int) -> None:
    @property_of(examples)
    @given(plans(), policies(), st.integers(1, 40))
    def holds(plan: Plan, policy: Policy, window_s: int) -> None:
        run = watched(plan, policy)
        simulation = run.simulation
        for _ in range(100):
            end = simulation.now + timedelta(seconds=window_s)
            simulation.resume(replace(policy, window_end=end))
            state = simulation.run(MAX_POLLS)
            check_every_admission_has_an_outcome(simulation)
            if state is PlanState.DONE:
                return
            assert state is PlanState.PAUSED
            if simulation.cause == "what is left does not fit into the window":
                break
        simulation.resume(policy)
        assert simulation.run(MAX_POLLS) is PlanState.DONE

    holds()


@pytest.mark.slow
@few_and_many(60, 5000)
def test_a_kept_backlog_decides_as_a_fresh_one_does(examples: int) -> None:
    def both(
        plan: Plan,
        view: LedgerView,
        seen: Observation,
        now: datetime,
        policy: Policy,
        kept: Backlog,
    ) -> list[Decision]:
        actions = decide(plan, view, seen, now, policy, kept)
        assert in_any_order(actions) == in_any_order(decide(plan, view, seen, now, policy))
        return actions

    @property_of(examples)
    @given(plans(), policies(), faults(), disks())
    def holds(plan: Plan, policy: Policy, events: list[At], usable: dict[int, int]) -> None:
        watched(plan, policy, events, usable, decide_by=both).run()

    holds()


def in_any_order(actions: list[Decision]) -> list[str]:
    ordered = [
        replace(action, partitions=tuple(sorted(action.partitions)))
        if isinstance(action, (Admit, Cancel))
        else action
        for action in actions
    ]
    return sorted(map(repr, ordered))


def test_moves_that_a_crash_left_unsent_keep_to_their_slots_though_a_leader_died() -> None:
    """The counterexample of a long run: both would be sent by broker 1 now."""
    plan = make_plan("p", move("t", 0, (1,), (1, 2), 0), move("t", 1, (4, 1), (3,), 0))
    policy = Policy(
        RATE, throttle_efficiency=1.0, stall_timeout_s=120, max_moves_per_broker=1, reaction_s=0
    )
    run = watched(
        plan, policy, [At(0, BrokerDies(4))], journal=Journal(plan.by_partition, crash_after=[2])
    )
    assert run.run() is PlanState.DONE
    check_every_admission_has_an_outcome(run.simulation)


def test_the_slot_check_of_the_property_tests_can_fail() -> None:
    plan = make_plan("p", move("t", 0, (1,), (3,)), move("t", 1, (1,), (3,)))
    everything = [Admit(tuple(plan.by_partition))]
    run = watched(plan, Policy(RATE, max_moves_per_broker=1), decide_by=lambda *_: everything)
    with pytest.raises(AssertionError):
        run.simulation.poll()
