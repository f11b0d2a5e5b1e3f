"""KIP-879's steps, traced by hand on small trees, and against a literal reading of them."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.domain.array_types import NONE
from rehome.domain.plan.causes.cause_text import why_text
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.placement.rack_spread import choose
from rehome.planning.placement.ring import Ring
from tests.examples import examples
from tests.planning.clusters import cluster
from tests.planning.placement.evenness import is_even
from tests.planning.planned import both, plan

FLAT = [(), (), ()]
TWO_RACKS = [("A",), ("A",), ("B",), ("B",)]
UNEVEN = [("A",), ("B",), ("B",), ("B",)]
TWO_DCS = [("dc0", "r0"), ("dc0", "r0"), ("dc0", "r1"), ("dc1", "r0"), ("dc1", "r1")]
DEEP = [("eu", "a", "x"), ("eu", "a", "y"), ("eu", "b", "x"), ("us", "a", "x"), ("us", "a", "x")]


def placed(
    paths: Sequence[tuple[str, ...]],
    replicas: int,
    partitions: int,
    dead: Collection[int] = (),
) -> list[list[int]]:
    hosts = np.array([broker not in dead for broker in range(len(paths))])
    tree = RackTree(paths, hosts, replicas)
    ring = Ring(tree)
    return [ring.visit(choose(tree, [], replicas, hosts, ring)) for _ in range(partitions)]


# Step 1 of the KIP makes the tree; step 2 lets every node point at its first child; steps 3 and 4
# are the words of each trace: "A→0" is: the root points at A, A at broker 0, both pointers move on.
TRACES = {
    "one level, two of three": (
        FLAT,
        2,
        [
            [0, 1],  # →0 →1, the root points at 2
            [2, 0],  # →2, round to →0
            [1, 2],  # →1 →2
            [0, 1],  # as at first
        ],
    ),
    "two racks, one replica in each": (
        TWO_RACKS,
        2,
        [
            [0, 2],  # A→0 B→2; A points at 1, B at 3
            [1, 3],  # A→1 B→3; both are round
            [0, 2],
        ],
    ),
    "two racks, three replicas": (
        TWO_RACKS,
        3,
        [
            [0, 2, 1],  # A→0 B→2 A→1, the root points at B
            [3, 0, 2],  # B→3 A→0 B→2, the root points at A
            [1, 3, 0],  # A→1 B→3 A→0
        ],
    ),
    "a rack that is full is passed over": (
        UNEVEN,
        3,
        [
            [0, 1, 2],  # A→0 B→1, A has no other broker, B→2; the root points at A
            [0, 3, 1],  # A→0 B→3 B→1
            [0, 2, 3],  # A→0 B→2 B→3
        ],
    ),
    "two levels of racks": (
        TWO_DCS,
        3,
        [
            [0, 3, 2],  # dc0→r0→0 dc1→r0→3 dc0→r1→2, the root points at dc1
            [4, 1, 3],  # dc1→r1→4 dc0→r0→1 dc1→r0→3, the root points at dc0
            [2, 4, 0],  # dc0→r1→2 dc1→r1→4 dc0→r0→0
        ],
    ),
    "three levels of racks": (
        DEEP,
        4,
        [
            [0, 3, 2, 4],  # eu→a→x→0 us→a→x→3 eu→b→x→2 us→a→x→4, the root points at eu
            [1, 3, 2, 4],  # eu→a→y→1 us→a→x→3 eu→b→x→2 us→a→x→4
        ],
    ),
    "three levels, more replicas than the smaller branch holds": (
        DEEP,
        5,
        [
            [0, 3, 2, 4, 1],  # as above; then eu→a→y→1, the root points at us
            [3, 2, 4, 0, 1],  # us→a→x→3 eu→b→x→2 us→a→x→4 eu→a→x→0, us is full, eu: b is, a→y→1
        ],
    ),
}


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)
def test_new_partitions_are_placed_as_traced_by_hand(
    trace: tuple[list[tuple[str, ...]], int, list[list[int]]],
) -> None:
    paths, replicas, rows = trace
    assert placed(paths, replicas, len(rows)) == rows


def test_brokers_that_may_not_host_are_passed_over() -> None:
    # A→1, for 0 is dead, B→2; then A→1 again, B→3.
    assert placed(TWO_RACKS, 2, 2, dead=(0,)) == [[1, 2], [1, 3]]


# The rings stand where the topic's last partition left them, and go on from partition to partition.
# Where that would leave a partition uneven, a rack that has its share of it already is passed over.
GROWTH = {
    "one level": (
        ["", "", ""],
        [(0, 1), (2, 0), (1, 2)],
        3,
        [[2], [1], [0]],  # each has one broker left
    ),
    "four racks of one broker": (
        ["/A", "/B", "/C", "/D"],
        [(0, 1), (2, 3)],  # leave the root pointing at A
        3,
        [[2], [0]],  # A and B have one: C→2; D has one: A→0
    ),
    "two racks": (
        ["/A", "/A", "/B", "/B"],
        [(0, 2), (1, 3)],  # leave the root at A, A at 0, B at 2
        3,
        [[1], [2]],  # A→0 has one: →1; B→2
    ),
    "three racks of two": (
        ["/A", "/A", "/B", "/B", "/C", "/C"],
        [(0, 2), (4, 1), (3, 5)],  # leave the root at A, A at 0, B at 2, C at 4
        3,
        [[4], [2], [0]],  # A and B have one: C→4; A has one: B→2; C has one: A→0
    ),
    "by two at once, over two levels": (
        ["/dc0/r0", "/dc0/r1", "/dc1/r0", "/dc1/r1"],
        [(0,), (2,)],  # leave the root at dc0, dc0 at r1, dc1 at r1
        3,
        [
            [1, 3],  # dc0→r1→1 dc1→r1→3; the root points at dc0, dc0 at r0, dc1 at r0
            [0, 3],  # dc0→r0→0; dc1→r0 holds it on its only broker: r1→3
        ],
    ),
    "partitions that all lie on the same brokers": (
        [""] * 4,
        [(0, 1)] * 4,  # leave the root at 2
        3,
        [[2], [3], [2], [3]],  # 0 and 1 have one
    ),
}


@pytest.mark.parametrize("growth", GROWTH.values(), ids=GROWTH)
def test_more_replicas_go_on_where_the_existing_ones_left_the_rings(
    growth: tuple[list[str], list[tuple[int, ...]], int, list[list[int]]],
) -> None:
    racks, rows, replicas, added = growth
    made = plan(cluster(racks, rows), action="set_replication_factor", replication_factor=replicas)
    assert [list(move.target[len(move.current) :]) for move in made.moves] == added
    assert [move.target[: len(move.current)] for move in made.moves] == rows


def test_sixty_partitions_on_two_brokers_of_four_get_thirty_replicas_on_each_of_the_others() -> (
    None
):
    of = cluster([""] * 4, [(0, 1)] * 60)
    made = plan(of, action="set_replication_factor", replication_factor=3)
    added = [move.target[2] for move in made.moves]
    assert added == [2, 3] * 30


def test_the_ring_passes_over_a_broker_that_is_fuller_than_its_siblings() -> None:
    racks = ["/A", "/B", "/C", "/D"]
    of = both(cluster(racks, [(0, 1), (2, 3)]), cluster(racks, [(2,)], 1_000, topic="u"))
    made = plan(of, action="set_replication_factor", replication_factor=3, topics=["t"])
    assert [move.target for move in made.moves] == [(0, 1, 3), (2, 3, 0)]
    assert "next on the rings" in why_text(made.moves[0])


@pytest.mark.slow
def test_sizes_apart_leave_brokers_no_further_apart_than_the_tolerance_and_one_replica() -> None:
    rng = np.random.default_rng(7)
    sizes = rng.lognormal(6, 1, 600).astype(int)
    racks = [f"/r{broker % 3}" for broker in range(12)]
    rows = [rng.permutation(3) + 3 * rng.integers(0, 4, 3) for _ in sizes]
    of = cluster(racks, [row[:2].tolist() for row in rows], sizes.tolist())
    params = {"action": "set_replication_factor", "replication_factor": 3}
    made, turns_alone = plan(of, **params), plan(of, **params, tolerance=0.99)
    before = [load.size_bytes_before for load in made.summary.brokers]
    after = [load.size_bytes_after for load in made.summary.brokers]
    assert max(before) > 1.1 * np.mean(before)
    assert max(after) < 1.04 * np.mean(after)
    assert made.summary.rack_violations_after == 0
    assert max(load.size_bytes_after for load in turns_alone.summary.brokers) > 1.1 * np.mean(after)


def trees(max_depth: int) -> st.SearchStrategy[Any]:
    """Up to ten brokers at most that deep below the root, leaves at uneven depths and sizes."""
    return st.integers(2, 10).flatmap(
        lambda brokers: st.lists(
            st.lists(st.sampled_from("abc"), max_size=max_depth - 1).map(tuple),
            min_size=brokers,
            max_size=brokers,
        )
    )


class LiteralRing:
    """The KIP's four steps, one after the other, on nested dictionaries."""

    def __init__(self, paths: list[tuple[str, ...]], hosts: set[int]) -> None:
        depth = max(len(path) for path in paths)
        self.root: dict[str, Any] = {"ring": [], "next": 0, "children": {}}
        for broker, path in enumerate(paths):
            node = self.root
            for name in (*path, *[""] * (depth - len(path)), broker):
                if name not in node["children"]:
                    node["ring"].append(name)
                    node["children"][name] = {"ring": [], "next": 0, "children": {}}
                node = node["children"][name]
        self.hosts = hosts

    def place(self, replicas: int, held: Sequence[int] = (), *, even: bool = False) -> list[int]:
        """Step 3 and 4 for each replica; ``even``: racks that have their share are passed over."""
        taken = list(held)
        for _ in range(replicas):
            node, broker = self.root, -1
            while node["ring"]:
                fewest = min(
                    self.holds(child, name, taken)
                    for name, child in node["children"].items()
                    if self.room(child, name, taken)
                )
                while True:
                    broker = node["ring"][node["next"]]
                    node["next"] = (node["next"] + 1) % len(node["ring"])
                    child = node["children"][broker]
                    share = not even or self.holds(child, broker, taken) == fewest
                    if share and self.room(child, broker, taken):
                        break
                node = child
            taken.append(broker)
        return taken[len(held) :]

    def holds(self, node: dict[str, Any], name: int | str, taken: list[int]) -> int:
        if not node["ring"]:
            return int(name in taken)
        return sum(self.holds(child, name, taken) for name, child in node["children"].items())

    def room(self, node: dict[str, Any], name: int | str, taken: list[int]) -> bool:
        if not node["ring"]:
            return name in self.hosts and name not in taken
        return any(self.room(child, name, taken) for name, child in node["children"].items())


