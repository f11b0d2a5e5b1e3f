"""The gate on a plan in process says what Great Expectations says on Spark."""

from __future__ import annotations

import pytest

from rehome.quality.facts.gate_input import Checked
from rehome.quality.gates import Evidence
from rehome.quality.in_process.rules_on_rows import refused_plan
from rehome.quality.plan.rules import plan_parameters, plan_rules
from rehome.quality.plan.tables import plan_tables
from tests.quality.plan.checked_plans import drain, fixed, lowered, raised, rebalance, tree
from tests.quality.plan.plan_corruptions import CORRUPTIONS


def judged(checked: Checked) -> set[str]:
    rules = plan_rules(checked.request, rack_levels=checked.rack_levels)
    evidence = Evidence(rules, plan_parameters(checked.request), plan_tables(checked))
    return set(refused_plan(evidence))


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_breaks_the_rules_that_it_breaks_on_spark(name: str) -> None:
    corrupt, rules = CORRUPTIONS[name]
    assert judged(corrupt()) == rules


@pytest.mark.parametrize("make", [drain, fixed, lowered, raised, rebalance, tree])
def test_a_sound_plan_breaks_none(make: object) -> None:
    assert callable(make)
    assert judged(make()) == set()
