"""A replica lies in one log dir as a whole: room that is scattered over several does not add up."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.plan.plan import Plan
from rehome.domain.request.parse_request import parse_request
from rehome.errors import InvalidRequestError
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.packing import pack
from rehome.planning.model.volumes import LogDirSize, volumes_of
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from tests.examples import examples
from tests.planning.clusters import Cluster, cluster
from tests.planning.jbod import Disks, overfilled, with_disks

GB = 10**9


def planned(snapshot: Snapshot, **params: Any) -> Plan:
    return make_plan(snapshot, parse_request(params), PlanOptions(plan_id="p"))


def problems(snapshot: Snapshot, **params: Any) -> str:
    with pytest.raises(InvalidRequestError) as refused:
        planned(snapshot, **params)
    return " ".join(refused.value.problems)


# ---------------------------------------------------------------- what is shown in the issue

THREE = cluster(["", ""], [(0,)] * 3, [5 * GB] * 3)
TWO_DIRS = {1: {"/a": (10 * GB, 8 * GB), "/b": (12 * GB, 8 * GB)}}


def test_what_fits_together_but_into_no_log_dir_is_refused() -> None:
    snapshot = with_disks(THREE, TWO_DIRS)
    assert "disk space" in problems(snapshot, action="drain", brokers=[0])
    entries = [{"topic": "t", "partition": n, "replicas": [1]} for n in range(3)]
    asked = {"action": "reassign", "reassignment": {"version": 1, "partitions": entries}}
    assert "fits into no log dir beside the others" in problems(snapshot, **asked)


def test_what_fits_goes_into_log_dirs_that_are_named_where_the_brokers_choice_might_not_do() -> (
    None
):
    two = cluster(["", ""], [(0,)] * 2, [5 * GB] * 2)
    made = planned(with_disks(two, TWO_DIRS), action="drain", brokers=[0])
    assert sorted(move.target_log_dirs for move in made.moves) == [("/a",), ("/b",)]
    roomy = {1: {path: (40 * GB, free * GB) for path, free in (("/a", 30), ("/b", 20))}}
    made = planned(with_disks(two, roomy), action="drain", brokers=[0])
    assert [move.target_log_dirs for move in made.moves] == [(), ()]


def test_a_replica_goes_to_the_broker_one_of_whose_log_dirs_holds_it() -> None:
    of = cluster([""] * 3, [(0,)], [7 * GB])
    disks = {
        1: {"/a": (9 * GB, 6 * GB), "/b": (9 * GB, 5 * GB), "/c": (9 * GB, 4 * GB)},
        2: {"/a": (9 * GB, 8 * GB)},
    }
    (move,) = planned(with_disks(of, disks), action="drain", brokers=[0]).moves
    assert move.target == (2,)


def test_cordoned_log_dirs_hold_nothing() -> None:
    snapshot = with_disks(
        cluster(["", ""], [(0,)], [5 * GB]),
        {1: {"/a": (10 * GB, 8 * GB), "/b": (12 * GB, 4 * GB)}},
        cordoned=[(1, "/a")],
    )
    assert "disk space" in problems(snapshot, action="drain", brokers=[0])


def test_a_log_dir_of_the_operators_own_must_hold_what_is_sent_to_it() -> None:
    snapshot = with_disks(THREE, TWO_DIRS)
    entries = [
        {"topic": "t", "partition": n, "replicas": [1], "log_dirs": ["/a"]} for n in range(2)
    ]
    asked = {"action": "reassign", "reassignment": {"version": 1, "partitions": entries}}
    assert "fits into no log dir" in problems(snapshot, **asked)


# ---------------------------------------------------------------- volumes


def sizes(*rows: tuple[int, str, int, int]) -> list[LogDirSize]:
    return [LogDirSize(broker, total, usable, path) for broker, path, total, usable in rows]


def volumes(
    *rows: tuple[int, str, int, int], held: dict[tuple[int, str], int] | None = None
) -> list[list[str]]:
    return [list(volume.paths) for volume in volumes_of(sizes(*rows), lambda: held or {})]


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ((1, "/b", 8000, 5000), [["/a", "/b"]]),
        ((1, "/b", 8000, 4993), [["/a", "/b"]]),  # read a moment later
        ((1, "/b", 8000, 4992), [["/a"], ["/b"]]),
        ((1, "/b", 8001, 5000), [["/a"], ["/b"]]),
        ((2, "/b", 8000, 5000), [["/a"], ["/b"]]),
    ],
)
def test_log_dirs_of_a_broker_that_tell_the_same_are_one_volume(
    second: tuple[int, str, int, int], expected: list[list[str]]
) -> None:
    assert volumes((1, "/a", 8000, 5000), second) == expected


def test_log_dirs_that_hold_more_than_is_used_of_one_volume_are_disks_that_look_alike() -> None:
    rows = (1, "/a", 8000, 5000), (1, "/b", 8000, 5000)
    assert volumes(*rows, held={(1, "/a"): 1500, (1, "/b"): 1500}) == [["/a", "/b"]]
    assert volumes(*rows, held={(1, "/a"): 1500, (1, "/b"): 1501}) == [["/a"], ["/b"]]


def test_empty_log_dirs_are_apart_where_another_broker_has_the_same_paths_apart() -> None:
    new = (3, "/a", 8000, 7999), (3, "/b", 8000, 7999)
    old = (1, "/a", 8000, 5000), (1, "/b", 8000, 3000)
    shared = (2, "/a", 8000, 5000), (2, "/b", 8000, 5000)
    assert volumes(*new, *shared) == [["/a", "/b"], ["/a", "/b"]]
    assert volumes(*old, *new) == [["/a"], ["/b"], ["/a"], ["/b"]]


def test_a_volume_counts_once_in_rooms_and_capacity() -> None:
    of = cluster(["", ""], [(0,)], [5 * GB])
    disks = {1: {"/a": (10 * GB, 8 * GB), "/b": (10 * GB, 8 * GB)}}
    brokers = ClusterArrays.from_snapshot(with_disks(of, disks)).brokers
    assert brokers.headroom_bytes[1] == 8 * GB
    assert brokers.capacity_bytes[1] == 10 * GB
    assert brokers.volume_paths[1] == (("/a", "/b"),)
    two = cluster(["", ""], [(0,)] * 2, [5 * GB] * 2)
    assert "disk space" in problems(with_disks(two, disks), action="drain", brokers=[0])


# ---------------------------------------------------------------- packing


@examples(200)
@given(
    headrooms=st.lists(
        st.lists(st.integers(-1, 12), min_size=3, max_size=3), min_size=2, max_size=2
    ),
    copies=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), max_size=7),
)
def test_copies_are_packed_the_largest_first_where_each_leaves_least(
    headrooms: list[list[int]], copies: list[tuple[int, int]]
) -> None:
    broker, size = (np.array([copy[i] for copy in copies], np.int64) for i in (0, 1))
    chosen = pack(np.array(headrooms), broker, size)
    left = [list(row) for row in headrooms]
    for number in sorted(range(len(copies)), key=lambda n: (broker[n], -size[n], n)):
        fits = [
            (headroom, v)
            for v, headroom in enumerate(left[broker[number]])
            if headroom >= size[number]
        ]
        assert chosen[number] == (min(fits)[1] if fits else -1)
        if fits:
            left[broker[number]][chosen[number]] -= size[number]


def packable(headrooms: list[int], copies: list[int]) -> bool:
    """By trying all ways."""
    return any(
        all(
            sum(s for s, w in zip(copies, way, strict=True) if w == v) <= headroom
            for v, headroom in enumerate(headrooms)
        )
        for way in product(range(len(headrooms)), repeat=len(copies))
    )


# ---------------------------------------------------------------- plans


@st.composite
def jbods(draw: st.DrawFn) -> tuple[Cluster, Disks]:
    """Six brokers of two or three disks that are filled to about two thirds, unevenly."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    partitions = draw(st.integers(12, 40))
    pull = rng.dirichlet(np.ones(6) * draw(st.sampled_from([1.0, 4.0])))
    rows = [rng.choice(6, 2, replace=False, p=pull).tolist() for _ in range(partitions)]
    size = np.maximum(rng.lognormal(4, 1, partitions), 1).astype(int)
    mean = 2 * size.sum() / 6
    disks = {}
    for b in range(6):
        parts = rng.dirichlet(np.ones(int(rng.integers(2, 4))))
        free = mean * draw(st.sampled_from([0.3, 0.6, 1.2]))
        disks[b] = {f"/d{n}": (int(3 * mean) + n, int(part * free)) for n, part in enumerate(parts)}
    return cluster([""] * 6, rows, size.tolist()), disks


