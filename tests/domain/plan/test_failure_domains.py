from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.domain.plan.failure_domains import weaknesses_of
from rehome.domain.plan.figures import Weakened
from tests.ledger.small_plans import move

TWO_CENTRES = {n: ("dc0" if n < 4 else "dc1", f"r{n % 2}") for n in range(8)}
FLAT = {n: (f"r{n % 3}",) for n in range(6)}


def test_a_drain_of_a_data_centre_is_named_at_its_level_though_the_rest_allows_no_better() -> None:
    moves = [move("t", n, (0, 4), (0, 1)) for n in range(3)]
    (found,) = weaknesses_of(moves, TWO_CENTRES)
    assert found == Weakened(1, 2, before=2, after=1, partitions=3, example="t-0")
    assert str(found) == (
        "3 partitions, such as t-0, end with replicas in 1 domain of rack level 1 instead of 2"
    )


def test_fewer_racks_and_fewer_replicas_are_told_apart() -> None:
    moves = [move("a", 0, (0, 1, 2), (0, 1)), move("b", 7, (0, 1), (0, 3))]
    assert [str(each) for each in weaknesses_of(moves, FLAT)] == [
        "1 partition, such as b-7, ends with replicas in 1 rack instead of 2",
        "1 partition, such as a-0, ends with replicas in 2 racks instead of 3",
        "1 partition, such as a-0, ends with replicas on 2 brokers instead of 3",
    ]


def test_a_plan_that_weakens_nothing_says_nothing() -> None:
    assert weaknesses_of([], FLAT) == ()
    assert weaknesses_of([move("a", 0, (0, 3), (0, 1))], FLAT) == ()
    assert weaknesses_of([move("a", 0, (0, 1), (3, 4))], {}) == ()


def test_of_a_broker_whose_rack_is_not_known_only_the_replica_counts() -> None:
    """The dead broker 9 may have been in any rack."""
    assert weaknesses_of([move("a", 0, (0, 1, 9), (0, 1, 4))], FLAT) == ()


brokers = st.lists(st.integers(0, 7), min_size=1, max_size=4, unique=True)


@pytest.mark.slow
@given(st.lists(st.tuples(brokers, brokers), max_size=20))
def test_every_partition_that_loses_a_domain_is_counted(
    pairs: list[tuple[list[int], list[int]]],
) -> None:
    moves = [move("t", n, tuple(was), tuple(is_)) for n, (was, is_) in enumerate(pairs)]
    found = weaknesses_of(moves, TWO_CENTRES)
    for level in (1, 2, 0):
        lost = 0
        for was, is_ in pairs:
            sides = [{TWO_CENTRES[b][:level] if level else b for b in side} for side in (was, is_)]
            lost += len(sides[1]) < len(sides[0])
        assert sum(each.partitions for each in found if each.level == level) == lost
