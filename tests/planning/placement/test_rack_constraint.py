"""Where a search may put a replica of a partition that is not evenly spread."""

from __future__ import annotations

import numpy as np
import pytest

from rehome.domain.array_types import NONE, Ints, Rows
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.placement.rack_constraint import RackConstraint

PLACES = (("a",), ("c",), ("a",), ("c",), ("a",), ("c",), ("c",))
UNEVEN, EVEN = [2, 4, 0], [2, 4, 6]


@pytest.fixture
def rows() -> Rows:
    return np.array([UNEVEN], np.int32)


@pytest.fixture
def constraint(rows: Rows) -> RackConstraint:
    return RackConstraint(RackTree(PLACES, np.ones(len(PLACES), bool), 3), rows)


def test_no_broker_gets_a_partition_twice_however_uneven_it_was(
    constraint: RackConstraint, rows: Rows
) -> None:
    rows[0] = [6, 4, 0]
    assert constraint.admits_one(0, 2, 2)
    assert not constraint.admits_one(0, 2, 4)


def test_a_partition_may_stay_as_uneven_as_it_was(constraint: RackConstraint) -> None:
    assert not constraint.even()
    assert constraint.admits_one(0, 2, 0)


def test_once_all_are_even_no_move_makes_one_uneven_again(
    constraint: RackConstraint, rows: Rows
) -> None:
    rows[0] = EVEN
    assert constraint.even()
    assert not constraint.admits_one(0, 2, 0)
    assert constraint.admits_one(0, 2, 5)


class CountedTree(RackTree):
    """A tree that counts the rows whose violations it computes."""

    computed = 0

    def unevenness_of(self, partitions: Ints, rows: Rows) -> Ints:
        self.computed += len(rows)
        return super().unevenness_of(partitions, rows)


@pytest.fixture
def tall_rows() -> Rows:
    rng = np.random.default_rng(3)
    return np.stack([rng.permutation(40)[:5] for _ in range(200)]).astype(np.int32)


@pytest.mark.parametrize("dead", [[], [0, 7, 8]])
def test_sets_of_the_same_racks_are_computed_once(tall_rows: Rows, dead: list[int]) -> None:
    hosts = np.ones(40, bool)
    hosts[dead] = False
    tree = CountedTree([(f"r{broker % 3}",) for broker in range(40)], hosts, 5)
    constraint = RackConstraint(tree, tall_rows)
    before = tree.unevenness_of(np.arange(200), tall_rows)
    tree.computed = 0
    asked = [(p, n, b) for p in range(200) for n in range(5) for b in range(0, 40, 3)]
    partitions, positions, brokers = np.array(asked).T
    admitted = constraint.admits(partitions, positions, brokers)
    assert dead or tree.computed < 30
    assert admitted.tolist() == [constraint.admits_one(*one) for one in asked]
    rows = tall_rows[partitions]
    rows[np.arange(len(rows)), positions] = NONE
    twice = (rows == brokers[:, None]).any(axis=1)
    rows[np.arange(len(rows)), positions] = brokers
    as_even = tree.unevenness_of(partitions, rows) <= before[partitions]
    right = as_even & ~twice & hosts[brokers]
    assert admitted.tolist() == right.tolist()


def test_low_and_tall_partitions_are_admitted_together_as_one_by_one(tall_rows: Rows) -> None:
    rows = tall_rows.copy()
    rows[::2, 3:] = NONE
    hosts = np.arange(40) != 7
    tree = RackTree([(f"r{broker % 3}",) for broker in range(40)], hosts, 5)
    constraint = RackConstraint(tree, rows)
    asked = [(p, n, b) for p in range(200) for n in range(3) for b in range(0, 40, 3)]
    partitions, positions, brokers = np.array(asked).T
    admitted = constraint.admits(partitions, positions, brokers)
    assert admitted.tolist() == [constraint.admits_one(*one) for one in asked]
    assert 0 < admitted.sum() < len(admitted)


@pytest.fixture
def of_three_racks() -> RackConstraint:
    rows = np.array([[0, 3, 1], [0, 3, 6], [0, 1, 2], [0, 1, NONE]], np.int32)
    tree = RackTree([(f"r{broker % 3}",) for broker in range(9)], np.ones(9, bool), 3)
    constraint = RackConstraint(tree, rows)
    constraint.evens = True
    return constraint


def test_only_moves_that_make_a_partition_even_can_be_asked_for(
    of_three_racks: RackConstraint,
) -> None:
    asked = [(p, n, b) for p in range(4) for n in range(3) for b in range(9) if (p, n) != (3, 2)]
    partitions, positions, brokers = np.array(asked).T
    admitted = of_three_racks.admits(partitions, positions, brokers)
    assert admitted.tolist() == [of_three_racks.admits_one(*one) for one in asked]
    moves = {(*one[:2], one[2] % 3) for one, yes in zip(asked, admitted, strict=True) if yes}
    even = {(2, n, n) for n in range(3)}
    assert moves == {(0, 0, 2), (0, 1, 2)} | even | {(3, 0, 0), (3, 0, 2), (3, 1, 1), (3, 1, 2)}


def test_what_may_not_move_leaves_the_others_even() -> None:
    rows = np.array([UNEVEN, [0, 1, NONE]], np.int32)
    tree = RackTree(PLACES, np.ones(len(PLACES), bool), 3)
    assert not RackConstraint(tree, rows).even()
    assert RackConstraint(tree, rows, movable=np.array([False, True])).even()
