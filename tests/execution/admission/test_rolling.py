"""When the next step follows at once, and how many small moves may be in flight then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import pytest

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.pace import SMALL_MOVE_S
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution import rolling
from rehome.execution.admission.backlog import Backlog
from rehome.execution.advance import Advance
from tests.execution.observed import POLICY, T0, TP, running, seen
from tests.ledger.small_plans import make_plan, move

FIRST = rolling.AT_FIRST
SMALL = replace(
    POLICY, small_bytes=100, max_partitions_in_flight=200, max_small_in_flight=5 * FIRST
)
DONE = MoveState.DONE
NEWS = Advance(admitted=[TP[0]])
MANY = 10 * FIRST
FIRST_STARTS = Advance(admitted=[TP[0]], in_flight=MANY)
OTHER_STARTS = Advance(admitted=[TP[1]], settled={TP[0]: DONE}, in_flight=MANY)
ONE_STARTS = Advance(admitted=[TP[0]], settled={TP[1]: DONE}, in_flight=MANY)
IN_TURN = [FIRST_STARTS, OTHER_STARTS, ONE_STARTS, OTHER_STARTS, ONE_STARTS]
"""Each starts a move, after the one before has seen the other's end."""


class Steps:
    """Steps that take so many seconds each, and do what is given; then the plan has ended.

    :param listed: numbers of moves that the controller lists, one look after the other; then none.
    :ivar rest_s: the least between two steps; ``look_s``: what a look at the controller takes.
    :ivar record: what the plan is asked for.
    """

    def __init__(
        self,
        size_bytes: int,
        *took_s: float,
        done: Advance | Sequence[Advance] = NEWS,
        admitted: Collection[int] = (),
        moves: int = 2,
        listed: Iterable[Collection[int]] = (),
    ) -> None:
        planned = [
            move(*(TP[n] if n < len(TP) else (f"u{n}", 0)), (1, 2), (3, 2), size_bytes)
            for n in range(moves)
        ]
        self.plan = make_plan("p", *planned)
        self.policies: list[Policy] = []
        self.at_s, self.rest_s, self.look_s = 0.0, 0.0, 0.0
        self._took_s = iter(took_s)
        states = {
            m.partition: MoveState.ADMITTED if n in admitted else MoveState.PENDING
            for n, m in enumerate(planned)
        }
        self._view = running(self.plan, moves=states)
        self._done = iter([done] * len(took_s) if isinstance(done, Advance) else done)
        self._listed = iter(listed)
        self.record = SimpleNamespace(pause_requested=False, cancel_requested=False)

    def advance(self, plan: Plan, *args: Any, backlog: Backlog) -> Advance:
        self.policies.append(args[2])
        backlog.follow(plan.moves, self._view, seen(plan))
        took_s = next(self._took_s, None)
        if took_s is None:
            return Advance(finished=PlanState.DONE)
        self.at_s += took_s
        return next(self._done)

    def sleep(self, seconds: float) -> None:
        self.at_s += max(seconds, self.rest_s)

    def run(self, policy: Policy) -> list[Advance]:
        ledger: Any = SimpleNamespace(
            plan=lambda plan_id: self.record, view_of_open=lambda plan_id: self._view
        )
        cluster: Any = SimpleNamespace(list_reassignments=self._list)
        return list(rolling.steps(self.plan, ledger, cluster, policy))

    def _list(self) -> dict[TopicPartition, None]:
        self.at_s += self.look_s
        numbers = next(self._listed, ())
        return dict.fromkeys(self.plan.moves[number].partition for number in numbers)

    @property
    def at_once(self) -> list[int | None]:
        return [policy.max_small_in_flight for policy in self.policies]


@pytest.fixture
def stepping(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Steps]:
    def made(*args: Any, **options: Any) -> Steps:
        steps = Steps(*args, **options)
        monkeypatch.setattr("rehome.execution.advance.advance", steps.advance)
        monkeypatch.setattr(rolling, "monotonic_s", lambda: steps.at_s)
        monkeypatch.setattr(rolling, "sleep", steps.sleep)
        return steps

    return made


def test_a_step_follows_at_once_as_long_as_small_moves_are_left(stepping: Any) -> None:
    assert len(stepping(100, 0.1, 0.1, 0.1).run(SMALL)) == 4
    assert len(stepping(101, 0.1, 0.1, 0.1).run(SMALL)) == 1
    assert len(stepping(100, 0.1, 0.1, 0.1).run(replace(SMALL, small_bytes=0))) == 1


