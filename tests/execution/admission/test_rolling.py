"""When the next step follows at once, and how many small moves may be in flight then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution import rolling
from rehome.execution.admission.backlog import Backlog
from rehome.execution.advance import Advance
from tests.execution.observed import POLICY, TP, running, seen
from tests.ledger.small_plans import make_plan, move

SMALL = replace(POLICY, small_bytes=100, max_partitions_in_flight=200, max_small_in_flight=5000)
DONE = MoveState.DONE
NEWS = Advance(admitted=[TP[0]])
MANY = 10_000
FIRST_STARTS = Advance(admitted=[TP[0]], in_flight=MANY)
OTHER_STARTS = Advance(admitted=[TP[1]], settled={TP[0]: DONE}, in_flight=MANY)
ONE_STARTS = Advance(admitted=[TP[0]], settled={TP[1]: DONE}, in_flight=MANY)
IN_TURN = [FIRST_STARTS, OTHER_STARTS, ONE_STARTS, OTHER_STARTS, ONE_STARTS]
"""Each starts a move, after the one before has seen the other's end."""


class Steps:
    """Steps that take so many seconds each, and do what is given; then the plan has ended.

    :ivar rest_s: the least between two steps.
    """

    def __init__(
        self,
        size_bytes: int,
        *took_s: float,
        done: Advance | Sequence[Advance] = NEWS,
        admitted: Collection[int] = (),
        moves: int = 2,
    ) -> None:
        planned = [move("t", number, (1, 2), (3, 2), size_bytes) for number in range(moves)]
        self.plan = make_plan("p", *planned)
        self.policies: list[Policy] = []
        self.at_s, self.rest_s = 0.0, 0.0
        self._took_s = iter(took_s)
        states = {
            m.partition: MoveState.ADMITTED if n in admitted else MoveState.PENDING
            for n, m in enumerate(planned)
        }
        self._view = running(self.plan, moves=states)
        self._done = iter([done] * len(took_s) if isinstance(done, Advance) else done)

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
        return list(rolling.steps(self.plan, cast(Any, None), cast(Any, None), policy))

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


def test_after_a_slow_step_the_controller_rests_as_long_as_it_took(stepping: Any) -> None:
    slow_s = rolling.SLOW_STEP_S + 1
    steps = stepping(100, 0.1, 2.0, slow_s)
    steps.run(SMALL)
    assert steps.at_s == pytest.approx(0.1 + rolling.REST_S + 2.0 + rolling.REST_S + slow_s * 2)


def test_where_all_small_moves_are_sent_the_next_step_takes_its_time(stepping: Any) -> None:
    steps = stepping(100, 0.1, 0.1, admitted=(0, 1))
    steps.run(SMALL)
    assert steps.at_s == pytest.approx(
        0.1 + rolling.REST_ALL_SENT_S + 0.1 + rolling.REST_ALL_SENT_S
    )


def test_without_news_what_is_left_waits_for_the_next_poll(stepping: Any) -> None:
    steps = stepping(100, *[rolling.PATIENCE_S / 3] * 9, done=Advance())
    assert steps.run(SMALL)[-1].finished is None
    assert len(steps.policies) == 2


def test_larger_moves_that_end_are_no_news(stepping: Any) -> None:
    steps = stepping(100, *[rolling.PATIENCE_S / 3] * 9, done=Advance(settled={TP[1]: DONE}))
    small, large = steps.plan.moves[0], move("t", 1, (1, 2), (3, 2), 101)
    steps.plan = make_plan("p", small, large)
    assert steps.run(SMALL)[-1].finished is None
    assert len(steps.policies) == 2


def test_more_are_in_flight_where_few_are_left_soon_after_they_began(stepping: Any) -> None:
    steps = stepping(100, *[0.1] * 5, done=IN_TURN)
    steps.run(SMALL)
    assert steps.at_once == [1000, 1000, 2000, 4000, 5000, 5000]


@pytest.mark.parametrize(
    "done",
    [
        pytest.param([replace(each, in_flight=999) for each in IN_TURN], id="fewer_than_may_be"),
        pytest.param([replace(each, settled={}) for each in IN_TURN], id="none_has_ended"),
        pytest.param([OTHER_STARTS] * 5, id="what_ends_was_not_started_here"),
    ],
)
def test_their_number_stays_where_brokers_do_not_wait_for_more(
    stepping: Any, done: list[Advance]
) -> None:
    steps = stepping(100, *[0.1] * 5, done=done)
    steps.run(SMALL)
    assert steps.at_once == [1000] * 6


def test_their_number_stays_where_others_are_in_flight_still(stepping: Any) -> None:
    for left, number in ((250, 5000), (251, 1000)):
        steps = stepping(100, *[0.1] * 5, done=IN_TURN, moves=300, admitted=range(2, left + 2))
        steps.run(SMALL)
        assert steps.at_once[-1] == number


def test_what_ends_late_does_not_raise_their_number(stepping: Any) -> None:
    steps = stepping(100, *[0.1] * 5, done=IN_TURN)
    steps.rest_s = rolling.QUICK_S + 1
    steps.run(SMALL)
    assert steps.at_once == [1000] * 6


def test_half_as_many_are_in_flight_where_some_take_long_or_the_controller_does(
    stepping: Any,
) -> None:
    steps = stepping(100, *[2.0] * 9, done=[FIRST_STARTS, *[Advance(admitted=[TP[1]])] * 8])
    steps.run(SMALL)
    # One waits since 2 s; the next step after 10 s begins at 12.5 s. It counts once.
    assert steps.at_once == [1000] * 6 + [500] * 4
    slow = stepping(100, *[rolling.SLOW_STEP_S + 1] * 4)
    slow.run(SMALL)
    assert slow.at_once == [1000, 500, 250, 200, 200]


def test_a_limit_that_a_person_has_chosen_stays(stepping: Any) -> None:
    steps = stepping(100, 0.1, 0.1)
    steps.run(replace(SMALL, max_small_in_flight=None))
    assert steps.at_once == [None] * 3
