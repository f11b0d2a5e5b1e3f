"""Which domain a replica may go to so that its partition is even."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.placement.even_destinations import destinations
from rehome.planning.placement.rack_constraint import RackConstraint


def test_each_replica_has_a_domain_where_its_partition_is_even() -> None:
    rows = np.array([[0, 3, 1], [0, 3, 6], [0, 1, 2], [0, 1, NONE]], np.int32)
    racks = RackConstraint(RackTree([(f"r{b % 3}",) for b in range(9)], np.ones(9, bool), 3), rows)
    racks.evens = True
    goes = destinations(racks, rows, np.arange(9) % 3, np.arange(9))
    assert goes.reshape(4, 3).tolist() == [[2, 2, NONE], [NONE] * 3, [0, 1, 2], [0, 1, NONE]]
