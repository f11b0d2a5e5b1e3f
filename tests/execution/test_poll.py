"""What a poll reads and logs grows with what is in flight, not with the plan."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import event

from rehome.domain.kafka import PartitionState, TopicDescription, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.execution import poll as poll_module
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.actions import Admit, Finish
from rehome.execution.admission.backlog import Backlog
from rehome.execution.observation.waiting_metadata import AssumedStates
from rehome.execution.poll import Poll, poll
from rehome.ledger.store import Ledger
from rehome.ledger.stores.events import FOREIGN_NAMED
from tests.execution.advance.test_advance_properties import record
from tests.execution.observed import POLICY, T0, seen
from tests.execution.simulated_cluster import SimulatedCluster
from tests.ledger.small_plans import make_plan, move

IN_FLIGHT = 4
FULL = replace(POLICY, max_partitions_in_flight=IN_FLIGHT)


@dataclass
class Counted:
    """What polls have asked for."""

    rows: int = 0
    topics: set[str] = field(default_factory=set)

    def clear(self) -> None:
        self.rows, self.topics = 0, set()


class CountedCluster(SimulatedCluster):
    counted = Counted()

    def describe_topics(
        self, names: Collection[str] | None = None, *, operations: bool = False
    ) -> dict[str, TopicDescription]:
        self.counted.topics |= set(names or ())
        return super().describe_topics(names, operations=operations)


class InProgress:
    """A plan with a topic for each move, most of them done and as many in flight as may be."""

    def __init__(self, directory: Path, moves: int, done: int) -> None:
        made = [move(f"t{n:04}", 0, (1,), (3,), 1000) for n in range(moves)]
        self.plan: Plan = make_plan("p", *made)
        url = f"sqlite:///{directory / f'{moves}.db'}"
        record(self.plan, url)
        self.at = [T0]
        self.counted = Counted()
        self.cluster = CountedCluster([1, 2, 3, 4], made)
        self.cluster.counted = self.counted
        self.ledger = Ledger.open(url, clock=lambda: self.at[-1])
        event.listen(self.ledger.engine, "connect", self._count_rows)
        self.ledger.claim("p")
        start = seen(self.plan)
        self.ledger.admit("p", made[:done], start, 1000)
        for each in made[:done]:
            self.ledger.settle("p", each.partition, MoveState.DONE)
            self.cluster.replicas[each.partition] = each.target
        flying = made[done : done + IN_FLIGHT]
        self.ledger.admit("p", flying, start, 1000)
        self.ledger.mark_sent("p", [each.partition for each in flying])
        for each in flying:
            self.cluster.targets[each.partition] = each.target
        self.backlog = Backlog()

    def _count_rows(self, connection: Any, _record: Any) -> None:
        def counting(_cursor: Any, row: tuple[Any, ...]) -> tuple[Any, ...]:
            self.counted.rows += 1
            return row

        connection.row_factory = counting

    def poll(self) -> Poll:
        self.counted.clear()
        self.at.append(self.at[-1] + timedelta(seconds=5))
        port = cast(OwnCluster, self.cluster)
        found = poll(self.plan, self.ledger, port, FULL, self.backlog, self._clock)
        assert found is not None
        return found

    def _clock(self) -> datetime:
        return self.at[-1]


@pytest.mark.slow
def test_a_poll_of_a_plan_ten_times_as_large_reads_as_much(tmp_path: Path) -> None:
    read = []
    for moves, done in ((30, 20), (300, 270)):
        plan = InProgress(tmp_path, moves, done)
        first = plan.poll()
        assert plan.counted.topics == {f"t{n:04}" for n in range(done, done + IN_FLIGHT)}
        assert plan.counted.rows < 30 + moves - done, "of done moves none is read"
        assert first.progress.sample.moves_done == done
        plan.cluster.step(100)
        polled = plan.poll()
        assert polled.progress.sample.bytes_total == 1000 * moves
        assert polled.progress.sample.bytes_done == 1000 * done + 100 * IN_FLIGHT
        assert len(polled.progress.statuses) == IN_FLIGHT
        read.append((plan.counted.rows, len(plan.counted.topics)))
        plan.ledger.close()
    assert read[0] == read[1]


@pytest.mark.slow
def test_what_is_chosen_is_read_before_it_starts(tmp_path: Path) -> None:
    """Of three that are next, one is gone, one is in place already, and one may start."""
    plan = InProgress(tmp_path, 57, 50)
    plan.poll()
    gone, there, next_one = (each.partition for each in plan.plan.moves[54:])
    del plan.cluster.replicas[gone]
    plan.cluster.replicas[there] = (3,)
    plan.cluster.step(1000)  # everything in flight is complete
    polled = plan.poll()
    settled = {a.partition: a.state for a in polled.actions if isinstance(a, Settle)}
    assert (settled[gone], settled[there]) == (MoveState.GONE, MoveState.DONE)
    assert [a for a in polled.actions if isinstance(a, Admit)] == [Admit((next_one,))]
    assert polled.observation.read is not None
    assert polled.observation.read.issuperset([gone, there, next_one])
    plan.ledger.close()


@pytest.mark.slow
def test_partitions_that_others_reassign_before_their_turn_are_read_and_settled(
    tmp_path: Path,
) -> None:
    plan = InProgress(tmp_path, 60, 50)
    plan.poll()
    theirs = plan.plan.moves[-1].partition
    plan.cluster.targets[theirs] = (4,)
    settled = [action for action in plan.poll().actions if isinstance(action, Settle)]
    assert [(action.partition, action.state) for action in settled] == [
        (theirs, MoveState.SUPERSEDED)
    ]
    plan.ledger.close()


@pytest.mark.slow
def test_what_was_not_read_neither_starts_nor_ends_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after so many rounds that the rest is left to the next poll."""
    plan = InProgress(tmp_path, 55, 50)
    plan.poll()
    last = plan.plan.moves[-1].partition
    plan.cluster.step(1000)
    with monkeypatch.context() as patched:
        patched.setattr(poll_module, "DECISIONS_PER_POLL", 0)
        startable = plan.poll().actions
        plan.cluster.targets[last] = (4,)
        superseded = plan.poll().actions
    for actions in (startable, superseded):
        assert {type(action) for action in actions} == {Settle}
        assert last not in {a.partition for a in actions if isinstance(a, Settle)}
    (finish,) = (action for action in plan.poll().actions if isinstance(action, Finish))
    assert finish.state is PlanState.FAILED
    plan.ledger.close()


