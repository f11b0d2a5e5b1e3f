"""The bound from prices, where resources pull against each other."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.lagrangian_bound import lagrangian_bound
from rehome.planning.model.arrays import broker_sums
from rehome.planning.rebalance.solver import rebalance
from tests.planning.posed import posed_case


@pytest.mark.slow
def test_prices_of_a_program_over_classes_are_nearly_the_best_ones() -> None:
    problem, capacity = posed_case("stress", 2_000, 18)
    rebalance(problem, capacity)
    layout = problem.layout
    reached = np.stack([broker_sums(layout.rows, w, len(capacity)) for w in problem.weights])
    is_new = (layout.rows[:, :, None] != layout.origin[:, None, :]).all(axis=2)
    copied = float((is_new.sum(axis=1) * layout.size).sum())
    bound = lagrangian_bound(problem, reached, copied, steps=0)
    print(f"copied: {copied / bound:.4f} of the bound")
    assert bound <= copied <= 1.08 * bound
