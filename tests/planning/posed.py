"""The problem that a rebalance solves, posed for all brokers and partitions of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from benchmarks.clusters import CASES, build
from benchmarks.planning.plan import request_of
from rehome.domain.array_types import Floats, Ints, Mask
from rehome.domain.request.request import Effort, ReassignmentRequest
from rehome.planning.effort.optional_parts import FAST
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from rehome.planning.model.resource_loads import capacities
from rehome.planning.rebalance.problem import problem_of
from rehome.planning.result.outcome import tree_of
from rehome.planning.search.state import Problem

PLAIN = replace(FAST, other_starts=0, reconsidered=0, fewest_moves=False)
"""The search once: for tests of what is done with its result. Small clusters take a tenth."""


def posed(arrays: ClusterArrays, request: ReassignmentRequest) -> Problem:
    """Its layout is as the cluster is now: nothing has moved."""
    hosts = np.ones(len(arrays.brokers.ids), bool)
    return _of_all(arrays, request, hosts, capacities(arrays, hosts, request.weights))


def posed_case(
    name: str,
    partitions: int = 4_000,
    brokers: int = 12,
    tolerances: Mapping[str, float] | None = None,
) -> tuple[Problem, Floats]:
    """A case of the benchmark, small, to be planned thoroughly; its brokers' capacity in bytes.

    :param tolerances: of resources in addition to those of the strict policy.
    """
    instance = build(next(case for case in CASES if case.name == name), partitions, brokers, seed=3)
    strict = request_of("strict")
    request = replace(
        strict, effort=Effort.THOROUGH, tolerances={**strict.tolerances, **(tolerances or {})}
    )
    problem = _of_all(instance.arrays, request, ~instance.drained, instance.capacity)
    return problem, instance.capacity[0]


def posed_with_headrooms(problem: Problem, headrooms: Ints) -> Problem:
    """The same problem and rows, with other space on the volumes (B, V)."""
    layout = problem.layout
    brokers = layout.arrays.brokers.with_headrooms(headrooms)
    other = Layout(replace(layout.arrays, brokers=brokers))
    other.lay_out(layout.rows)
    return replace(problem, layout=other)


def _of_all(
    arrays: ClusterArrays, request: ReassignmentRequest, hosts: Mask, capacity: Floats
) -> Problem:
    return problem_of(
        Layout(arrays),
        tree_of(arrays, hosts, request),
        request,
        partitions=np.ones(len(arrays.rows), bool),
        brokers=np.ones(len(arrays.brokers.ids), bool),
        capacity=capacity,
    )