def test_a_leader_is_assumed_among_the_living_and_kept_as_it_was_read() -> None:
    plan = make_plan("p", move("t", 0, (1, 2), (3, 2)), move("t", 1, (2, 1), (3, 1)))
    one, two = (each.partition for each in plan.moves)
    assumed = AssumedStates()
    pending = dict.fromkeys((one, two), MoveState.PENDING)
    nothing = Observation(T0, {}, {}, frozenset({1, 2, 3}))

    def leaders(read: Collection[TopicPartition] = ()) -> dict[TopicPartition, int | None]:
        shown = assumed.complete(nothing, read).partitions
        return {partition: state.leader for partition, state in shown.items()}

    assert set(assumed.follow(pending, plan.by_partition, frozenset({1, 2, 3}))) == {one, two}
    assert leaders() == {one: 1, two: 2}
    by_two = PartitionState(2, (1, 2), frozenset({1, 2}))
    assumed.remember(replace(nothing, partitions={one: by_two}), [one])
    assert leaders() == {one: 2, two: 2}
    assert assumed.follow({}, plan.by_partition, frozenset({1, 2, 3})) == []
    assumed.follow({}, plan.by_partition, frozenset({1, 3}))
    assert leaders() == {one: 1, two: 1}
    assumed.follow({}, plan.by_partition, frozenset({3}))
    assert leaders() == {one: None, two: None}
    assert leaders(read=[one]) == {two: None}, "it was looked for, and is not there"
    assumed.follow({two: MoveState.ADMITTED}, plan.by_partition, frozenset({3}))
    assert leaders() == {one: None}


@pytest.mark.slow
def test_a_reassignment_by_another_client_is_recorded_once(tmp_path: Path) -> None:
    """Of a partition that waits for its turn, and of one that the plan does not know."""
    plan = InProgress(tmp_path, 57, 50)
    others = [TopicPartition("of-others", n) for n in range(FOREIGN_NAMED)]
    plan.cluster.replicas |= dict.fromkeys(others, (1,))
    plan.cluster.whole |= dict.fromkeys(others, 10**9)
    waiting, strange = plan.plan.moves[56].partition, others[3]
    ended = plan.plan.moves[0]  # goes on: it could not be cancelled
    plan.cluster.replicas[ended.partition] = ended.current
    plan.cluster.targets |= {waiting: (4,), strange: (1, 4), ended.partition: ended.target}
    for _ in range(2):
        plan.poll()
    plan.cluster.targets[strange] = (1, 3)
    plan.poll()

    def reported() -> list[str]:
        events = plan.ledger.events("p")
        return [each.detail for each in events if each.kind == EventKind.REASSIGNED_MEANWHILE]

    first = [
        "of-others-3 to brokers 1, 4",
        f"{waiting} to brokers 4",
        "of-others-3 to brokers 1, 3",
    ]
    assert reported() == first
    plan.cluster.targets |= dict.fromkeys(others, (1, 2))
    plan.poll()
    assert len(reported()) == FOREIGN_NAMED
