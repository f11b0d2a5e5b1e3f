"""Brokers with larger disks and no larger share of the traffic: what goes where."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rehome.planning.effort.optional_parts import FAST
from rehome.planning.effort.shed_options import SHED
from rehome.planning.model.arrays import broker_sums
from rehome.planning.rebalance.solver import rebalance
from rehome.planning.result.lower_bounds import bands_bound
from rehome.planning.search.broker_shed import BYTES_ROW, RATE_ROW
from rehome.planning.search.shed import coldest, narrow, wanted_loads
from rehome.planning.search.state import Search
from tests.planning.posed import posed_case


def short_ones(name: str) -> tuple[np.ndarray, np.ndarray]:
    problem, capacity = posed_case(name)
    search = Search(problem)
    return narrow(search, wanted_loads(search, SHED.inner)), capacity


def test_only_brokers_whose_disks_alone_are_larger_are_short_of_room_for_rate() -> None:
    short, capacity = short_ones("stress")
    assert short.any()
    assert (capacity[short] == 2).all()
    for name in ("skew", "drain", "uneven", "rates"):
        assert not short_ones(name)[0].any()


def test_the_coldest_replicas_hold_the_bytes_that_are_asked_for() -> None:
    search = Search(posed_case("stress")[0])
    replicas = search.on(0)
    weight = search.weight(replicas)
    heat = weight[RATE_ROW] / weight[BYTES_ROW]
    half = float(weight[BYTES_ROW].sum() / 2)
    cold, per_byte = coldest(search, replicas, half)
    assert heat[cold].max() <= heat[~cold].min()
    assert (
        weight[BYTES_ROW, cold].sum()
        >= half
        > weight[BYTES_ROW, cold].sum() - weight[BYTES_ROW].max()
    )
    assert np.isclose(per_byte, weight[RATE_ROW, cold].sum() / weight[BYTES_ROW, cold].sum())


@pytest.mark.slow
def test_larger_disks_are_filled_with_few_bytes_though_their_traffic_stays() -> None:
    problem, capacity = posed_case("stress", 10_000, 30)
    problem = replace(problem, parts=FAST)
    before = broker_sums(problem.layout.rows, problem.weights[BYTES_ROW], len(capacity))
    rebalance(problem, capacity)
    layout, targets = problem.layout, problem.targets
    load = np.stack([broker_sums(layout.rows, w, len(capacity)) for w in problem.weights])
    assert ((load >= targets.low) & (load <= targets.high)).all()
    assert not problem.tree.violations(layout.rows).any()
    bound = bands_bound(
        before, layout.load, targets.low[BYTES_ROW], targets.high[BYTES_ROW], targets.domain
    )
    ratio = layout.incoming.sum() / bound
    print(f"{ratio:.4f} x the bound of bytes alone")
    assert ratio <= 1.10
