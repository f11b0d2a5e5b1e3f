"""One more replica may go exactly where it leaves a partition even, whatever the racks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.domain.array_types import NONE
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.placement.one_more import Opening, Openings
from tests.examples import examples
from tests.planning.placement.test_ring import trees


def reached(tree: RackTree, opening: Opening, holders: list[int], level: int = 0) -> set[int]:
    """The brokers that all ways down lead to."""
    if level == tree.height - 1:
        return {broker for broker in opening.children if tree.hosts[broker]} - set(holders)
    open_ones = [child for child in opening.children if child != NONE]
    return {
        broker
        for child in open_ones
        for broker in reached(tree, opening.below(child), holders, level + 1)
    }


@examples(150)
@given(paths=trees(3), replicas=st.integers(1, 4), seed=st.integers(0, 1000))
def test_what_is_open_is_all_that_leaves_a_partition_even(
    paths: list[tuple[str, ...]], replicas: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    hosts = random.random(len(paths)) < 0.9
    tree, live = RackTree(paths, hosts, replicas + 1), np.flatnonzero(hosts)
    if len(live) <= replicas:
        return
    rows = np.array([random.permutation(live)[:replicas] for _ in range(8)], np.int32)
    for holders, opening in zip(rows.tolist(), Openings(tree).of_each(rows), strict=True):
        others = [broker for broker in live.tolist() if broker not in holders]
        violations = tree.violations(np.array([[*holders, b] for b in others], np.int32))
        even = {b for b, bad in zip(others, violations.tolist(), strict=True) if not bad}
        assert (set() if opening is None else reached(tree, opening, holders)) == even


@pytest.mark.parametrize("swapped", [False, True])
def test_partitions_in_the_same_racks_share_what_is_open(swapped: bool) -> None:
    tree = RackTree([("a",), ("a",), ("b",), ("b",), ("c",)], np.ones(5, bool), 3)
    rows = np.array([[0, 2], [3, 1] if swapped else [1, 3]], np.int32)
    first, second = Openings(tree).of_each(rows)
    assert first is second
    assert first is not None
    assert reached(tree, first, [0, 2]) == {4}
