"""Many clusters in one pass: each gets the verdict that it would get alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rehome.quality.engine.many_clusters import judged_together, stack_tables
from rehome.quality.engine.results import ExpectationOutcome, GateResult, Status
from rehome.quality.facts.gate_input import Checked
from rehome.quality.gates import Evidence, check_evidences
from rehome.quality.plan.rules import plan_parameters, plan_rules
from rehome.quality.plan.tables import plan_tables
from tests.quality.plan.checked_plans import drain, rebalance, without_one

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def verdict(names: Sequence[str], bad: Sequence[str]) -> GateResult:
    status = Status.FAILED if set(names) & set(bad) else Status.PASSED
    return GateResult("plan", (ExpectationOutcome("rule", "moves", status, ""),))


def test_whose_rule_is_broken_is_found_by_halving() -> None:
    names = [f"c{number}" for number in range(16)]
    passes: list[int] = []
    alone: list[str] = []

    def together(some: Sequence[str]) -> GateResult:
        passes.append(len(some))
        return verdict(some, ["c5"])

    def single(name: str) -> GateResult:
        alone.append(name)
        return verdict([name], ["c5"])

    found = judged_together(names, together, single)
    assert [name for name, result in found.items() if not result.passed] == ["c5"]
    assert found.keys() == set(names)
    assert passes == [16, 8, 4, 4, 2, 2, 8]
    assert alone == ["c4", "c5"]
    assert judged_together([], together, single) == {}


def test_rows_say_whose_they_are() -> None:
    tables = {"a": pa.table({"n": [1, 2]}), "b": pa.table({"n": pa.array([], pa.int64())})}
    assert stack_tables({**tables, "c": pa.table({"n": [1]})}).to_pylist() == [
        {"n": 1, "cluster": "a"},
        {"n": 2, "cluster": "a"},
        {"n": 1, "cluster": "c"},
    ]


def evidence(checked: Checked) -> Evidence:
    rules = plan_rules(checked.request, rack_levels=checked.rack_levels)
    return Evidence(rules, plan_parameters(checked.request), plan_tables(checked))


def test_a_plan_is_judged_among_others_as_it_is_alone(spark: SparkSession) -> None:
    """The same topics and brokers are in all of them: what is unique is so within its cluster."""
    drains = {"broken": without_one(drain()), "a": drain(), "b": drain()}
    evidences = {name: evidence(one) for name, one in drains.items()}
    evidences["asked for something else"] = evidence(rebalance())
    found = check_evidences(spark, evidences)
    assert {name: result.passed for name, result in found.items()} == {
        "a": True,
        "b": True,
        "broken": False,
        "asked for something else": True,
    }
    together = {name for name, result in found.items() if not result.validations}
    assert together == {"a", "b"}, "all others were judged alone in the end"
    assert found["a"].outcomes == found["b"].outcomes
