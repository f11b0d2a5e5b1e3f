"""Targets that no plan can meet are named with what forbids them, and the nearest is reached."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from rehome.domain.plan.infeasible_text import obstacle_text, subject_text
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import both, infeasible, plan
from tests.planning.result.test_summary_figures import resource, with_rates

NONE = [""] * 4
SMALL_AND_LARGE = ["/small"] + ["/large"] * 3


def rates(of: Cluster, values: list[float]) -> Cluster:
    return replace(of, bytes_in=dict(zip(of.replicas, values, strict=True)))


KINDS: dict[str, tuple[Cluster, dict[str, Any], tuple[str, str, int, int], list[int]]] = {
    "a partition larger than the target": (
        cluster(NONE, [(0,)] * 4, sizes=[10, 10, 10, 100]),
        {},
        ("broker 0", "partition t-3 (100 B) is larger than its share", 34, 100),
        [100, 10, 10, 10],
    ),
    "a partition busier than the target": (
        rates(cluster(NONE, [(0,)] * 4), [10, 10, 10, 100]),
        {},
        (
            "broker 0",
            "bytes in per second: partition t-3 (100 B/s) is larger than its share",
            35,
            100,
        ),
        [100] * 4,
    ),
    "a rack that spread forces to hold more": (
        cluster(SMALL_AND_LARGE, [(0, 1)] * 9),
        {"tolerance": 0.01},
        ("rack /small", "even spread over racks, and replicas that stay, force more", 450, 900),
        [900, 300, 300, 300],
    ),
    "a rack that spread forbids to hold more": (
        cluster(SMALL_AND_LARGE, [(0, 1)] * 9),
        {"weights": {"0": 9}},
        ("rack /small", "even spread over racks, and replicas that stay, allow no more", 1350, 900),
        [900, 300, 300, 300],
    ),
    "too few brokers for the replicas": (
        cluster([""] * 3, [(0, 1), (1, 2), (2, 0)]),
        {"weights": {"0": 4}},
        ("broker 0", "one replica of each partition that may move is all", 400, 300),
        [300, 100, 200],
    ),
    "replicas that may not move": (
        both(cluster(NONE, [(0,)] * 8, topic="kept"), cluster(NONE, [(1,)] * 3, topic="free")),
        {"exclude_topics": ["kept"]},
        ("broker 0", "replicas that may not move hold more than the broker's share", 275, 800),
        [800, 100, 100, 100],
    ),
    "an excluded broker": (
        cluster(NONE, [(0,)] * 9),
        {"exclude_brokers": [3]},
        ("broker 3", "the broker takes no new replicas: it is excluded", 225, 0),
        [300, 300, 300, 0],
    ),
    "a cordoned broker": (
        replace(cluster(NONE, [(0,)] * 9), cordoned=frozenset({2})),
        {},
        ("broker 2", "its log dirs are cordoned", 225, 0),
        [300, 300, 0, 300],
    ),
    "an excluded broker that is a rack": (
        cluster(["/a", "/b", "/c"], [(0,)] * 9),
        {"exclude_brokers": [2]},
        ("broker 2", "the broker takes no new replicas: it is excluded", 300, 0),
        [500, 400, 0],
    ),
    "a rack of cordoned brokers": (
        replace(cluster(["/a", "/a", "/b", "/b"], [(0,)] * 8), cordoned=frozenset({2, 3})),
        {},
        ("rack /b", "brokers of it take no new replicas: they are excluded", 400, 0),
        [400, 400, 0, 0],
    ),
    "a rack with replicas that may not move": (
        both(
            cluster(["/a", "/a", "/b", "/b"], [(0,)] * 8, topic="kept"),
            cluster(["/a", "/a", "/b", "/b"], [(2,)] * 2, topic="free"),
        ),
        {"exclude_topics": ["kept"]},
        ("rack /a", "replicas that may not move hold 800 B", 500, 800),
        [800, 0, 100, 100],
    ),
    "a budget that pays for less than a limit allows": (
        both(cluster(NONE, [(0,)] * 4, topic="kept"), cluster(NONE, [(0,)] * 8, topic="free")),
        {"exclude_topics": ["kept"], "budget_moves": 1},
        ("broker 0", "the movement budget does not pay for more", 408, 1100),
        [1100, 100, 0, 0],
    ),
    "a limit that a budget hardly misses": (
        both(cluster(NONE, [(0,)] * 4, topic="kept"), cluster(NONE, [(0,)] * 8, topic="free")),
        {"exclude_topics": ["kept"], "budget_moves": 7},
        ("broker 0", "replicas that may not move hold more than the broker's share", 300, 500),
        [500, 300, 200, 200],
    ),
    "a full disk": (
        cluster(
            [""] * 3,
            [(0,)] * 21,
            disks={0: (10_000, 7_000), 1: (10_000, 150), 2: (10_000, 9_000)},
        ),
        {},
        ("broker 1", "the broker's disk does not hold its share", 700, 100),
        [1000, 100, 1000],
    ),
    "a full broker beside one that takes no part": (
        cluster(
            ["/a", "/a", "/b"],
            [(1,)] * 3 + [(2,)] * 6,
            disks={0: (10_000, 50), 1: (10_000, 7_000), 2: (10_000, 7_000)},
        ),
        {"brokers": [0, 2]},
        ("broker 0", "the broker's disk does not hold its share", 300, 0),
        [0, 300, 600],
    ),
    "a budget": (
        cluster(NONE, [(0,)] * 8),
        {"budget_moves": 2},
        ("broker 0", "the movement budget does not pay for more", 204, 600),
        [600, 100, 100, 0],
    ),
    "replicas that are too large to divide": (
        cluster([""] * 2, [(0,), (0,), (1,)], sizes=[100, 90, 100]),
        {},
        ("broker 0", "no move or swap of whole replicas", 148, 190),
        [190, 100],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_forbids_a_target_is_named_and_the_nearest_reached(kind: str) -> None:
    of, asked, (subject, constraint, wanted, nearest), after = KINDS[kind]
    made = plan(of, action="rebalance", **asked)
    named = [
        item
        for item in made.summary.infeasible
        if subject_text(item.subject) == subject and constraint in obstacle_text(item)
    ]
    said = Counter((item.subject, item.resource) for item in made.summary.infeasible)
    assert max(said.values()) == 1
    assert [(item.wanted, item.nearest) for item in named] == [(wanted, nearest)], (
        made.summary.infeasible
    )
    sizes = [load.size_bytes_after for load in made.summary.brokers]
    assert sizes == after or sorted(sizes) == sorted(after)
    # A disk's free space is not that of the new state.
    if "budget" not in kind and kind != "a full disk":
        assert plan(of.after(made), action="rebalance", **asked).moves == ()


def test_what_is_clipped_in_one_resource_excuses_no_broker_in_another() -> None:
    """Racks clip the number of replicas, which is named; clips of bytes only add up."""
    racks = ["/b", "/a", "/a"]
    orders = cluster(racks, [(1,), (0,), (0,), (0, 1)], [2528, 1, 1, 3606], topic="orders")
    others = cluster(racks, [(0,)] * 4 + [(1, 0)], [0, 100, 0, 0, 100], topic="others")
    params = {"topics": ["orders"], "tolerance": 0.2, "tolerances": {"replicas": 0.1}}
    made = plan(both(orders, others), action="rebalance", **params)
    assert [load.size_bytes_after for load in made.summary.brokers] == [3807, 3706, 2529]
    named = [(subject_text(item.subject), item.wanted, item.nearest) for item in infeasible(made)]
    assert ("broker 2", 3347, 2529) in named


def test_with_a_giant_partition_the_other_brokers_share_the_rest() -> None:
    rows = [(b % 5,) for b in range(40)]
    of = cluster([""] * 5, [(0,), *rows], sizes=[2000, *[100] * 40])
    made = plan(of, action="rebalance")
    stored = resource(made, "bytes")
    assert stored.after == (2000, 1000, 1000, 1000, 1000)
    assert (stored.low[1], stored.high[1]) == (980, 1224)  # what is left, up to the fair share
    named = {subject_text(item.subject): item for item in made.summary.infeasible}
    assert obstacle_text(named["broker 0"]) == "partition t-0 (2 kB) is larger than its share"
    assert "a partition larger than a share" in obstacle_text(named["broker 4"])
    assert (named["broker 4"].wanted, named["broker 4"].nearest) == (1200, 1000)


def test_giants_on_one_broker_are_parted() -> None:
    made = plan(cluster([""] * 6, [(0,)] * 3, sizes=[15, 16, 30]), action="rebalance")
    assert sorted(load.size_bytes_after for load in made.summary.brokers) == [0, 0, 0, 15, 16, 30]


def test_a_giant_that_some_broker_can_hold_is_no_obstacle() -> None:
    of = cluster([""] * 3, [(2,), *[(b,) for b in (0, 1) * 6]], sizes=[400, *[50] * 12])
    made = plan(of, action="rebalance", weights={"2": 2})
    assert made.summary.infeasible == ()
    assert [load.size_bytes_after for load in made.summary.brokers] == [250, 250, 500]


def test_leaders_that_cannot_be_evened_out_are_named() -> None:
    of = cluster([""] * 2, [(0,)] * 8 + [(1, 0)] * 2)
    made = plan(of, action="rebalance", tolerances={"leaders": 0.1}, tolerance=0.9)
    named = [item for item in made.summary.infeasible if "leaders" in obstacle_text(item)]
    assert [(subject_text(item.subject), item.wanted) for item in named] == [
        ("broker 0", 5),
        ("broker 1", 5),
    ]
    assert "no change of leader between replicas in sync" in obstacle_text(named[0])


@pytest.mark.slow
def test_a_target_that_can_be_met_is_not_named() -> None:
    assert (
        plan(
            with_rates(cluster(NONE, [(0,)] * 8)),
            action="rebalance",
            tolerance=0.1,
            tolerances={"bytes_in": 0.5, "bytes_out": 0.5},
        ).summary.infeasible
        == ()
    )