REQUESTS = (
    {"action": "rebalance", "tolerance": 0.05},
    {"action": "expand", "brokers": [0, 1], "tolerance": 0.05},
    {"action": "drain", "brokers": [2]},
    {"action": "set_replication_factor", "replication_factor": 3},
)


def unless_full(make: Callable[[], Plan]) -> Plan | None:
    try:
        return make()
    except InvalidRequestError as refused:
        if not any("disk" in problem or "log dir" in problem for problem in refused.problems):
            raise
        return None


@pytest.mark.slow
@examples(60)
@given(jbod=jbods(), request=st.sampled_from(REQUESTS))
def test_no_plan_fills_a_log_dir_whatever_the_brokers_choose(
    jbod: tuple[Cluster, Disks], request: dict[str, Any]
) -> None:
    of, disks = jbod
    made = unless_full(lambda: planned(with_disks(of, disks), **request))
    assert made is None or overfilled(made.moves, disks) == []


@examples(60)
@given(data=st.data())
def test_a_broker_is_drained_whenever_the_copies_can_be_packed(data: st.DataObject) -> None:
    headrooms = data.draw(st.lists(st.integers(1, 12), min_size=2, max_size=3, unique=True))
    copies = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    volume = pack(np.array([headrooms]), np.zeros(len(copies), np.int64), np.array(copies))
    assume((volume >= 0).all())
    assert packable(headrooms, copies)
    disks = {1: {f"/d{n}": (1000 + n, headroom) for n, headroom in enumerate(headrooms)}}
    snapshot = with_disks(cluster(["", ""], [(0,)] * len(copies), copies), disks)
    made = planned(snapshot, action="drain", brokers=[0])
    assert len(made.moves) == len(copies)
    assert overfilled(made.moves, disks) == []
