"""Gates need few queries, and find what Great Expectations finds with its many."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rehome.quality.engine.results import GateResult, Status
from rehome.quality.engine.rules import Expectation, Rule, every_rule
from rehome.quality.engine.runner import run_gate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAIRS = [(1, 1), (1, 2), (2, 1), (None, 1), (1, None), (None, None)]
EQUAL = "expect_column_pair_values_to_be_equal"
GREATER = "expect_column_pair_values_a_to_be_greater_than_b"
NOT_NULL = "expect_column_values_to_not_be_null"


@pytest.fixture(scope="module")
def pairs(spark: SparkSession) -> DataFrame:
    rows = [(n, a, b) for n, (a, b) in enumerate(PAIRS)]
    return spark.createDataFrame(rows, "n int, a int, b int").coalesce(1)


def rule(kind: str, **kwargs: Any) -> Rule:
    return Rule(f"{kind} {kwargs}", "pairs", ("n",), "", (Expectation(kind, json.dumps(kwargs)),))


def pair(kind: str, **kwargs: Any) -> Rule:
    return rule(kind, **{"column_A": "a", "column_B": "b", "ignore_row_if": "neither"} | kwargs)


def unwanted(condition: str) -> Rule:
    query = f"SELECT * FROM {{batch}} WHERE {condition}"
    return rule("unexpected_rows_expectation", unexpected_rows_query=query)


def judged(frame: DataFrame, *rules: Rule) -> GateResult:
    return run_gate("snapshot", {"pairs": frame}, rules)


def jobs_of(frame: DataFrame, *rules: Rule) -> int:
    """How many jobs Spark has for rules that hold."""
    context = frame.sparkSession.sparkContext
    group = " and ".join(rule.name for rule in rules)
    context.setJobGroup(group, "rules that hold")
    assert judged(frame, *rules).passed
    return len(context.statusTracker().getJobIdsForGroup(group))


def test_pairs_are_no_queries_of_their_own(pairs: DataFrame) -> None:
    equal = pairs.where("a = b")
    single = rule(NOT_NULL, column="a")
    several = (pair(EQUAL), pair(GREATER, or_equal=True), pair(EQUAL, column_A="b", column_B="a"))
    assert jobs_of(equal, single, *several) == jobs_of(equal, single)


COUNTED: list[tuple[Rule, list[int], int]] = [
    (pair(EQUAL), [1, 2, 3, 4], 0),
    (pair(EQUAL, ignore_row_if="both_values_are_missing"), [1, 2, 3, 4], 1),
    (pair(EQUAL, ignore_row_if="either_value_is_missing"), [1, 2], 3),
    (pair(EQUAL, row_condition="n < 3", condition_parser="spark"), [1, 2], 0),
    (pair(GREATER), [0, 1], 0),
    (pair(GREATER, or_equal=True), [1], 0),
]
"""An expectation, the rows that break it, and how many are ignored."""


def test_rows_that_break_an_expectation_are_counted_and_those_ignored(pairs: DataFrame) -> None:
    result = judged(pairs, *(rule for rule, _, _ in COUNTED))
    results = result.validations[0].result.results
    for (_, unexpected, ignored), outcome, reported in zip(
        COUNTED, result.outcomes, results, strict=True
    ):
        assert outcome.status is Status.FAILED, outcome.name
        assert outcome.offending_count == len(unexpected), outcome.name
        assert outcome.offending_rows == tuple(f"n {n}" for n in unexpected), outcome.name
        assert reported.to_json_dict()["result"]["missing_count"] == ignored, outcome.name


def test_a_query_that_finds_no_rows_is_no_query_of_its_own(pairs: DataFrame) -> None:
    single = rule(NOT_NULL, column="n")
    several = unwanted("n > 9"), unwanted("n < 0")
    assert jobs_of(pairs, single, *several) == jobs_of(pairs, single)


def test_a_query_that_crashes_does_not_take_others_along(pairs: DataFrame) -> None:
    odd = rule("unexpected_rows_expectation", unexpected_rows_query="SELECT n FROM {batch}")
    rules = unwanted("c > 9"), odd, unwanted("n < 1"), unwanted("n > 9")
    outcomes = judged(pairs, *rules).outcomes
    assert [outcome.status for outcome in outcomes] == [
        Status.CRASHED,
        Status.CRASHED,
        Status.FAILED,
        Status.PASSED,
    ]
    assert outcomes[1].exception.startswith("Only SELECT … FROM {batch} WHERE … can be counted")


def test_all_rows_that_a_query_finds_are_counted(spark: SparkSession) -> None:
    # Here, for it takes seconds: every process would import it that collects tests.
    from great_expectations.constants import MAX_RESULT_RECORDS

    many = spark.range(MAX_RESULT_RECORDS + 50).withColumnRenamed("id", "n").coalesce(1)
    (all_of_them, some) = judged(many, unwanted("n >= 0"), unwanted("n < 3")).outcomes
    assert all_of_them.offending_count == MAX_RESULT_RECORDS + 50
    assert (some.offending_count, some.offending_rows) == (3, ("n 0", "n 1", "n 2"))


def test_a_table_without_rows_breaks_nothing(pairs: DataFrame) -> None:
    assert judged(pairs.limit(0), pair(EQUAL), pair(GREATER)).passed


def test_a_pair_that_crashes_does_not_take_others_along(pairs: DataFrame) -> None:
    result = judged(pairs, pair(EQUAL, column_B="c"), pair(EQUAL), rule(NOT_NULL, column="n"))
    statuses = [outcome.status for outcome in result.outcomes]
    assert statuses == [Status.CRASHED, Status.FAILED, Status.PASSED]


def test_a_missing_value_is_never_a_reason_to_skip_a_row_of_a_suite() -> None:
    pairs = [
        item.arguments()
        for _gate, _table, rules in every_rule()
        for rule in rules
        for item in rule.expectations
        if item.type.startswith("expect_column_pair_")
    ]
    assert pairs
    assert all(reported["ignore_row_if"] == "neither" for reported in pairs)
