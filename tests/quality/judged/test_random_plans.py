"""Plans of random clusters, judged by code that shares nothing with the planner and its gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain

import pytest

from rehome.domain.actions import Action
from rehome.domain.plan.move import Move
from rehome.domain.request.limits import BrokerCaps, BrokerLimits, BrokerSet
from rehome.domain.request.request import ReassignmentRequest
from rehome.quality.facts.gate_input import Checked
from tests.planning.clusters import cluster
from tests.quality.judged.judge import faults
from tests.quality.plan.cases import planned, with_moves, with_summary
from tests.quality.plan.checked_plans import drain
from tests.quality.plan.clean import ACTIONS, sound_plans

FEW, MANY = 2 * len(ACTIONS), 1_000
"""Plans of each kind; `make test-thorough` judges many, the same that it asks the gate about."""


def plans(each: int) -> Iterator[tuple[str, Checked]]:
    """Without limits, with them, and to destinations."""
    return chain(
        sound_plans(each, seed=10_000),
        sound_plans(each, seed=20_000, with_limits=True),
        sound_plans(each, seed=30_000, to_destinations=True),
    )


def judged(of: Checked) -> list[str]:
    return faults(of.snapshot, of.plan, of.request, of.min_free)


@pytest.mark.parametrize(
    "each",
    [
        pytest.param(FEW, marks=pytest.mark.slow),
        pytest.param(MANY, marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_no_plan_breaks_a_rule(each: int) -> None:
    made = {name: judged(of) for name, of in plans(each)}
    assert len(made) == 3 * each
    assert {name: found for name, found in made.items() if found} == {}


def changed(of: Checked, change: Callable[[Move], Move]) -> Checked:
    """The plan with its first move changed."""
    first, *others = of.plan.moves
    return with_moves(of, [change(first), *others])


def to(target: Callable[[Move], tuple[int, ...]]) -> Callable[[Checked], Checked]:
    """The plan whose first move goes elsewhere."""
    return lambda of: changed(of, lambda move: replace(move, target=target(move)))


def asked(**changes: object) -> Callable[[Checked], Checked]:
    """The same plan of another request."""
    return lambda of: replace(of, request=replace(of.request, **changes))  # type: ignore[arg-type]


NO_ROOM = BrokerCaps(default=BrokerLimits(replicas=0, leaders=0))
ELSEWHERE = BrokerSet(name="s", topics=("*",), brokers=(99,))
SPOILT: dict[str, tuple[Callable[[Checked], Checked], str]] = {
    "a broker twice": (
        to(lambda move: (*move.target[:-1], move.target[0])),
        "names a broker twice",
    ),
    "an unknown broker": (to(lambda move: (*move.target[:-1], 99)), "are not live"),
    "a replica less": (to(lambda move: move.target[:-1]), "replicas of"),
    "a drained broker": (to(lambda move: move.current[::-1]), "stays on a drained broker"),
    "a partition twice": (
        lambda of: with_moves(of, [*of.plan.moves, of.plan.moves[0]]),
        "it moves twice",
    ),
    "other replicas": (
        lambda of: changed(of, lambda move: replace(move, current=move.current[::-1])),
        "of other replicas",
    ),
    "a topic left out": (asked(exclude_topics=("*",)), "not asked for"),
    "too many bytes": (asked(budget_bytes=1), "bytes are copied"),
    "too many moves": (asked(budget_moves=1), "replicas are copied"),
    "above its cap": (asked(caps=NO_ROOM), "replicas, of 0"),
    "outside of its set": (asked(broker_sets=(ELSEWHERE,)), "outside of its set"),
    "an exclusive set": (
        lambda of: asked(
            broker_sets=(
                ELSEWHERE.model_copy(
                    update={
                        "topics": ("none",),
                        "exclusive": True,
                        "brokers": tuple(b for move in of.plan.moves for b in move.target),
                    }
                ),
            )
        )(of),
        "exclusive set",
    ),
    "no destination": (asked(destinations=(99,)), "are no destinations"),
    "full disks": (lambda of: replace(of, min_free=1.0), "do not fit"),
    "another sum": (lambda of: with_summary(of, bytes_to_move=1), "the summary says"),
}
"""What is done to a sound drain, and what the judge says."""


@pytest.mark.parametrize("name", SPOILT)
def test_the_judge_sees(name: str) -> None:
    spoil, says = SPOILT[name]
    assert judged(drain()) == []
    found = judged(spoil(drain()))
    assert [text for text in found if says in text], found


def test_the_judge_sees_racks_that_are_spread_worse() -> None:
    of = cluster(["/a", "/a", "/b", "/c"], [(0, 2), (1, 3), (1, 2)])
    made = planned(of.snapshot(), ReassignmentRequest(Action.DRAIN, brokers=(3,)))
    assert (judged(made), made.plan.moves[0].target) == ([], (1, 2))
    assert [text for text in judged(to(lambda move: (1, 0))(made)) if "spread worse" in text]
