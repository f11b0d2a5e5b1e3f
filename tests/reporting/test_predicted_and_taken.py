"""The predicted time and the time taken, in the report."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.flows import RateChange, RateReason
from rehome.domain.run.states import MoveState, PlanState
from tests.reporting.pages import page
from tests.reporting.reported_plans import (
    MB,
    START,
    TRIED,
    carried_out,
    dry_run_only,
    good_end,
    with_evidence,
    with_record,
)


def test_predicted_and_taken_time_are_shown_once_the_plan_has_started() -> None:
    reported = page(good_end()).text
    assert "1 min 28 s to 2 min 5 s predicted" in reported
    assert "1 min 40 s actual, as predicted" in reported
    assert "150 MB actual" in reported
    assert "Nothing has moved yet" in page(dry_run_only()).text


@pytest.mark.parametrize(
    ("taken_s", "outcome"), [(60, "shorter"), (88, "as"), (125, "as"), (200, "longer")]
)
def test_the_time_taken_is_compared_with_the_predicted_range(taken_s: int, outcome: str) -> None:
    ended = START + timedelta(seconds=taken_s)
    reported = page(with_record(good_end(), ended_at=ended)).text
    assert f"actual, {outcome}" in reported


def test_a_plan_that_has_paused_or_whose_rate_was_changed_is_not_compared() -> None:
    data = good_end()
    paused = page(with_evidence(data, turns=((EventKind.PAUSED, START),))).text
    asked = RateChange(START, MB, MB, MB, RateReason.REQUESTED, "an operator asked for it")
    changed = page(with_evidence(data, rates=(asked,))).text
    for reported, why in ((paused, "The plan has paused"), (changed, "Its rate was changed")):
        assert why in reported
        assert "1 min 40 s actual" not in reported


def test_a_dry_run_of_what_is_left_predicts_nothing_of_the_whole() -> None:
    of_a_part = replace(TRIED, moves=2)
    reported = page(with_evidence(good_end(), dry_runs=(of_a_part,))).text
    assert "2 min 5 s" not in reported
    assert "not predicted yet" in reported


@pytest.mark.parametrize("state", [PlanState.FAILED, PlanState.CANCELLED, PlanState.ROLLED_BACK])
def test_a_plan_that_did_not_end_as_planned_is_not_compared(state: PlanState) -> None:
    reported = page(carried_out(state, "as it happened", *[MoveState.DONE] * 3)).text
    assert f"The plan is {state.replace('_', ' ')}" in reported
    assert "as predicted" not in reported
