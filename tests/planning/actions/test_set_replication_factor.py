"""Further replicas of even partitions: the quick way gives the plan of the thorough one."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from rehome.domain.plan.plan import Plan
from rehome.errors import InvalidRequestError
from rehome.planning.model.layout import Layout
from rehome.planning.placement.replica_sets import Placer
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import plan
from tests.planning.stored_clusters import Stored

RACKS = {
    "none": [""] * 8,
    "four of two": [f"/r{broker % 4}" for broker in range(8)],
    "uneven": ["/a", "/a", "/a", "/a", "/b", "/b", "/b", "/c"],
    "two levels": [f"/dc{broker % 2}/r{broker // 2 % 2}" for broker in range(8)],
}


def random_cluster(seed: int, racks: list[str], *, full: bool = False) -> Cluster:
    """Eight brokers, partitions of two replicas and of sizes apart; where ``full``, disks have
    about as much space as the copies need. Every other cluster has a dead broker.
    """
    random = np.random.default_rng(seed)
    dead = seed % 2
    rows = [random.permutation(8 - dead)[:2].tolist() for _ in range(40)]
    sizes = random.integers(1, 100, 40).tolist()
    usable = sum(sizes) // 8 + 100
    disks = {b: (10_000, int(random.integers(usable // 2, usable * 2))) for b in range(8)}
    gone = frozenset({7} if dead else ())
    return cluster(racks, rows, sizes, disks=disks if full else None, dead=gone)


def grown(of: Cluster | Stored, replicas: int) -> Plan | str:
    try:
        return plan(of, action="set_replication_factor", replication_factor=replicas)
    except InvalidRequestError as refused:
        return str(refused)


def thorough(of: Cluster | Stored, replicas: int) -> Plan | str:
    with patch.object(Layout, "space_is_known", return_value=False):
        return grown(of, replicas)


def is_same(one: Plan | str, other: Plan | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return one.plan_hash == other.plan_hash


@pytest.mark.parametrize("replicas", [3, 4])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("racks", RACKS.values(), ids=RACKS)
def test_the_quick_way_gives_the_plan_of_the_thorough_one(
    racks: list[str], full: bool, replicas: int
) -> None:
    for seed in range(12):
        of = random_cluster(seed, racks, full=full)
        assert is_same(grown(of, replicas), thorough(of, replicas)), seed


@pytest.mark.parametrize("usable", [20, 60, 1000])
def test_so_it_does_where_brokers_have_several_log_dirs(usable: int) -> None:
    for seed in range(12):
        random = np.random.default_rng(seed)
        holds: dict[tuple[int, str], dict[int, int | None]] = {
            (broker, path): {} for broker in range(4) for path in ("/a", "/b")
        }
        for number in range(12):
            size = int(random.integers(1, 15))
            for broker in random.permutation(4)[:2].tolist():
                holds[broker, "/a" if random.random() < 0.5 else "/b"][number] = size
        disks = dict.fromkeys(holds, (1000, usable))
        of = Stored(holds, disks)
        assert is_same(grown(of, 3), thorough(of, 3)), seed


@pytest.mark.parametrize("racks", [RACKS["none"], RACKS["four of two"]], ids=["none", "four"])
def test_no_even_partition_asks_every_broker_for_space(racks: list[str]) -> None:
    rows = [(n % 8, (n + 1) % 8) for n in range(40)]
    with (
        patch.object(Layout, "fits", side_effect=AssertionError),
        patch.object(Placer, "complete", side_effect=AssertionError),
    ):
        made = grown(cluster(racks, rows), 3)
    assert isinstance(made, Plan)
    assert len(made.moves) == 40
