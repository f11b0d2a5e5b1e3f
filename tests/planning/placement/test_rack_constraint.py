"""Where a search may put a replica of a partition that is not evenly spread."""

from __future__ import annotations

import numpy as np
import pytest

from rehome.domain.array_types import Rows
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
