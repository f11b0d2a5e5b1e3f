"""Costs and bounds of actions that place replicas within a budget."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import Ints
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.placement.within_budget import Costs
from rehome.planning.result.lower_bounds import least_copies


def least_costs(arrays: ClusterArrays, tree: RackTree, partitions: Ints, replicas: Ints) -> Costs:
    """Lower bound of the cost of each partition: to get its number of replicas (P,), evenly
    spread.
    """
    copies = least_copies(tree, arrays.rows, partitions, replicas[partitions])
    return np.stack([copies * arrays.size_bytes[partitions], copies]).astype(float)


def asked_bound(
    arrays: ClusterArrays, tree: RackTree, partitions: Ints, replicas: Ints, paid: Ints
) -> int | None:
    """Lower bound for all of the partitions, if the budget suffices for some only."""
    if len(paid) == len(partitions):
        return None
    return int(least_costs(arrays, tree, partitions, replicas)[0].sum())


def left_out(target: Subject, unpaid: int) -> tuple[Infeasible, ...]:
    """Note on how many of these partitions the budget leaves unchanged."""
    return (Infeasible(target, Obstacle.BUDGET, wanted=0, nearest=unpaid),) if unpaid else ()