@examples(150)
@given(paths=trees(4), dead=st.sets(st.integers(0, 9), max_size=2), replicas=st.integers(1, 6))
def test_rings_place_as_a_literal_reading_of_the_kip_does_and_evenly(
    paths: list[tuple[str, ...]], dead: set[int], replicas: int
) -> None:
    hosts = set(range(len(paths))) - dead
    replicas = min(replicas, len(hosts))
    if not replicas:
        return
    literal = LiteralRing(paths, hosts)
    rows = placed(paths, replicas, 6, dead)
    assert rows == [literal.place(replicas) for _ in rows]
    by_broker = dict(enumerate(paths))
    assert all(is_even(row, by_broker, hosts) for row in rows)


@examples(150)
@given(
    paths=trees(3),
    replicas=st.integers(1, 3),
    more=st.integers(1, 3),
    partitions=st.integers(1, 12),
)
def test_more_replicas_are_handed_out_as_a_literal_reading_of_the_kip_does(
    paths: list[tuple[str, ...]], replicas: int, more: int, partitions: int
) -> None:
    """The rings pick up where they left the last partition. The KIP says nothing of racks that have
    their share of a partition already: where its own steps leave the partition evenly spread, they
    are what is done; elsewhere such racks are passed over.
    """
    hosts = np.ones(len(paths), bool)
    replicas = min(replicas, len(paths))
    more = min(more, len(paths) - replicas)
    literal = LiteralRing(paths, set(range(len(paths))))
    rows = [literal.place(replicas) for _ in range(partitions)]
    tree = RackTree(paths, hosts, replicas + more)
    ring = Ring(tree)
    ring.replay(np.array(rows))
    handed_out = []
    for row in rows:
        free = hosts.copy()
        free[row] = False
        handed_out.append(ring.hand_out(tree, row, more, free, never))
    by_broker, brokers = dict(enumerate(paths)), set(range(len(paths)))
    by_words = []
    for row in rows:
        before = copy.deepcopy(literal.root)
        by_words.append(literal.place(more, row))
        if not is_even(row + by_words[-1], by_broker, brokers):
            literal.root = before
            by_words[-1] = literal.place(more, row, even=True)
            assert is_even(row + by_words[-1], by_broker, brokers)
    assert handed_out == by_words


@examples(150)
@given(paths=trees(3), replicas=st.integers(1, 4), seed=st.integers(0, 1000))
def test_a_replay_of_all_partitions_is_one_visit_after_the_other(
    paths: list[tuple[str, ...]], replicas: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    tree = RackTree(paths, np.ones(len(paths), bool), replicas)
    rows = np.full((12, replicas), NONE, np.int32)
    for row in rows:
        count = min(int(random.integers(1, replicas + 1)), len(paths))
        row[:count] = random.permutation(len(paths))[:count]
    replayed, visited = Ring(tree), Ring(tree)
    replayed.replay(rows)
    visited.advance_past(rows[0][rows[0] != NONE].tolist())
    for row in rows[1:]:
        visited.visit(row[row != NONE].tolist())
    assert replayed.pointers == visited.pointers


def never(level: int, node: int, child: int) -> bool:
    return False