def test_the_next_step_waits_until_most_of_what_is_in_flight_has_ended(stepping: Any) -> None:
    flying = range(4)
    steps = stepping(100, 0.1, 0.1, moves=4, admitted=flying, listed=[flying, (0, 1), (0,)])
    steps.run(SMALL)
    # What the task before has started is waited for, too.
    assert steps.at_s == pytest.approx(2 * rolling.REST_S + 2 * (0.1 + rolling.REST_S))


def test_looks_take_a_fifth_of_the_time_at_most(stepping: Any) -> None:
    steps = stepping(100, moves=4, admitted=range(4), listed=[range(4), (0,)])
    steps.look_s = 0.25
    steps.run(SMALL)
    assert steps.at_s == pytest.approx(0.25 + 1.0 + 0.25)


def test_many_may_take_longer_than_the_least_wait(stepping: Any) -> None:
    many = range(3_000)
    steps = stepping(100, 0.1, moves=3_002, admitted=many, listed=repeat(many))
    steps.run(SMALL)
    takes_s = len(many) * SMALL_MOVE_S
    assert steps.at_s == pytest.approx(2 * takes_s + 0.6, abs=2 * rolling.REST_S)


def test_the_wait_is_as_long_as_the_step_took_at_most_and_some_seconds_at_least(
    stepping: Any,
) -> None:
    slow_s = rolling.WAIT_S + 3
    steps = stepping(100, 1.0, slow_s, admitted=(0, 1), listed=repeat((0, 1)))
    steps.run(SMALL)
    waits_s = [rolling.WAIT_S, rolling.REST_S + rolling.WAIT_S, rolling.REST_S + slow_s]
    assert steps.at_s == pytest.approx(1.0 + slow_s + sum(waits_s))


@pytest.mark.parametrize("request_of", ["pause_requested", "cancel_requested"])
def test_a_request_to_stop_ends_the_wait(stepping: Any, request_of: str) -> None:
    steps = stepping(100, 1.0, admitted=(0, 1), listed=repeat((0, 1)))
    setattr(steps.record, request_of, True)
    steps.run(SMALL)
    assert steps.at_s == pytest.approx(1.0 + rolling.REST_S + rolling.WAIT_S)


def test_a_stop_that_the_step_knew_does_not_end_the_wait(stepping: Any) -> None:
    """A pause lets end what is in flight: brokers are not asked again and again meanwhile."""
    steps = stepping(100, 1.0, 1.0, admitted=(0, 1), listed=repeat((0, 1)))
    steps.record.pause_requested = True
    steps.run(SMALL)
    assert steps.at_s == pytest.approx(2 * (1.0 + rolling.REST_S + rolling.WAIT_S))


def test_moves_between_log_dirs_are_waited_for_as_long_as_a_step_takes(stepping: Any) -> None:
    """The controller lists none of them."""
    steps = stepping(100, 4.0, admitted=(0, 1))
    within = [
        replace(each, target=each.current, target_log_dirs=("/a", "/b"))
        for each in steps.plan.moves
    ]
    steps.plan = make_plan("p", *within)
    steps.run(SMALL)
    assert steps.at_s == pytest.approx(4.0 + rolling.REST_S + 4.0)


def test_a_wait_ends_before_the_lease_does(stepping: Any) -> None:
    steps = stepping(100, 100.0, admitted=(0, 1), listed=repeat((0, 1)))
    steps.look_s = 9.0
    steps.run(SMALL)
    waits_s = [rolling.WAIT_S, rolling.REST_S, rolling.MOST_WAIT_S]
    assert steps.at_s <= 100.0 + sum(waits_s) + 2 * steps.look_s


def test_the_windows_end_ends_the_wait(stepping: Any) -> None:
    steps = stepping(100, 1.0, admitted=(0, 1), listed=repeat((0, 1)))
    steps.run(replace(SMALL, window_end=T0.replace(year=2020)))
    assert steps.at_s == pytest.approx(1.0 + rolling.REST_S + rolling.WAIT_S)


def test_larger_moves_are_not_waited_for(stepping: Any) -> None:
    steps = stepping(100, 1.0, moves=3, admitted=(0, 1), listed=repeat((0, 1)))
    large = [move(*TP[number], (1, 2), (3, 2), 101) for number in range(2)]
    steps.plan = make_plan("p", *large, steps.plan.moves[2])
    steps.run(SMALL)
    assert steps.at_s == pytest.approx(1.0 + rolling.REST_S)


