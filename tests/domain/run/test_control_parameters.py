from __future__ import annotations

from typing import Any

import pytest

from rehome.domain.run.control_parameters import ControlRequest, parse_control
from rehome.domain.run.states import Control
from rehome.errors import InvalidRequestError


def test_what_is_asked_of_a_plan_is_read() -> None:
    given = {"kafka_config_id": "k", "plan_id": " p1 ", "action": "resume", "throttle": "5000"}
    assert parse_control(given) == ControlRequest("p1", Control.RESUME, 5000)


@pytest.mark.parametrize(
    ("params", "problems"),
    [
        ({"action": "pause"}, ["plan_id is needed"]),
        ({"plan_id": "../p", "action": "stop"}, ["is no plan id", "not one of run, next_window"]),
        ({"plan_id": "p", "action": "change_throttle"}, ["needs throttle"]),
        ({"plan_id": "p", "throttle": 0, "rate": 1}, ["Unknown parameter 'rate'", "less than 1"]),
    ],
)
def test_all_that_is_wrong_is_reported_at_once(params: dict[str, Any], problems: list[str]) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        parse_control(params)
    assert len(refused.value.problems) == len(problems)
    for found, problem in zip(refused.value.problems, problems, strict=True):
        assert problem in found
