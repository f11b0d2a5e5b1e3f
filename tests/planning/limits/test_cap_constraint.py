"""What a search may put on a broker by its caps."""

from __future__ import annotations

import numpy as np
import pytest

from rehome.domain.array_types import Floats, Ints
from rehome.domain.resources import PLACED, Resource
from rehome.planning.limits.cap_constraint import CapConstraint
from rehome.planning.model.limits import Limits

REPLICAS, RATE_IN = PLACED.index(Resource.REPLICAS), PLACED.index(Resource.BYTES_IN)


def capped(**caps: list[float]) -> Limits:
    placed = np.full((len(PLACED), 3), np.inf)
    for name, of_brokers in caps.items():
        placed[PLACED.index(Resource(name))] = of_brokers
    none = np.zeros(0, np.int64)
    return Limits(placed, np.zeros((0, 3)), none, np.ones((1, 3), bool), ())


def load_and_weights() -> tuple[Floats, Floats]:
    """Brokers hold 4, 5 and 6 replicas; partition 0 has no traffic, 1 has 10 B/s, 2 has 90."""
    load, weights = np.zeros((len(PLACED), 3)), np.zeros((len(PLACED), 3))
    load[REPLICAS], load[RATE_IN] = [4, 5, 6], [100, 100, 200]
    weights[REPLICAS], weights[RATE_IN] = 1, [0, 10, 90]
    return load, weights


def pairs() -> tuple[Ints, Ints]:
    partitions, brokers = np.meshgrid(np.arange(3), np.arange(3), indexing="ij")
    return partitions.reshape(-1), brokers.reshape(-1)


def test_a_broker_may_be_filled_up_to_its_cap_and_no_further() -> None:
    caps = CapConstraint(capped(replicas=[5, 5, 5]), *load_and_weights())
    partitions, brokers = pairs()
    assert caps.admits(partitions, brokers).tolist() == [True, False, False] * 3


def test_a_broker_above_its_cap_still_gets_what_adds_nothing_to_it() -> None:
    caps = CapConstraint(capped(bytes_in=[110, 150, 150]), *load_and_weights())
    partitions, brokers = pairs()
    admitted = caps.admits(partitions, brokers).reshape(3, 3).tolist()
    assert admitted == [[True, True, True], [True, True, False], [False, False, False]]


def test_one_replica_is_judged_as_many_are() -> None:
    caps = CapConstraint(capped(replicas=[5, 6, 7], bytes_in=[110, 200, 150]), *load_and_weights())
    partitions, brokers = pairs()
    one_by_one = [caps.admits_one(*pair) for pair in zip(partitions, brokers, strict=True)]
    assert caps.admits(partitions, brokers).tolist() == one_by_one


def test_of_replicas_that_together_exceed_a_cap_the_broker_gets_one() -> None:
    caps = CapConstraint(capped(bytes_in=[150, 250, 150]), *load_and_weights())
    partitions, brokers = np.array([2, 1, 1, 2, 2, 0, 0]), np.array([1, 0, 1, 1, 0, 2, 2])
    chosen = np.array([True, True, True, True, False, True, True])
    together = caps.admits_together(partitions, brokers, chosen)
    assert together.tolist() == [True, True, False, False, False, True, True]


@pytest.mark.parametrize("limits", [None, capped(bytes=[1, 1, 1])])
def test_without_caps_that_each_step_could_break_nothing_is_checked(limits: Limits | None) -> None:
    assert CapConstraint.of(limits, *load_and_weights()) is None
