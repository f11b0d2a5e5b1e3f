"""What people write in the form, as parameters of a dry run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rehome.domain.actions import Action
from rehome.domain.request.parse_request import parse_request
from rehome.errors import InvalidRequestError
from rehome.page.plan_form import ACTION_WORDS, CHOICES, PlanForm

DRAIN = PlanForm("drain", ("3", "4"))


def test_what_is_written_is_a_dry_run_that_can_be_asked_for() -> None:
    form = replace(
        DRAIN,
        topics="orders-*, re:a{1,3},pay:3-9\n ",
        throttle="50 MB/s",
        budget="1.5 TB",
        tolerance="2 %",
    )
    assert form.params() == {
        "action": "drain",
        "brokers": [3, 4],
        "topics": ["orders-*", "re:a{1,3}", "pay:3-9"],
        "throttle": 50_000_000,
        "budget_bytes": 1_500_000_000_000,
        "tolerance": 0.02,
        "approval": True,
        "dry_run": True,
    }
    assert DRAIN.params()["throttle"] == replace(DRAIN, throttle=" auto ").params()["throttle"]
    assert DRAIN.params()["throttle"] == "auto"
    assert replace(DRAIN, approval=False).params()["approval"] is False
    factor = PlanForm("set_replication_factor", topics="t", replication_factor="3").params()
    assert factor["replication_factor"] == 3
    assert PlanForm("replace", replacements=" 3=7, 4=8").params()["replacements"] == {
        "3": 7,
        "4": 8,
    }


@pytest.mark.parametrize(
    ("form", "reported"),
    [
        (PlanForm("drain"), "brokers"),
        (PlanForm("destroy"), "action"),
        (PlanForm("set_replication_factor"), "replication_factor"),
        (replace(DRAIN, throttle="quickly"), "Throttle quickly is not understood"),
        (replace(DRAIN, budget="a lot"), "Budget a lot is not understood"),
        (replace(DRAIN, tolerance="some"), "Tolerance some is not understood"),
        (replace(DRAIN, tolerance="200 %"), "tolerance"),
        (PlanForm("replace", replacements="3 by 7"), "replacements"),
        (replace(DRAIN, replication_factor="many"), "replication_factor"),
    ],
)
def test_parameters_that_are_not_possible_are_named(form: PlanForm, reported: str) -> None:
    with pytest.raises(InvalidRequestError, match=reported):
        form.params()


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(InvalidRequestError) as refused:
        replace(PlanForm("drain"), throttle="quickly", budget="a lot").params()
    assert len(refused.value.problems) == 3


def test_every_action_but_those_that_need_a_file_or_a_plan_is_offered() -> None:
    assert set(CHOICES) == set(Action) - {Action.REASSIGN, Action.ROLLBACK}
    assert ACTION_WORDS[Action.REPAIR_RACKS] == "Repair racks"
    assert parse_request(DRAIN.params()).action is Action.DRAIN
