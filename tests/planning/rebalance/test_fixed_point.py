"""Planning on the result of a plan plans nothing: written-out cases, and random ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from rehome.domain.request.parse_request import parse_request
from rehome.planning.effort.work import SearchWork
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.planning.rebalance.fixed_point import FIXED_POINT, plan_on
from tests.examples import examples
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import plan
from tests.planning.stored_clusters import Stored
from tests.planning.strategies import clusters

# In each, the first search ends with some broker outside of its band, and one that begins where it
# ended comes closer.
UNFINISHED: Mapping[str, tuple[Cluster, dict[str, Any]]] = {
    "a swap of replicas, one of them on its way back": (
        cluster(
            ["/a", "/c", "/a", "/a", "/b", "/c", "/b"],
            [(3, 5, 4, 0), (4, 0, 5), (3, 1), (0,), (5, 2, 4, 3), (6,), (6, 3, 0)],
            [9, 5, 3, 10, 6, 3, 5],
        ),
        {"action": "rebalance", "tolerance": 0.1},
    ),
    "no racks": (
        cluster(
            [""] * 7,
            [
                (2,),
                (0, 5),
                (1,),
                (4, 2),
                (2, 3, 4, 1),
                (2, 5, 0, 1),
                (3, 1, 4, 5),
                (1,),
                (6, 5, 2, 0),
                (3, 2, 1),
            ],
            [7, 5, 6, 7, 9, 2, 6, 10, 6, 2],
        ),
        {"action": "rebalance", "tolerance": 0.0},
    ),
    "equal sizes, one broker excluded": (
        cluster(
            ["/b", "/c", "/c", "/b", "/b", "/b", "/a"],
            [
                (1, 2, 6),
                (6, 0, 1),
                (0, 5, 4),
                (6, 5, 0),
                (3, 5, 1),
                (1, 0, 5),
                (4, 3, 1),
                (1, 2, 0),
                (2, 1, 4),
                (3, 2, 5),
                (2, 4, 5),
                (0, 4, 6),
                (0, 6, 4),
            ],
            10,
        ),
        {"action": "rebalance", "exclude_brokers": [5], "seed": 3},
    ),
    "an expansion": (
        cluster(
            ["/b/a", "/b/c", "/a/c"],
            [(0, 2), (1, 0), (1, 0), (0, 2), (1, 2), (0, 1), (0, 2), (0, 1), (2, 0), (1, 0)],
            [5, 2, 1, 200, 2, 200, 200, 2, 5, 2],
        ),
        {"action": "expand", "brokers": [1], "tolerance": 0.3, "seed": 2},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNFINISHED)
def test_a_plan_takes_in_what_a_plan_on_its_result_would_do(name: str) -> None:
    of, params = UNFINISHED[name]
    made = plan(of, **params)
    assert made.moves
    assert plan(of.after(made), **params).moves == ()


TOLERANCES = st.fixed_dictionaries(
    {
        "replicas": st.sampled_from([None, None, 0.05, 0.3]),
        "leaders": st.sampled_from([None, 0.05, 0.3]),
        "bytes_in": st.sampled_from([None, 0.0, 0.05, 0.3]),
        "bytes_out": st.sampled_from([None, 0.05, 0.3]),
        "potential_bytes_out": st.sampled_from([None, None, 0.05, 0.3]),
        "leader_bytes_in": st.sampled_from([None, None, 0.05, 0.3]),
    }
)
cases = given(
    of=clusters(),
    rates=st.lists(st.integers(0, 40), min_size=14, max_size=14),
    tolerance=st.sampled_from([0.0, 0.02, 0.1, 0.3]),
    tolerances=TOLERANCES,
    filled=st.sets(st.integers(0, 6), max_size=2),
)


def check(
    of: Cluster,
    rates: list[int],
    tolerance: float,
    tolerances: dict[str, float | None],
    filled: set[int],
) -> None:
    """Balance all brokers, or fill some, in up to five resources."""
    by_partition = dict(zip(of.replicas, rates, strict=False))
    of = replace(of, bytes_in=by_partition, bytes_out={p: 2 * r for p, r in by_partition.items()})
    params: dict[str, Any] = {"tolerance": tolerance, "tolerances": tolerances}
    named = sorted(filled & set(of.racks))
    params |= {"action": "expand", "brokers": named} if named else {"action": "rebalance"}
    made = plan(of, **params)
    assert plan(of.after(made), **params).moves == ()


test_planning_again_plans_nothing_whatever_is_balanced = pytest.mark.slow(
    examples(60)(cases(check))
)


@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("number", range(6))
def test_planning_again_plans_nothing_over_tens_of_thousands_of_cases(number: int) -> None:
    many = settings(max_examples=5_000, deadline=None, derandomize=False, database=None)
    seed(number)(many(cases(check)))()


SIZES = st.lists(st.lists(st.integers(0, 60), max_size=12), min_size=2, max_size=4)


@pytest.mark.slow
@examples(40)
@given(sizes=SIZES, tolerance=st.sampled_from([0.0, 0.02, 0.1]))
def test_planning_again_within_brokers_plans_nothing(
    sizes: list[list[int]], tolerance: float
) -> None:
    numbers = iter(range(50))
    holds = {(0, f"/d{n}"): {next(numbers): size for size in of} for n, of in enumerate(sizes)}
    holds[0, "/d9"] = {next(numbers): 1}
    of = Stored(holds)
    request = parse_request({"action": "move_log_dirs", "tolerance": tolerance})
    made = make_plan(of.snapshot(), request, PlanOptions(plan_id="p"))
    assert make_plan(of.after(made).snapshot(), request, PlanOptions(plan_id="p")).moves == ()


def moved(layout: Layout, targets: Mapping[int, int]) -> Layout:
    """The layout with the only replicas of these partitions on other brokers."""
    for partition, broker in targets.items():
        layout.move(partition, 0, broker)
    return layout


def start(**options: Any) -> Layout:
    """Three brokers, the first of them with partitions 0 and 1, of 100 bytes, the others empty."""
    of = cluster([""] * 3, [(0,), (0,)], **options)
    return moved(Layout(ClusterArrays.from_snapshot(of.snapshot())), {0: 1})


def test_what_further_plans_copy_is_counted_from_where_the_cluster_is_now() -> None:
    def again(arrays: ClusterArrays) -> Layout:
        return moved(Layout(arrays), {0: 2} if arrays.rows[0, 0] == 1 else {})

    layout = start()
    plan_on(layout, again, lambda: False, SearchWork())
    assert layout.rows.tolist() == [[2], [0]]
    assert layout.incoming.tolist() == [0, 0, 100]


def test_what_further_plans_copy_has_to_fit_in_beside_what_is_there_now() -> None:
    disks = {0: (1_000, 50), 1: (1_000, 150), 2: (1_000, 0)}
    seen = []

    def again(arrays: ClusterArrays) -> Layout:
        seen.append(arrays.brokers.headroom_bytes.tolist())
        return moved(Layout(arrays), {1: 1})

    layout = start(disks=disks)
    plan_on(layout, again, lambda: False, SearchWork())
    assert seen == [[150, 50, 0]]
    assert layout.rows.tolist() == [[1], [0]]


def test_plans_that_never_end_are_not_followed_for_ever() -> None:
    layout = start()
    asked = []

    def again(arrays: ClusterArrays) -> Layout:
        asked.append(1)
        return moved(Layout(arrays), {0: 3 - int(arrays.rows[0, 0])})

    plan_on(layout, again, lambda: False, SearchWork())
    assert len(asked) == FIXED_POINT.most_plans


@pytest.mark.slow
def test_a_plan_that_its_budget_cuts_off_is_not_gone_on_with() -> None:
    of, params = UNFINISHED["no racks"]
    whole = plan(of, **params)
    params = params | {"budget_moves": whole.summary.replica_moves - 1}
    made = plan(of, **params)
    assert 0 < made.summary.replica_moves < whole.summary.replica_moves


@pytest.mark.slow
def test_replicas_without_any_load_stay_where_they_are() -> None:
    of = cluster(
        ["/b/a", "/b/c", "/a/b", "/c/b", "/a/a"],
        [(4, 2, 3), (4, 2, 3), (1, 2, 4), (0, 2), (0,), (2, 3, 4), (0, 4)],
        [25, 39, 0, 0, 0, 0, 0],
    )
    rates = dict(zip(of.replicas, [11, 3, 0, 0, 0, 0, 0], strict=True))
    of = replace(of, bytes_in=rates, bytes_out=rates)
    made = plan(of, action="rebalance", tolerance=0.1, seed=3)
    assert {move.partition.partition for move in made.moves} == {0, 1}


def test_where_no_broker_gives_anything_up_there_is_no_rate_per_byte_to_go_by() -> None:
    of = cluster([""] * 2, [(1,), (0,)], [2, 0])
    of = replace(of, bytes_in=dict(zip(of.replicas, [1, 5], strict=True)))
    assert plan(of, action="rebalance", tolerance=0.0).moves == ()
