"""Log dirs that end empty, checked by rules of plain Python and by a mixed-integer solver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.move import MoveReason
from rehome.domain.plan.plan import Plan
from rehome.domain.request.parse_request import parse_request
from rehome.errors import InvalidRequestError
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from tests.examples import examples
from tests.planning.clusters import Cluster, cluster
from tests.planning.jbod import Disks, with_disks
from tests.planning.planned import T

TWO = {"/d0": (10_000, 5_000), "/d1": (10_000, 5_001)}


def plan(
    of: Cluster, disks: Disks, cordoned: Sequence[tuple[int, str]] = (), **params: Any
) -> Plan:
    request = parse_request({"action": "evacuate_log_dirs"} | params)
    return make_plan(with_disks(of, disks, cordoned=cordoned), request, PlanOptions(plan_id="p"))


def test_replicas_go_into_another_log_dir_of_their_broker() -> None:
    of = cluster([""] * 2, [(0, 1), (1, 0), (0, 1)])  # partition n lies in log dir n % 2
    disks = {0: TWO, 1: TWO}
    made = plan(of, disks, log_dirs=["0:/d0"])
    assert [(m.partition, m.target, m.target_log_dirs, m.reason) for m in made.moves] == [
        (T[0], (0, 1), ("/d1", "any"), MoveReason.EVACUATE),
        (T[2], (0, 1), ("/d1", "any"), MoveReason.EVACUATE),
    ]
    assert (made.summary.bytes_to_move, made.summary.log_dir_bytes) == (0, 200)
    assert why_text(made.moves[0]) == "/d0 of broker 0 is emptied; /d1 has room."


def test_the_cordoned_log_dirs_are_meant_where_none_is_named() -> None:
    of = cluster([""] * 2, [(0, 1), (1, 0)])
    disks = {0: TWO, 1: TWO}
    shut = [(0, "/d0"), (1, "/d0")]
    both = plan(of, disks, shut)
    assert [m.target_log_dirs for m in both.moves] == [("/d1", "/d1")]
    assert [m.target_log_dirs for m in plan(of, disks, shut, brokers=[1]).moves] == [("any", "/d1")]


def test_a_replica_without_space_in_other_log_dirs_leaves_the_broker_and_keeps_its_position() -> (
    None
):
    small = {"/d0": (10_000, 5_000), "/d1": (10_000, 150)}
    of = cluster([""] * 3, [(0, 1), (1, 0), (1, 0)])
    made = plan(of, {0: small, 1: TWO, 2: TWO}, log_dirs=["0:/d0"])
    assert [(m.partition, m.target, m.target_log_dirs) for m in made.moves] == [
        (T[0], (0, 1), ("/d1", "any")),
        (T[2], (1, 2), ()),
    ]
    assert why_text(made.moves[1]) == (
        "/d0 of broker 0 is emptied, and no other log dir there has room; it goes to broker 2."
    )
    assert made.summary.lower_bound_bytes <= made.summary.bytes_to_move == 100


def test_nothing_comes_to_a_broker_that_could_put_it_into_a_log_dir_to_be_emptied() -> None:
    full = {"/d0": (10_000, 5_000), "/d1": (10_000, 0)}
    of = cluster([""] * 4, [(0,)])
    disks = {0: full, 1: TWO, 2: TWO, 3: TWO}
    made = plan(of, disks, log_dirs=["0:/d0", "1:/d0", "2:/d0"])
    assert [m.target for m in made.moves] == [(3,)]
    with pytest.raises(InvalidRequestError, match="no broker without a log dir to be emptied"):
        plan(of, disks, log_dirs=["0:/d0", "1:/d0", "2:/d0", "3:/d0"])


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({}, "No log dir is cordoned, and none is named"),
        ({"log_dirs": ["0:/d9"]}, "Log dir 0:/d9 is unknown"),
        ({"log_dirs": ["/d0"]}, "is no list of broker:log dir, such as 3:/data/1, 4:/data/2"),
        ({"log_dirs": ["0:/d0"], "action": "drain", "brokers": [1]}, "does not use it"),
    ],
)
def test_what_cannot_be_emptied_is_refused(params: dict[str, Any], problem: str) -> None:
    of = cluster([""] * 2, [(0, 1)])
    with pytest.raises(InvalidRequestError, match=problem):
        plan(of, {0: TWO, 1: TWO}, **params)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Cluster, Disks]:
    sizes = draw(st.lists(st.integers(1, 60), min_size=1, max_size=10))
    room = st.integers(0, 150)
    disks = {
        0: {"/d0": (9_000, 4_000), "/d1": (9_101, draw(room)), "/d2": (9_202, draw(room))},
        1: {"/d0": (99_000, 50_000)},
        2: {"/d0": (99_000, 50_000)},
    }
    rows = [draw(st.sampled_from([(0,), (0, 1), (1, 0), (1, 2)])) for _ in sizes]
    return cluster([""] * 3, rows, sizes), disks


def most_kept(sizes: list[int], headrooms: list[int]) -> float:
    """What two log dirs can take at most, by a mixed-integer solver."""
    if not sizes:
        return 0.0
    both = np.array(sizes * 2, float)
    n = len(sizes)
    limits = [[float(s) if part == d else 0.0 for part in (0, 1) for s in sizes] for d in (0, 1)]
    once = [[float(i % n == k) for i in range(2 * n)] for k in range(n)]
    found = milp(
        -both,
        constraints=[
            LinearConstraint(np.array(limits), -np.inf, headrooms),
            LinearConstraint(np.array(once), 0, 1),
        ],
        integrality=np.ones(2 * n),
        bounds=Bounds(0, 1),
    )
    return -float(found.fun)


@pytest.mark.slow
@examples(150)
@given(case=cases())
def test_the_log_dir_ends_empty_and_as_much_as_half_of_what_could_stay_does(
    case: tuple[Cluster, Disks],
) -> None:
    of, disks = case
    made = {move.partition: move for move in plan(of, disks, log_dirs=["0:/d0"]).moves}
    inside = {p: row for p, row in of.replicas.items() if 0 in row and p.partition % 3 == 0}
    assert set(made) == set(inside)
    arriving, kept = Counter[str](), 0
    for partition, move in made.items():
        paths = dict(zip(move.target, move.target_log_dirs or ["any"] * 9, strict=False))
        assert paths.get(0) in (None, "/d1", "/d2")
        assert all(path == "any" for broker, path in paths.items() if broker != 0)
        assert all(a == b for a, b in zip(move.current, move.target, strict=True) if a != 0)
        assert len(set(move.target)) == len(move.current)
        if 0 in paths:
            arriving[paths[0]] += of.size_of(partition)
            kept += of.size_of(partition)
    headrooms = {path: disks[0][path][1] for path in ("/d1", "/d2")}
    assert all(arriving[path] <= headrooms[path] for path in headrooms)
    for partition, move in made.items():
        if 0 not in move.target:
            assert all(of.size_of(partition) > headrooms[p] - arriving[p] for p in headrooms)
    assert most_kept([of.size_of(p) for p in inside], list(headrooms.values())) <= 2 * kept + 1e-6


def test_a_partition_with_one_replica_leaves_a_rack_whose_brokers_have_no_room() -> None:
    """Its own rack is the emptier one, but the other broker there is full."""
    full = {"/d0": (10_000, 5_000), "/d1": (10_000, 0)}
    of = cluster(["/a", "/a", "/b"], [(0,), (2,)], [100, 5_000])
    made = plan(of, {0: full, 1: {"/d0": (10_000, 0)}, 2: TWO}, log_dirs=["0:/d0"])
    assert [m.target for m in made.moves] == [(2,)]


def test_log_dirs_are_packed_tightly_where_that_keeps_more_on_the_broker() -> None:
    disks = {"/d0": (9_000, 4_000), "/d1": (9_101, 100), "/d2": (9_202, 60)}
    of = cluster([""] * 2, [(0,), (1,), (1,), (0,), (1,), (1,), (0,)], [60, 1, 1, 50, 1, 1, 50])
    made = plan(of, {0: disks, 1: TWO}, log_dirs=["0:/d0"])
    assert [(m.target, m.target_log_dirs) for m in made.moves] == [
        ((0,), ("/d2",)),
        ((0,), ("/d1",)),
        ((0,), ("/d1",)),
    ]
