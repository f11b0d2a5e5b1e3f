"""When the next step follows at once, and how many small moves may be in flight then."""

from __future__ import annotations

from collections.abc import Callable
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
ENDS = Advance(settled={TP[0]: DONE}, admitted=[TP[0]])


class Steps:
    """Steps that take so many seconds each, of a plan whose moves never end."""

    def __init__(
        self, size_bytes: int, *took_s: float, done: Advance = NEWS, admitted: bool = False
    ) -> None:
        self.plan = make_plan("p", move("t", 0, (1, 2), (3, 2), size_bytes))
        self.policies: list[Policy] = []
        self.at_s, self.rest_s = 0.0, 0.0
        self._took_s = iter(took_s)
        state = MoveState.ADMITTED if admitted else MoveState.PENDING
        self._view = running(self.plan, moves={m.partition: state for m in self.plan.moves})
        self._done = done

    def advance(self, plan: Plan, *args: Any, backlog: Backlog) -> Advance:
        self.policies.append(args[2])
        backlog.follow(plan.moves, self._view, seen(plan))
        took_s = next(self._took_s, None)
        if took_s is None:
            return Advance(finished=PlanState.DONE)
        self.at_s += took_s
        return self._done

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
    steps = stepping(100, 0.1, 0.1, admitted=True)
    steps.run(SMALL)
    assert steps.at_s == pytest.approx(
        0.1 + rolling.REST_ALL_SENT_S + 0.1 + rolling.REST_ALL_SENT_S
    )


def test_without_news_what_is_left_waits_for_the_next_poll(stepping: Any) -> None:
    steps = stepping(100, *[rolling.PATIENCE_S / 3] * 9, done=Advance())
    assert steps.run(SMALL)[-1].finished is None
    assert len(steps.policies) == 2


def test_larger_moves_that_end_are_no_news(stepping: Any) -> None:
    large = move("t", 1, (1, 2), (3, 2), 101)
    steps = stepping(100, *[rolling.PATIENCE_S / 3] * 9, done=Advance(settled={TP[1]: DONE}))
    steps.plan = make_plan("p", *steps.plan.moves, large)
    assert steps.run(SMALL)[-1].finished is None
    assert len(steps.policies) == 2


def test_more_are_in_flight_as_long_as_few_are_left_soon_after_they_began(stepping: Any) -> None:
    steps = stepping(100, *[0.1] * 5, done=ENDS)
    steps.run(SMALL)
    # The first that ends is of an earlier process: nothing is known of when it began.
    assert steps.at_once == [1000, 1000, 2000, 4000, 5000, 5000]
    takes_long = stepping(100, *[rolling.SLOW_STEP_S] * 5, done=ENDS)
    takes_long.run(SMALL)
    assert takes_long.at_once == [1000] * 2 + [2000, 4000, 5000, 5000]


def test_what_ends_late_does_not_raise_their_number(stepping: Any) -> None:
    steps = stepping(100, *[0.1] * 3, done=ENDS)
    steps.rest_s = rolling.QUICK_S + 1
    steps.run(SMALL)
    assert steps.at_once == [1000] * 4


def test_half_as_many_are_in_flight_where_some_take_long_or_the_controller_does(
    stepping: Any,
) -> None:
    steps = stepping(100, *[2.0] * 9)
    steps.run(SMALL)
    # Some of the first wait since 2 s: once for them, and again for what began after that.
    assert steps.at_once == [1000] * 6 + [500] * 4
    slow = stepping(100, *[rolling.SLOW_STEP_S + 1] * 4)
    slow.run(SMALL)
    assert slow.at_once == [1000, 500, 250, 200, 200]


def test_a_limit_that_a_person_has_chosen_stays(stepping: Any) -> None:
    steps = stepping(100, 0.1, 0.1)
    steps.run(replace(SMALL, max_small_in_flight=None))
    assert steps.at_once == [None] * 3
