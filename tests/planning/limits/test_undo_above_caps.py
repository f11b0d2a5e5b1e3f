"""What is given back, when a layout takes brokers above their caps, and what stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from rehome.domain.kafka import TopicPartition
from rehome.domain.request.parse_request import parse_request
from rehome.planning.limits.apply_limits import apply_limits
from rehome.planning.limits.undo_above_caps import undo_above_caps
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from tests.planning.clusters import cluster

Rows = Sequence[Sequence[int]]
SIZES = [10, 20, 30, 40]


def given_back(
    before: Rows,
    planned: Rows,
    caps: Mapping[str, Any],
    rates: Mapping[str, Sequence[float]] | None = None,
) -> list[list[int]]:
    """Rows of replicas after what is above the caps of brokers 0 to 3 was given back.

    :param rates: ``bytes_in`` and ``bytes_out`` of each partition.
    """
    named: dict[str, Any] = {
        name: {TopicPartition("t", number): rate for number, rate in enumerate(of)}
        for name, of in (rates or {}).items()
    }
    of = cluster([""] * 4, before, SIZES[: len(before)], **named)
    limits = parse_request({"action": "rebalance", "caps": {"default": caps}}).caps
    layout = Layout(apply_limits(ClusterArrays.from_snapshot(of.snapshot()), limits, ()))
    layout.rows[:] = planned
    layout.refresh()
    undo_above_caps(layout)
    held = np.bincount(layout.rows.ravel(), np.repeat(layout.size, layout.rows.shape[1]), 4)
    assert layout.load.tolist() == held.tolist(), "the layout's sums follow"
    found: list[list[int]] = layout.rows.tolist()
    return found


def test_a_plan_within_the_caps_stays_as_it_is() -> None:
    planned = [[3], [1], [2]]
    assert given_back([(0,), (1,), (2,)], planned, {"replicas": 1, "leaders": 1}) == planned
    assert given_back([(0,), (1,), (2,)], [[3], [3], [3]], {}) == [[3]] * 3, "there is no cap"


def test_replicas_that_break_a_cap_are_given_back_smallest_first_and_others_stay() -> None:
    """Broker 3 may hold two replicas, and gets three; broker 2 may get what it gets."""
    before = [(0,), (0,), (1,), (1,)]
    planned = [[3], [3], [3], [2]]
    caps = {"replicas": 2, "bytes_out": 0}  # nothing is sent
    assert given_back(before, planned, caps) == [[0], [3], [3], [2]]


def test_a_broker_that_was_above_its_cap_gives_back_what_is_new_alone() -> None:
    before = [(3,), (3,), (0,), (1,)]
    planned = [[3], [3], [3], [3]]
    assert given_back(before, planned, {"replicas": 1}) == [[3], [3], [0], [1]]
    one_more = [[2], [3], [3], [3]]
    assert given_back(before, one_more, {"replicas": 1}) == [[2], [3], [0], [3]]
    fewer = [[0], [3], [3], [1]]
    assert given_back(before, fewer, {"replicas": 1}) == fewer, "it holds as many as before"


def test_only_new_leaders_are_given_back_and_not_replicas_of_others() -> None:
    """Broker 3 may lead one partition, and takes two over; it held their followers before."""
    before = [(0, 3), (1, 3), (2, 3), (2, 0)]
    planned = [[3, 0], [3, 1], [2, 3], [2, 1]]
    assert given_back(before, planned, {"leaders": 1}) == [[0, 3], [3, 1], [2, 3], [2, 1]]


def test_the_fewest_partitions_that_add_up_to_the_excess_of_bytes_in_are_given_back() -> None:
    rates = {"bytes_in": [1.0, 5.0, 9.0, 2.0]}
    before = [(0,), (0,), (1,), (1,)]
    planned = [[3], [3], [3], [2]]
    assert given_back(before, planned, {"bytes_in": 6}, rates) == [[3], [3], [1], [2]]
    assert given_back(before, planned, {"bytes_in": 5}, rates) == [[3], [0], [1], [2]], (
        "without 9 there are 6: the next largest goes as well"
    )


def test_bytes_out_come_with_the_leader_alone() -> None:
    rates = {"bytes_out": [4.0, 3.0, 8.0, 8.0]}
    before = [(0, 1), (1, 2), (0, 1), (1, 0)]
    planned = [[3, 1], [3, 2], [0, 3], [1, 3]]
    assert given_back(before, planned, {"bytes_out": 8}, rates) == planned, "it follows the rest"
    assert given_back(before, planned, {"bytes_out": 5}, rates) == [[0, 1], *planned[1:]]


def test_what_is_given_back_may_break_another_cap_until_all_of_it_is() -> None:
    """Broker 0 has filled up with what broker 3 gave; what it gave itself comes back to it."""
    before = [(0,), (1,), (2,)]
    planned = [[3], [0], [3]]
    caps = {"replicas": 1}
    assert given_back(before, planned, caps) == [[0], [1], [3]]


@pytest.mark.parametrize("seed", range(8))
def test_in_the_end_no_broker_is_further_above_a_cap_than_before(seed: int) -> None:
    rng = np.random.default_rng(seed)
    before, planned = (
        [rng.permutation(4)[:2].tolist() for _ in SIZES] for _ in ("before", "planned")
    )
    caps = {"replicas": 2, "leaders": 1, "bytes_in": 4, "bytes_out": 4}
    rates = {name: rng.integers(0, 5, len(SIZES)).tolist() for name in ("bytes_in", "bytes_out")}
    after = given_back(before, planned, caps, rates)
    assert all(
        row in (was, wanted) for row, was, wanted in zip(after, before, planned, strict=True)
    )
    for name, weight, led in (
        ("replicas", [1] * 4, False),
        ("leaders", [1] * 4, True),
        ("bytes_in", rates["bytes_in"], False),
        ("bytes_out", rates["bytes_out"], True),
    ):
        had, holds = (
            np.bincount(
                np.concatenate([row[:1] if led else row for row in rows]),
                np.repeat(weight, 1 if led else 2),
                4,
            )
            for rows in (before, after)
        )
        assert (holds <= np.maximum(had, caps[name])).all(), name
