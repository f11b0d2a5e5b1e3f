"""Brokers above their caps on leaders, and what they keep."""

from __future__ import annotations

import numpy as np
import pytest

from rehome.domain.kafka import TopicPartition
from rehome.domain.request.parse_request import parse_request
from rehome.planning.leadership.leader_caps import keep_led_caps
from rehome.planning.leadership.min_leaders import RequestedMinLeaders
from rehome.planning.limits.apply_limits import apply_limits
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from tests.planning.clusters import Cluster


def leaders(most: int, *, minimum: bool) -> list[int]:
    """Leaders of m-0, m-1, o-0 and o-1 when all brokers may lead at most so many. Broker 0 leads
    m-0, o-0 and o-1, broker 1 follows.

    :param minimum: each broker is to lead a partition of m.
    """
    rows = {
        TopicPartition("m", 0): (0, 1),
        TopicPartition("m", 1): (1, 0),
        TopicPartition("o", 0): (0, 1),
        TopicPartition("o", 1): (0, 1),
    }
    of = Cluster({0: "", 1: ""}, rows, dict.fromkeys(rows, 100))
    params = {"action": "rebalance", "caps": {"default": {"leaders": most}}}
    request = parse_request(params | ({"min_leaders": {"m": 1}} if minimum else {}))
    arrays = apply_limits(ClusterArrays.from_snapshot(of.snapshot()), request.caps, ())
    layout = Layout(arrays)
    everyone = np.ones(2, bool)
    minimums = RequestedMinLeaders.of(arrays, request, everyone)
    keep_led_caps(layout, np.ones(len(rows), bool), lower=True, minimums=minimums)
    found: list[int] = layout.rows[:, 0].tolist()
    return found


def test_a_broker_above_its_cap_hands_over_what_no_minimum_asks_for() -> None:
    assert leaders(2, minimum=False) == [1, 1, 0, 0], "any leader will do: the first one"
    assert leaders(2, minimum=True) == [0, 1, 1, 0]


@pytest.mark.parametrize("minimum", [False, True])
def test_no_broker_hands_over_leaders_where_no_other_may_lead_more(*, minimum: bool) -> None:
    assert leaders(1, minimum=minimum) == [0, 1, 0, 0]


def test_a_minimum_takes_no_broker_further_above_its_cap() -> None:
    """Broker 0 led m-0 and leads n-0 for its minimum as well; it may lead one partition."""
    rows = {
        TopicPartition("m", 0): (0, 1),
        TopicPartition("m", 1): (1, 0),
        TopicPartition("n", 0): (1, 0),
        TopicPartition("n", 1): (2, 1),
    }
    of = Cluster({0: "", 1: "", 2: ""}, rows, dict.fromkeys(rows, 100))
    params = {"action": "rebalance", "min_leaders": {"?": 1}}
    request = parse_request(params | {"caps": {"brokers": {"0": {"leaders": 1}}}})
    arrays = apply_limits(ClusterArrays.from_snapshot(of.snapshot()), request.caps, ())
    layout = Layout(arrays)
    layout.rows[2] = [0, 1]
    minimums = RequestedMinLeaders.of(arrays, request, np.array([True, True, False]))
    keep_led_caps(layout, np.ones(len(rows), bool), lower=True, minimums=minimums)
    assert (layout.rows[:, 0] == 0).sum() == 1
