"""Blocks of brokers: each has what the others have, to give and to take."""

from __future__ import annotations

import numpy as np

from rehome.planning.programs.lp_rounding import similar_blocks
from rehome.planning.search.broker_shed import BYTES_ROW
from rehome.planning.search.state import Search
from tests.planning.posed import posed_case


def test_every_broker_is_in_one_block_and_no_block_is_too_large() -> None:
    rng = np.random.default_rng(1)
    for brokers in (1, 7, 10, 11, 33, 95):
        found = similar_blocks(rng.standard_normal((3, brokers)), np.ones(brokers), 10)
        assert np.array_equal(np.sort(np.concatenate(found)), np.arange(brokers))
        sizes = [len(block) for block in found]
        assert max(sizes) <= 10
        assert max(sizes) - min(sizes) <= 1
        assert all((np.diff(block) > 0).all() for block in found)


def test_surpluses_of_all_resources_even_out_within_every_block() -> None:
    search = Search(posed_case("stress", 20_000, 180)[0])
    unit = search.share.mean(axis=1, keepdims=True)
    for domain in np.unique(search.problem.targets.domain):
        here = search.problem.targets.domain == domain
        surplus = ((search.load - search.share) / unit)[:, here]
        found = similar_blocks(surplus, (search.share / unit)[BYTES_ROW, here], 20)
        assert len(found) == 3
        worst = max(np.abs(surplus[:, block].sum(axis=1)).max() for block in found)
        print(f"furthest from even: {worst:.3f} shares of a broker")
        assert worst < 0.2


def test_large_brokers_are_spread_over_the_blocks() -> None:
    share = np.repeat([2.0, 0.5], [12, 24])
    surplus = np.vstack([1 - share, np.zeros((2, 36))])
    for block in similar_blocks(surplus, share, 12):
        assert (share[block] == 2.0).sum() == 4
