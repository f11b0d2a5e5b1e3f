"""The fewest copies of many partitions at once are those of each alone."""

from __future__ import annotations

import numpy as np
import pytest

from rehome.domain.array_types import NONE
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.placement.rack_spread import keepable
from rehome.planning.result.lower_bounds import least_copies

PATHS = {
    "none": [()] * 7,
    "three racks": [("a",), ("a",), ("a",), ("b",), ("b",), ("c",), ("c",)],
    "two levels": [("x", "a"), ("x", "b"), ("x", "b"), ("y", "a"), ("y", "a"), ("y", "b"), ("z",)],
}


@pytest.mark.parametrize("paths", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("seed", range(5))
def test_the_fewest_copies_are_counted_as_for_each_partition_alone(
    paths: list[tuple[str, ...]], seed: int
) -> None:
    random = np.random.default_rng(seed)
    hosts = random.random(7) < 0.8
    hosts[:4] = True
    tree = RackTree(paths, hosts, 5)
    held, wanted = random.integers(1, 5, 60), random.integers(1, 5, 60)
    origin = np.full((60, 5), NONE, np.int32)
    for p, count in enumerate(held.tolist()):
        origin[p, :count] = random.permutation(7)[:count]
    must_be_even = random.random(60) < 0.5
    partitions = np.flatnonzero(random.random(60) < 0.7)
    counted = least_copies(
        tree, origin, partitions, wanted[partitions], must_be_even[partitions]
    ).tolist()
    for p, copies in zip(partitions.tolist(), counted, strict=True):
        live = [int(b) for b in origin[p] if b != NONE and hosts[b]]
        kept = len(live)
        if must_be_even[p]:
            kept = keepable(tree, 0, 0, live, int(wanted[p]))
        assert copies == max(0, int(wanted[p]) - kept)
