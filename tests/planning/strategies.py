"""Random small clusters for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.planning.clusters import Cluster, cluster


@st.composite
def clusters(
    draw: Any,
    max_brokers: int = 7,
    max_partitions: int = 14,
    max_depth: int = 2,
    ragged: bool = False,
    partly: bool = False,
) -> Cluster:
    """Up to seven brokers in trees of up to two levels, replica sets in no order at all.

    :param ragged: whether brokers of one tree lie at different depths.
    :param partly: whether some brokers have no rack while others may have one.
    """
    brokers = draw(st.integers(2, max_brokers))
    depth = draw(st.integers(0, max_depth))
    names = st.lists(
        st.sampled_from("abc"), min_size=min(1, depth) if ragged else depth, max_size=depth
    )
    racks = ["/" + "/".join(draw(names)) if depth else "" for _ in range(brokers)]
    if partly:
        racks = [rack if draw(st.booleans()) else "" for rack in racks]
    ids = st.permutations(range(brokers))
    rows = draw(
        st.lists(
            st.tuples(ids, st.integers(1, min(4, brokers))).map(lambda pick: pick[0][: pick[1]]),
            min_size=1,
            max_size=max_partitions,
        )
    )
    sizes = draw(st.lists(st.integers(0, 60), min_size=len(rows), max_size=len(rows)))
    return cluster(racks, rows, sizes)
