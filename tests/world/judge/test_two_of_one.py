"""What the judge must find of a cluster that has two names."""

from __future__ import annotations

import pytest

from rehome.domain.kafka import Replicas, TopicPartition
from world.history import Alter
from world.judge.flights import Span
from world.judge.two_of_one import CarriedOutBy, Entries, begun_by_two_entries, two_plans_at_once

PART = TopicPartition("t", 0)


def sent(at: float, run: str, target: Replicas | None = (1, 2)) -> Alter:
    return Alter(int(at), at, "A", f"A:{run}.execute#1", PART, target)


@pytest.mark.parametrize(
    ("alter", "wrong"),
    [
        (sent(60.0, "run-2"), True),
        (sent(60.0, "run-1"), False),  # it had begun before
        (sent(110.0, "run-2"), False),  # one of them was gone by then
        (sent(60.0, "run-2", None), False),  # to cancel is always right
    ],
)
def test_nothing_is_begun_where_two_entries_are_for_one_cluster(alter: Alter, wrong: bool) -> None:
    known = Entries("A", [Span(20.0, 100.0)], {"A:run-1": 10.0, "A:run-2": 30.0})
    assert bool(list(begun_by_two_entries([alter], [known]))) is wrong


@pytest.mark.parametrize(("last", "wrong"), [(40.0, False), (60.0, True)])
def test_one_plan_of_a_ledger_ends_before_another_one_begins(last: float, wrong: bool) -> None:
    alters = [sent(10.0, "run-1"), sent(last, "run-3"), sent(50.0, "run-2")]
    runs = {"A:run-1": "first", "A:run-2": "second", "A:run-3": "first"}
    found = list(two_plans_at_once(alters, [CarriedOutBy("A", runs)]))
    assert bool(found) is wrong
    assert list(two_plans_at_once([*alters, sent(70.0, "run-1", None)], ())) == []
