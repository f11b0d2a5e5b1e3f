"""Which domain a replica may go to, where each move has to make its partition even."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE, Ints, Rows
from rehome.planning.placement.rack_constraint import RackConstraint


def destinations(racks: RackConstraint, rows: Rows, domain: Ints, receivers: Ints) -> Ints:
    """(P · R,) the domain that each replica may go to: its own, or another one if racks do not
    allow that; NONE where they allow none.

    :param domain: (B,) of each broker.
    """
    flat, width = rows.reshape(-1), rows.shape[1]
    goes = np.where(flat == NONE, NONE, domain[flat])
    some = np.flatnonzero(np.repeat(~racks.apart(), width) & (flat != NONE))
    own, other = np.zeros(len(some), bool), np.full(len(some), NONE)
    for broker in racks.one_of_each_branch(receivers):
        admits = racks.admits(some // width, some % width, np.full(len(some), broker))
        own |= admits & (goes[some] == domain[broker])
        other[admits] = domain[broker]
    goes[some] = np.where(own, goes[some], other)
    return goes
