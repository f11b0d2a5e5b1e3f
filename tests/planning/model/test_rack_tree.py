from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.planning.model.rack_tree import RackTree
from tests.examples import examples
from tests.planning.placement.evenness import is_even

TREES = st.integers(2, 7).flatmap(
    lambda brokers: st.lists(
        st.lists(st.sampled_from("ab"), max_size=2).map(tuple), min_size=brokers, max_size=brokers
    )
)


def tree(
    paths: Sequence[tuple[str, ...]], dead: Collection[int] = (), replicas: int = 4
) -> RackTree:
    hosts = np.array([broker not in dead for broker in range(len(paths))])
    return RackTree(paths, hosts, replicas)


def violations(of: RackTree, *rows: tuple[int, ...]) -> list[int]:
    width = max(len(row) for row in rows)
    padded = [list(row) + [-1] * (width - len(row)) for row in rows]
    found: list[int] = of.violations(np.array(padded, np.int32)).tolist()
    return found


THREE_RACKS = [("r0",), ("r0",), ("r1",), ("r1",), ("r2",), ("r2",)]
TWO_DCS = [("dc0", "r0"), ("dc0", "r0"), ("dc0", "r1"), ("dc1", "r0"), ("dc1", "r1")]


@pytest.mark.parametrize(
    ("paths", "row", "even"),
    [
        (THREE_RACKS, (0, 2, 4), True),
        (THREE_RACKS, (0, 1, 2), False),
        (THREE_RACKS, (0, 2), True),
        (THREE_RACKS, (0, 1), False),
        (THREE_RACKS, (0, 1, 2, 4), True),
        (THREE_RACKS, (0, 1, 2, 3), False),
        (THREE_RACKS, (0, 0, 2), False),
        (TWO_DCS, (0, 2, 3), True),  # 2 : 1, and in dc0 one per rack
        (TWO_DCS, (0, 1, 3), False),  # 2 : 1, but in dc0 both in r0
        (TWO_DCS, (0, 1, 2), False),
        (TWO_DCS, (0, 3, 4), True),
        ([(), (), ()], (0, 1, 2), True),
        ([(), (), ()], (0, 1, 1), False),
    ],
)
def test_even_means_even_at_every_level(
    paths: list[tuple[str, ...]], row: tuple[int, ...], even: bool
) -> None:
    assert (violations(tree(paths), row) == [0]) is even


def test_rows_of_different_lengths_are_judged_each_by_its_own_length() -> None:
    assert violations(tree(THREE_RACKS), (0, 2, 4), (0, 2), (0, 1), (0,)) == [0, 0, 1, 0]


def test_a_replica_on_a_broker_that_may_not_host_is_a_violation() -> None:
    assert violations(tree(THREE_RACKS, dead=(0,)), (0, 2, 4), (1, 2, 4)) == [2, 0]


def test_racks_of_the_same_name_in_two_data_centres_are_two_racks() -> None:
    assert violations(tree(TWO_DCS), (0, 3)) == [0]


@examples(60)
@given(paths=TREES, dead=st.sets(st.integers(0, 6), max_size=2), replicas=st.integers(1, 4))
def test_violations_is_zero_exactly_where_an_exhaustive_check_finds_evenness(
    paths: list[tuple[str, ...]], dead: set[int], replicas: int
) -> None:
    hosts = [broker for broker in range(len(paths)) if broker not in dead]
    if len(hosts) < replicas:
        return
    rows = list(itertools.combinations(range(len(paths)), replicas))
    found = violations(tree(paths, dead), *rows)
    by_broker = dict(enumerate(paths))
    assert [count == 0 for count in found] == [is_even(row, by_broker, hosts) for row in rows]


@pytest.mark.parametrize("at_once", [1, 7, 10_000])
def test_violations_of_many_rows_are_those_of_each(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    of, rng = tree(TWO_DCS), np.random.default_rng(1)
    rows = rng.integers(-1, len(TWO_DCS), (50, 3), np.int32)
    each = [of.violations(row[None]).tolist()[0] for row in rows]
    assert 0 < each.count(0) < len(each)
    monkeypatch.setattr("rehome.planning.model.rack_tree.PARTITIONS_AT_ONCE", at_once)
    assert of.violations(rows).tolist() == each
    assert of.violations_by_level(rows).sum(axis=0).tolist() == each


@examples(60)
@given(paths=TREES, replicas=st.integers(1, 4))
def test_the_least_and_most_replicas_of_a_node_are_those_of_all_even_sets(
    paths: list[tuple[str, ...]], replicas: int
) -> None:
    hosts = range(len(paths))
    if len(paths) < replicas:
        return
    of = tree(paths)
    rows = np.array(list(itertools.combinations(hosts, replicas)), np.int32)
    even = rows[of.violations(rows) == 0]
    for level, node in enumerate(of.node):
        counts = np.stack([np.bincount(node[row], minlength=node.max() + 1) for row in even])
        assert counts.min(axis=0).tolist() == of.least[level][replicas].tolist()
        assert counts.max(axis=0).tolist() == of.most[level][replicas].tolist()


def test_brokers_right_below_a_rack_have_a_name_of_their_own_beside_the_racks_within() -> None:
    of = tree([("a",), ("a", "x"), ("b",), ()])
    names = [[of.name(level, int(of.node[level][b])) for b in range(4)] for level in (1, 2)]
    assert names == [
        ["/a", "/a", "/b", "no rack"],
        ["/a, no rack within", "/a/x", "/b", "no rack"],
    ]