def test_without_news_what_is_left_waits_for_the_next_poll(stepping: Any) -> None:
    steps = stepping(100, *[rolling.PATIENCE_S / 2] * 9, done=Advance())
    assert steps.run(SMALL)[-1].finished is None
    assert len(steps.policies) == 3


def test_larger_moves_that_end_are_no_news(stepping: Any) -> None:
    steps = stepping(100, *[rolling.PATIENCE_S / 2] * 9, done=Advance(settled={TP[1]: DONE}))
    small, large = steps.plan.moves[0], move("t", 1, (1, 2), (3, 2), 101)
    steps.plan = make_plan("p", small, large)
    assert steps.run(SMALL)[-1].finished is None
    assert len(steps.policies) == 3


def test_more_are_in_flight_where_few_are_left_soon_after_they_began(stepping: Any) -> None:
    steps = stepping(100, *[0.1] * 5, done=IN_TURN)
    steps.run(SMALL)
    assert steps.at_once == [FIRST, FIRST, 2 * FIRST, 4 * FIRST, 5 * FIRST, 5 * FIRST]


@pytest.mark.parametrize(
    "done",
    [
        pytest.param([replace(each, in_flight=FIRST - 1) for each in IN_TURN], id="fewer"),
        pytest.param([replace(each, settled={}) for each in IN_TURN], id="none_has_ended"),
        pytest.param([OTHER_STARTS] * 5, id="what_ends_was_not_started_here"),
    ],
)
def test_their_number_stays_where_brokers_do_not_wait_for_more(
    stepping: Any, done: list[Advance]
) -> None:
    steps = stepping(100, *[0.1] * 5, done=done)
    steps.run(SMALL)
    assert steps.at_once == [FIRST] * 6


def test_their_number_stays_where_others_are_in_flight_still(stepping: Any) -> None:
    for left, number in ((FIRST // 4, 5 * FIRST), (FIRST // 4 + 1, FIRST)):
        admitted = range(2, left + 2)
        steps = stepping(100, *[0.1] * 5, done=IN_TURN, moves=left + 50, admitted=admitted)
        steps.run(SMALL)
        assert steps.at_once[-1] == number


def test_what_ends_late_does_not_raise_their_number(stepping: Any) -> None:
    steps = stepping(100, *[0.1] * 5, done=IN_TURN)
    steps.rest_s = rolling.QUICK_S + 1
    steps.run(SMALL)
    assert steps.at_once == [FIRST] * 6


def test_half_as_many_are_in_flight_where_some_take_long_or_the_controller_does(
    stepping: Any,
) -> None:
    slow_s = rolling.SLOW_PART * SMALL_MOVE_S * FIRST
    assert 17.5 < slow_s < 20.5
    steps = stepping(100, *[2.0] * 13, done=[FIRST_STARTS, *[Advance(admitted=[TP[1]])] * 12])
    steps.run(SMALL)
    # One waits since 2 s; the next step after that time begins at 22.5 s. It counts once.
    assert steps.at_once == [FIRST] * 10 + [FIRST // 2] * 4
    few = replace(SMALL, max_small_in_flight=200)
    steps = stepping(100, *[2.0] * 9, done=[FIRST_STARTS, *[Advance(admitted=[TP[1]])] * 8])
    steps.run(replace(few, max_partitions_in_flight=100))
    # Of few, 8 s are long: the next step begins at 12.5 s.
    assert steps.at_once == [200] * 6 + [100] * 4
    slow = stepping(100, *[rolling.SLOW_STEP_S + 1] * 6)
    slow.run(SMALL)
    assert slow.at_once == [FIRST, FIRST // 2, FIRST // 4, FIRST // 8, FIRST // 16, 200, 200]


def test_of_large_topics_fewer_are_in_flight_at_first() -> None:
    """A change of a partition takes brokers as long as its topic is large."""

    def at_first(*topics: int, size_bytes: int = 0) -> int | None:
        moves = [
            move(f"t{n}", number, (1, 2), (3, 2), size_bytes)
            for n, partitions in enumerate(topics)
            for number in range(partitions)
        ]
        return rolling.for_first_step(SMALL, make_plan("p", *moves)).max_small_in_flight

    assert at_first(100, 100) == FIRST
    assert at_first(1_000) == FIRST // 10
    assert at_first(500, *[1] * 500) == round(FIRST / 3)
    assert at_first(500, size_bytes=101) == FIRST  # none is small


def test_a_limit_that_a_person_has_chosen_stays(stepping: Any) -> None:
    steps = stepping(100, 0.1, 0.1)
    steps.run(replace(SMALL, max_small_in_flight=None))
    assert steps.at_once == [None] * 3
