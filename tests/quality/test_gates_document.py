"""docs/gates.md names every expectation, its table and its remedy."""

from __future__ import annotations

from itertools import product
from pathlib import Path

from rehome.domain.actions import Action
from rehome.domain.request.limits import BrokerCaps, BrokerLimits, BrokerSet
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.resources import OPTIONAL, RESOURCE_NAMES
from rehome.quality.engine.rules import DEFECT, Rule
from rehome.quality.plan.rules import plan_rules
from rehome.quality.snapshot.rules import snapshot_rules

TEXT = (Path(__file__).parents[2] / "docs" / "gates.md").read_text()


def all_rules() -> set[Rule]:
    rules = {*snapshot_rules(additional=False)}
    for action, budget in product(Action, (None, 1)):
        request = ReassignmentRequest(
            action,
            brokers=(1,),
            replication_factor=2,
            budget_bytes=budget,
            budget_moves=budget,
            exclude_brokers=(2,),
            destinations=(3,),
            tolerances={"replicas": 0.1} | {resource.value: 0.1 for resource in OPTIONAL},
            min_leaders={"orders": 1},
            broker_sets=(BrokerSet(name="s", topics=("t",), brokers=(1,)),),
            caps=BrokerCaps(default=BrokerLimits(replicas=1)),
        )
        rules |= {*plan_rules(request, rack_levels=1)}
    return rules


def test_every_expectation_is_documented_with_its_remedy_and_nothing_else_is() -> None:
    rows = {
        line for line in TEXT.splitlines() if line.startswith("| ") and "what to do" not in line
    }
    expected = set()
    for rule in all_rules():
        name = rule.name.replace("over level 1 of", "over level *n* of")
        for resource in OPTIONAL:
            words = RESOURCE_NAMES[resource].removesuffix(" per second")
            name = name.replace(f"share of {words},", "share of *an optional resource*,")
        remedy = "–" if rule.remedy == DEFECT else rule.remedy
        expected.add(f"| {name} | {rule.table} | {remedy} |")
    assert rows == expected


def test_rules_that_ask_for_true_or_false_are_named() -> None:
    flags = {
        expectation.arguments()["column"]
        for rule in all_rules()
        for expectation in rule.expectations
        if expectation.arguments().get("value_set") in ([True], [False])
    }
    assert len(flags) == 13
    assert {flag for flag in flags if f"`{flag}`" not in TEXT} == set()
