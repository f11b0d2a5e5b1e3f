"""How much further from the bands of topics a trade takes brokers."""

from __future__ import annotations

import numpy as np
import pytest

from rehome.domain.array_types import NONE
from rehome.planning.placement.topic_counts import TopicCounts

TOPIC_OF = np.array([0, 0, 1, 2])
"""The last partition's topic has no bands."""


@pytest.fixture
def counts() -> TopicCounts:
    """Two topics with bands of one to two replicas on each of three brokers."""
    held = np.array([[3, 1, 0], [2, 2, 1], [5, 5, 5]])
    low, high = np.ones_like(held), np.full_like(held, 2)
    low[2], high[2] = 0, 99
    return TopicCounts(TOPIC_OF, held, low, high)


def changed(counts: TopicCounts, give: int, take: int, here: int, there: int) -> int:
    """The change as it is found by making the trade."""
    before = counts.outside()
    moved = [(give, here, there), (take, there, here)]
    for sign in (1, -1):
        for partition, source, target in moved:
            if partition != NONE:
                counts.replicas[counts.cell(partition, source)] -= sign
                counts.replicas[counts.cell(partition, target)] += sign
        if sign == 1:
            change = counts.outside() - before
    return change


def test_a_trade_changes_what_making_it_changes(counts: TopicCounts) -> None:
    options = [NONE, *range(len(TOPIC_OF))]
    trades = np.array(
        [(g, t, h, o) for g in options for t in options for h in range(3) for o in range(3)]
    )
    trades = trades[trades[:, 2] != trades[:, 3]]
    made = [changed(counts, *trade) for trade in trades.tolist()]
    assert counts.trading(*trades.T).tolist() == made
    assert [counts.trading_one(*trade) for trade in trades.tolist()] == made
    assert {-2, 0, 2} <= set(made)
