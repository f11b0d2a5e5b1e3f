"""The gate on a plan in process says what Great Expectations says on Spark."""

from __future__ import annotations

import pytest

from tests.quality.plan.cases import rules_broken_by
from tests.quality.plan.checked_plans import drain, fixed, lowered, raised, rebalance, tree
from tests.quality.plan.plan_corruptions import CORRUPTIONS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_breaks_the_rules_that_it_breaks_on_spark(name: str) -> None:
    corrupt, rules = CORRUPTIONS[name]
    assert rules_broken_by(corrupt()) == rules


@pytest.mark.parametrize("make", [drain, fixed, lowered, raised, rebalance, tree])
def test_a_sound_plan_breaks_none(make: object) -> None:
    assert callable(make)
    assert rules_broken_by(make()) == set()
