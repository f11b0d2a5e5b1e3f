"""Whether replicas left on a drained broker may be moved away at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rehome.domain.kafka import TopicPartition
from rehome.execution.completion.drained import Drained, LeftOver, Where
from rehome.execution.completion.follow_up import (
    NoFollowUp,
    follow_up_request,
    why_no_follow_up,
)
from tests.execution.completion.test_drained import DRAIN, FOUND, NOW, PLAN


@pytest.mark.parametrize(
    ("found", "changes", "why"),
    [
        (FOUND, {}, None),
        (FOUND, {"window_end": NOW + timedelta(seconds=1)}, None),
        (FOUND, {"window_end": NOW}, NoFollowUp.WINDOW),
        (FOUND, {"budget_bytes": 1001}, None),
        (FOUND, {"budget_bytes": 1000}, NoFollowUp.BUDGET),
        (FOUND, {"budget_moves": 2}, NoFollowUp.BUDGET),
        (
            Drained((3,), (LeftOver(3, TopicPartition("t", 0), Where.ON_DISK, "/d"),)),
            {},
            NoFollowUp.ONLY_ON_DISK,
        ),
    ],
)
def test_what_appeared_is_moved_away_while_window_and_budget_allow(
    found: Drained, changes: dict[str, Any], why: NoFollowUp | None
) -> None:
    assert why_no_follow_up(found, replace(DRAIN, **changes), PLAN, NOW) is why


def test_only_what_was_found_has_appeared_while_the_follow_up_ran() -> None:
    unread = Drained((3,), (), {3: "it timed out"}, silent=frozenset({3}))
    assert why_no_follow_up(FOUND, DRAIN, PLAN, NOW, last=True) is NoFollowUp.SECOND
    assert why_no_follow_up(unread, DRAIN, PLAN, NOW, last=True) is NoFollowUp.UNREAD


def test_a_follow_up_has_what_the_plan_left_of_the_budget() -> None:
    asked = replace(DRAIN, budget_bytes=1500, budget_moves=5, approval=True)
    left = replace(DRAIN, budget_bytes=500, budget_moves=3, approval=True)
    assert follow_up_request(asked, PLAN, None) == left
    assert follow_up_request(DRAIN, PLAN, None) == DRAIN


def test_a_follow_up_has_the_throttle_that_was_asked_for_while_the_plan_ran() -> None:
    asked = replace(DRAIN, throttle_bytes_per_s=100)
    assert follow_up_request(asked, PLAN, 50).throttle_bytes_per_s == 50
    assert follow_up_request(asked, PLAN, None).throttle_bytes_per_s == 100
