"""Topics whose leaders alone are to be spread: counted here, without the planner's code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.domain.plan.infeasible_text import subject_text
from rehome.domain.resources import Resource
from tests.examples import examples
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import both, infeasible, plan

SPREADS_TOPICS = True  # see conftest

BROKERS = 4
ASKED = {"action": "rebalance", "tolerance": 0.9, "topic_spread_of": "leaders"}
LOOSE = {"bytes_in": None, "bytes_out": None, "leaders": None}
ROWS = st.lists(
    st.permutations(range(BROKERS)).map(lambda order: tuple(order[:2])), min_size=4, max_size=9
)


def off(rows: Sequence[Sequence[int]]) -> int:
    """Leaders beyond a broker's share of a topic ± 1, or missing to it."""
    led, partitions = Counter(row[0] for row in rows), len(rows)
    most = (partitions + BROKERS) // BROKERS
    least = -((BROKERS - partitions) // BROKERS)
    return sum(max(led[b] - most, least - led[b], 0) for b in range(BROKERS))


def rows_of(of: Cluster, topic: str) -> list[Sequence[int]]:
    return [row for partition, row in of.replicas.items() if partition.topic == topic]


@pytest.mark.slow
@examples(120)
@given(topics=st.lists(ROWS, min_size=1, max_size=2))
def test_leaders_of_each_topic_are_spread_as_far_as_single_changes_can(
    topics: list[list[tuple[int, int]]],
) -> None:
    of = cluster([""] * BROKERS, topics[0], topic="t0")
    for number, more in enumerate(topics[1:], 1):
        of = both(of, cluster([""] * BROKERS, more, topic=f"t{number}"))
    made, free = (
        plan(of, **ASKED, tolerances=LOOSE | {"topic_spread": spread}) for spread in (0, None)
    )
    assert made.summary.bytes_to_move == free.summary.bytes_to_move, "nothing is copied for it"
    named = {subject_text(note.subject) for note in infeasible(made)}
    for topic in (f"t{number}" for number in range(len(topics))):
        rows = rows_of(of.after(made), topic)
        assert off(rows) <= off(rows_of(of.after(free), topic))
        assert not off(rows) or f"topic {topic}" in named
        for p, row in enumerate(rows):
            assert off([*rows[:p], row[::-1], *rows[p + 1 :]]) >= off(rows)


def test_with_broker_sets_too_nothing_is_copied_to_spread_leaders() -> None:
    brokers = [""] * (BROKERS + 1)
    of = both(cluster(brokers, [(0, 1)] * 8, topic="a"), cluster(brokers, [(2, 3)] * 8, topic="b"))
    sets = [{"name": "s", "topics": ["a"], "brokers": list(range(BROKERS))}]
    tolerances = LOOSE | {"topic_spread": 0}
    made = plan(of, **ASKED, one_sided=True, tolerances=tolerances, broker_sets=sets)
    assert made.summary.bytes_to_move == 0
    found = {(subject_text(note.subject), note.resource) for note in infeasible(made)}
    assert found == {("topic a", Resource.LEADERS), ("topic b", Resource.LEADERS)}
