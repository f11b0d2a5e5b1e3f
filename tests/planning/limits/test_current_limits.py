"""What is left of a plan, judged by caps and broker sets that it was not made with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rehome.domain.request.limits import read_broker_sets, read_caps
from rehome.planning.limits.current_limits import broken_by_what_is_left
from tests.ledger.small_plans import move
from tests.planning.clusters import Cluster, cluster

OF = cluster([""] * 4, [(0, 1), (0, 1), (0, 1)], 100)
FIRST, SECOND = move("t", 0, (0, 1), (2, 1)), move("t", 1, (0, 1), (2, 1))


def broken(
    *left: Any, begun: Any = (), caps: Any = None, sets: Any = (), of: Cluster = OF
) -> list[str]:
    return broken_by_what_is_left(
        of.snapshot(), begun, left, read_caps(caps or {}), read_broker_sets(list(sets))
    )


def cap(replicas: int) -> dict[str, Any]:
    return {"brokers": {"2": {"replicas": replicas}}}


def test_a_broker_that_the_rest_takes_above_its_cap_is_named() -> None:
    assert broken(FIRST, SECOND, caps=cap(2)) == []
    (text,) = broken(FIRST, SECOND, caps=cap(1))
    assert text == "Broker 2 would end with 2 replicas; its cap (number of replicas) is 1 replica."


def test_moves_that_are_done_count_whether_the_snapshot_shows_them_or_not() -> None:
    seen = replace(OF, replicas=dict(OF.replicas) | {FIRST.partition: FIRST.target})
    for of in (OF, seen):
        (text,) = broken(SECOND, begun=[FIRST], caps=cap(1), of=of)
        assert "would end with 2 replicas" in text
    assert broken(begun=[FIRST, SECOND], caps=cap(1)) == [], "nothing is left to do"


def test_a_broker_that_is_above_its_cap_and_gets_nothing_is_not_named() -> None:
    assert broken(FIRST, caps={"brokers": {"1": {"replicas": 1}}}) == []


def test_a_copy_outside_of_the_topics_set_is_named() -> None:
    sets = [{"name": "fast", "topics": ["t"], "brokers": [0, 1, 3]}]
    assert broken(FIRST, sets=sets) == [
        "t-0 would get a replica on broker 2, which is not of its broker set 'fast'."
    ]
    assert broken(FIRST, begun=[FIRST], sets=sets) == []


def test_leaders_and_traffic_are_counted() -> None:
    rated = replace(OF, bytes_in=dict.fromkeys(OF.replicas, 10.0))
    assert "leaders" in "".join(broken(FIRST, caps={"brokers": {"2": {"leaders": 0}}}))
    (text,) = broken(FIRST, caps={"brokers": {"2": {"bytes_in": 9}}}, of=rated)
    assert "bytes in" in text


def test_more_replicas_and_what_the_snapshot_does_not_know_are_no_obstacle() -> None:
    more, unknown = move("t", 0, (0, 1), (0, 1, 2)), move("gone", 0, (0, 1), (7, 1))
    (text,) = broken(more, unknown, caps=cap(0))
    assert "Broker 2 would end with 1 replica;" in text


def test_without_limits_nothing_is_broken() -> None:
    assert broken(FIRST, SECOND) == []
