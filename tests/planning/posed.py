"""The problem that a rebalance solves, posed for all brokers and partitions of a cluster."""

from __future__ import annotations

import numpy as np

from include.planning.arrays import ClusterArrays
from include.planning.layout import Layout
from include.planning.outcome import tree_of
from include.planning.rebalance import problem_of
from include.planning.request import ReassignmentRequest
from include.planning.resources import capacities
from include.planning.search import Problem


def posed(arrays: ClusterArrays, request: ReassignmentRequest) -> Problem:
    """Its layout is as the cluster is now: nothing has moved."""
    hosts = np.ones(len(arrays.brokers.ids), bool)
    return problem_of(
        Layout(arrays),
        tree_of(arrays, hosts, request),
        request,
        partitions=np.ones(len(arrays.rows), bool),
        brokers=hosts,
        capacity=capacities(arrays, hosts, request.weights),
    )
