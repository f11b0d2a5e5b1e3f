"""Bounds of a run: what a person has chosen holds for small moves, too."""

from __future__ import annotations

from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.execution.policy_from_request import MOST_SMALL_IN_FLIGHT, policy_for
from rehome.settings import Settings

REQUEST = ReassignmentRequest(Action.REASSIGN, throttle_bytes_per_s=1_000_000)
TWO_AT_ONCE = ReassignmentRequest(
    Action.REASSIGN, throttle_bytes_per_s=1_000_000, max_moves_per_broker=2
)


def test_by_default_moves_of_a_megabyte_take_no_slot_and_run_by_the_thousand() -> None:
    policy = policy_for(REQUEST, Settings())
    assert (policy.small_bytes, policy.most_small) == (1_000_000, MOST_SMALL_IN_FLIGHT)
    assert policy.max_partitions_in_flight == 200


def test_moves_for_each_broker_that_a_person_has_chosen_hold_for_small_ones_too() -> None:
    assert policy_for(TWO_AT_ONCE, Settings()).small_bytes == 0


def test_a_limit_that_a_person_has_chosen_holds_for_small_ones_too() -> None:
    policy = policy_for(REQUEST, Settings(max_partitions_in_flight=20))
    assert (policy.small_bytes, policy.most_small) == (1_000_000, 20)


def test_no_move_is_small_where_the_setting_says_so() -> None:
    assert policy_for(REQUEST, Settings(small_move_bytes=0)).small_bytes == 0
