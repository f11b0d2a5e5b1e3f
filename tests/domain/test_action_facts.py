"""What is declared of an action agrees with the parameters that it takes."""

from __future__ import annotations

from dataclasses import fields

import pytest

from rehome.domain.actions import ACTION_FACTS, Action, Trait, actions_with
from rehome.domain.request.parameters import OF_A_RUN, USED_BY, ReassignmentParams
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.planner import PLANNERS
from rehome.reporting.titles import title


@pytest.mark.parametrize("action", Action)
def test_an_action_takes_the_parameter_that_it_needs(action: Action) -> None:
    needed = ACTION_FACTS[action].needs
    if needed:
        assert needed in ReassignmentParams.model_fields
        assert action in USED_BY.get(needed, Action)


def test_every_parameter_that_is_of_one_run_or_of_some_actions_is_a_parameter() -> None:
    assert {"action", "brokers", "plan_id"} < set(OF_A_RUN)
    assert "tolerance" not in OF_A_RUN
    assert USED_BY["cordon"] == (Action.DRAIN, Action.REPLACE)
    assert {*OF_A_RUN, *USED_BY} <= set(ReassignmentParams.model_fields)


def test_a_request_has_the_traits_of_its_action() -> None:
    assert ReassignmentRequest(Action.DRAIN).has(Trait.EMPTIES)
    assert not ReassignmentRequest(Action.EXPAND).has(Trait.EMPTIES)
    assert actions_with(Trait.REPAIRS_SETS) == (Action.REBALANCE, Action.REPAIR_RACKS)


def test_the_request_has_each_parameter_but_those_of_the_caller() -> None:
    of_the_request = {field.name for field in fields(ReassignmentRequest)}
    of_a_run = set(ReassignmentParams.model_fields) - {"kafka_config_id", "cluster_id"}
    of_the_policy = {"throttle_max_by_broker"}
    assert of_the_request - of_the_policy - {"throttle_bytes_per_s"} == of_a_run - {"throttle"}


def test_every_action_is_declared_and_has_a_title() -> None:
    assert set(ACTION_FACTS) == set(Action)
    assert set(PLANNERS) < set(Action)
    assert title("drain", {"brokers": [4]}) == "Drain broker 4"
    assert title("fix_offline_replicas", {"brokers": [4]}) == "Replace offline replicas of broker 4"
