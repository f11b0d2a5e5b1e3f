"""Lower bound of the replicas that a rebalance has to move."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Rows
from rehome.planning.model.arrays import broker_sums
from rehome.planning.placement.rack_constraint import RackConstraint
from rehome.planning.search.state import Problem


def moves_bound(problem: Problem) -> int:
    """The fewest replicas that any plan moves which meets the bands as well as this one, on each
    broker and of each topic.

    What a broker holds above its band has to leave, and takes at least as many replicas as if the
    largest ones left; what it lacks has to arrive, at best in the largest replicas of all. No two
    brokers give, or receive, the same replica. So both sums are lower bounds in each domain, for
    each resource; and so are the replicas that brokers hold above and below the bands of topics.
    """
    layout, targets = problem.layout, problem.targets
    movable = np.flatnonzero(problem.partitions)
    domain = targets.domain
    if not RackConstraint(problem.tree, layout.origin[movable], movable).even():
        domain = np.zeros_like(domain)
    most = _of_topics(problem)
    by_broker = _ByBroker(layout.origin[movable], len(domain))
    for k in np.flatnonzero(np.isfinite(targets.high).any(axis=1)).tolist():
        weight = problem.weights[k]
        before, after = (
            broker_sums(rows, weight, len(domain)) for rows in (layout.origin, layout.rows)
        )
        over = np.where(problem.gives, before - np.maximum(targets.high[k], after), 0)
        under = np.where(problem.gives, np.minimum(targets.low[k], after) - before, 0)
        gives, takes = by_broker.fewest(weight[movable], over), _fewest(weight[movable], under)
        most = max(
            most,
            sum(
                max(int(gives[domain == d].sum()), int(takes[domain == d].sum()))
                for d in np.unique(domain).tolist()
            ),
        )
    return most


class _ByBroker:
    """Replicas by the broker that holds them.

    :param rows: (P, R) of the partitions that may move.
    """

    def __init__(self, rows: Rows, brokers: int) -> None:
        flat = rows.reshape(-1)
        places = np.flatnonzero(flat != NONE)
        order = np.argsort(flat[places], kind="stable")
        self._partition: Ints = places[order] // rows.shape[1]
        self._end = np.searchsorted(flat[places][order], np.arange(brokers + 1))

    def fewest(self, weight: Floats, least: Floats) -> Ints:
        """(B,) the fewest replicas of each broker that weigh at least so much together."""
        fewest = np.zeros(len(least), np.int64)
        for broker in np.flatnonzero(least > 0).tolist():
            mine = self._partition[self._end[broker] : self._end[broker + 1]]
            fewest[broker] = _fewest(weight[mine], least[[broker]])[0]
        return fewest


def _fewest(weight: Floats, least: Floats) -> Ints:
    """(n,) how many of the largest weights it takes to reach each of the sums; all of them if they
    do not reach it.
    """
    together = np.cumsum(np.sort(weight)[::-1])
    reached: Ints = np.minimum(np.searchsorted(together, least) + 1, len(weight))
    return np.where(least > 0, reached, 0)


def _of_topics(problem: Problem) -> int:
    bands = problem.spread
    if bands is None or bands.leaders_only:
        return 0
    before, after = (bands.counts(of) for of in (problem.layout.origin, problem.layout.rows))
    over = np.maximum(before - np.maximum(bands.high, after), 0) * problem.gives
    under = np.maximum(np.minimum(bands.low, after) - before, 0) * problem.gives
    return int(np.maximum(over[:-1].sum(axis=1), under[:-1].sum(axis=1)).sum())
