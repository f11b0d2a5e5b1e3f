"""Single changes of leaders keep caps and min_leaders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rehome.domain.request.parse_request import parse_request
from rehome.planning.leadership.kept_leaders import KeptLeaders
from rehome.planning.leadership.leader_balance import LedShares, change_what_still_helps
from rehome.planning.leadership.min_leaders import RequestedMinLeaders
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.topic_bands import TopicBands, topic_bands
from rehome.planning.planner import cluster_of
from tests.planning.clusters import cluster
from tests.planning.planned import infeasible, plan

OF = cluster([""] * 3, [(0, 1)] * 7 + [(2,)])


def asked(**limits: Any) -> tuple[Layout, RequestedMinLeaders | None]:
    """Broker 0 leads seven partitions that broker 1 could lead as well."""
    request = parse_request({"action": "balance_leaders", **limits})
    arrays = cluster_of(OF.snapshot(), request, min_free_disk_fraction=0.0)
    return Layout(arrays), RequestedMinLeaders.of(arrays, request, arrays.brokers.live)


@pytest.mark.parametrize(
    ("limits", "share", "led"),
    [
        ({}, [3.0, 4.0, 1.0], [4, 3, 1]),
        ({"caps": {"default": {}, "brokers": {"1": {"leaders": 2}}}}, [3.0, 4.0, 1.0], [5, 2, 1]),
        ({}, [0.1, 6.9, 1.0], [1, 6, 1]),
        ({"min_leaders": {"t": 2}}, [0.1, 6.9, 1.0], [2, 5, 1]),
    ],
)
def test_leaders_change_within_caps_and_minimums(
    limits: dict[str, Any], share: list[float], led: list[int]
) -> None:
    layout, minimums = asked(**limits)
    shares = LedShares(np.ones((1, 8)), np.array([share]), np.array([0.0]))
    everything, hosts = np.ones(8, bool), np.ones(3, bool)
    change_what_still_helps(layout, shares, everything, hosts, None, minimums)
    assert np.bincount(layout.rows[:, 0]).tolist() == led


@pytest.mark.parametrize(
    ("limits", "evens_topics", "led"),
    [
        ({}, False, [7, 0, 1]),
        ({}, True, [4, 3, 1]),
        ({"caps": {"default": {}, "brokers": {"1": {"leaders": 2}}}}, True, [5, 2, 1]),
    ],
)
def test_topics_come_closer_in_the_end_within_caps_and_minimums(
    limits: dict[str, Any], evens_topics: bool, led: list[int]
) -> None:
    layout, minimums = asked(**limits)
    everything, hosts = np.ones(8, bool), np.ones(3, bool)
    spread = topic_bands(
        layout,
        RackTree([()] * 3, hosts, 2),
        partitions=everything,
        brokers=hosts,
        capacity=np.ones(3),
        tolerance=0.0,
        leaders_only=True,
    )
    none = LedShares(np.zeros((1, 8)), np.zeros((1, 3)), np.ones(1))
    change_what_still_helps(
        layout, none, everything, hosts, spread, minimums, evens_topics=evens_topics
    )
    assert np.bincount(layout.rows[:, 0]).tolist() == led


def test_brokers_may_keep_the_leaders_that_they_had() -> None:
    layout, _ = asked()
    low, high = np.full((2, 3), 2), np.full((2, 3), 3)
    bands = TopicBands(
        np.array([0]), np.zeros(8, np.int64), low, high, low, high, np.ones((1, 3)), 0.0,
        np.array([False]),
    )  # fmt: skip
    wider = bands.with_led_before(layout.origin, np.array([False, True, False]))
    assert wider.led_low[0].tolist() == [2, 2, 1]
    assert wider.led_high[0].tolist() == [7, 3, 3]


def test_a_broker_gives_no_leader_that_it_needs() -> None:
    layout, minimums = asked(min_leaders={"t": 2})
    kept, one = KeptLeaders(layout, minimums), np.array([0])
    for _ in range(5):
        assert kept.allow(one, layout.rows[one]).tolist() == [[True, True]]
        kept.change(one, layout.rows[one, 0], layout.rows[one, 1])
    assert kept.allow(one, layout.rows[one]).tolist() == [[False, False]]


def test_a_dead_broker_has_no_share_of_leaders_to_miss() -> None:
    dead = cluster([""] * 3, [(0, 1)] * 6 + [(1, 2)] * 6, dead=frozenset({0}))
    made = plan(dead, action="balance_leaders", tolerances={"leaders": 0.0})
    mine = [note for note in infeasible(made) if note.subject.broker == 0]
    assert {note.resource for note in mine} == {None}  # that it is not live
