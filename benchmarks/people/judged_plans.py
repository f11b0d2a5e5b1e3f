"""People's clusters, their plans, and the goals that both are judged by."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.people.optimum import Goal
from benchmarks.people_clusters import People, people
from rehome.domain.actions import Action
from rehome.domain.array_types import Rows
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from rehome.planning.model.resource_loads import capacities
from rehome.planning.model.scope import brokers_named
from rehome.planning.planner import PLANNERS
from rehome.planning.rebalance.problem import only_into, problem_of
from rehome.planning.result.outcome import Outcome, tree_of

CHOOSES = (Action.REBALANCE, Action.EXPAND)
"""Actions that choose what moves; of the others, the request says it."""


@dataclass(frozen=True)
class Planned:
    """A case and its plan.

    :ivar cpu_s: seconds of the processor that the plan took, without prices.
    """

    case: People
    arrays: ClusterArrays
    outcome: Outcome
    cpu_s: float

    @property
    def rows(self) -> Rows:
        """(P, R) brokers of each partition after the plan."""
        return self.outcome.layout.rows


def planned(case: People, clock: Callable[[], float] = time.process_time) -> Planned:
    """Plan a case."""
    arrays, request = people(case), case.request()
    began = clock()
    outcome = PLANNERS[case.action](arrays, request)
    return Planned(case, arrays, outcome, clock() - began)


def goal_of(case: People) -> Goal:
    """What a rebalance or an expansion of a case has to reach."""
    arrays, request = people(case), case.request()
    hosts, layout = arrays.brokers.live, Layout(arrays)
    tree = tree_of(arrays, hosts, request)
    problem = problem_of(
        layout,
        tree,
        request,
        partitions=np.ones(len(arrays.rows), bool),
        brokers=hosts,
        capacity=capacities(arrays, hosts, request.weights),
    )
    if case.action is Action.EXPAND:
        problem = only_into(problem, brokers_named(arrays, request), request)
    targets, spread = problem.targets, problem.spread
    paths = arrays.brokers.rack_paths
    racks = np.unique(paths, axis=0, return_inverse=True)[1].ravel() if any(paths) else hosts * 0
    none = np.zeros((0, len(hosts)), np.int64)
    return Goal(
        rows=arrays.rows.copy(),
        size=arrays.size_bytes.astype(float),
        weights=problem.weights,
        low=targets.low,
        high=targets.high,
        share=targets.share,
        gives=problem.gives,
        takes=problem.takes,
        headroom=arrays.brokers.headroom_bytes.astype(float),
        rack=racks if any(paths) else np.arange(len(hosts)),
        topic_of=spread.row if spread is not None else np.zeros(len(arrays.rows), np.int64),
        topic_low=spread.low[:-1].astype(np.int64) if spread is not None else none,
        topic_high=spread.high[:-1].astype(np.int64) if spread is not None else none,
    )
