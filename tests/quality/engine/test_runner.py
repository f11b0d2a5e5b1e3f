"""What Great Expectations reports as one failure is distinguished: bad data, or a crashed check."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING, Any

import pytest

from rehome.quality.engine.context import prepare
from rehome.quality.engine.results import (
    ROW_LENGTH,
    ROWS_NAMED,
    ROWS_SHOWN,
    GateResult,
    Status,
    describe,
    refusal,
)
from rehome.quality.engine.rules import Expectation, Rule
from rehome.quality.engine.runner import run_gate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 30
_CRASHES = "number < 5 OR raise_error('no such thing') IS NULL"


def rule(name: str, *expectations: Expectation) -> Rule:
    return Rule(name, "numbers", ("number",), "Do something about it.", expectations)


def expect(kind: str, **kwargs: Any) -> Expectation:
    return Expectation(kind, json.dumps(kwargs))


def between(column: str, **limits: Any) -> Expectation:
    return expect("expect_column_values_to_be_between", column=column, **limits)


def query(holds: str) -> Expectation:
    unexpected = f"SELECT * FROM {{batch}} WHERE NOT coalesce({holds}, false)"
    return expect("unexpected_rows_expectation", unexpected_rows_query=unexpected)


@pytest.fixture(scope="module")
def result(spark: SparkSession) -> GateResult:
    numbers = spark.createDataFrame(
        [(n, None if n == 7 else n) for n in range(ROWS)], "number int, size int"
    )
    rules = [
        rule("holds", between("number", min_value=0), query("number >= 0")),
        rule("is broken by all", between("number", max_value=-1)),
        rule("is broken by a null alone", query("size >= 0")),
        rule("names a column that is not there", between("weight", min_value=0)),
        rule(
            "crashes on a row",
            between("number", max_value=99, row_condition=_CRASHES, condition_parser="spark"),
        ),
        rule(
            "is broken by some in two ways",
            between("number", min_value=3),
            expect("expect_column_values_to_not_be_null", column="size"),
            between("size", min_value=2),
        ),
        rule("is above a parameter", between("number", min_value={"$PARAMETER": "least"})),
    ]
    return run_gate("snapshot", {"numbers": numbers}, rules, parameters={"least": 29})


def status_of(result: GateResult, name: str) -> Status:
    return next(item.status for item in result.outcomes if item.name == name)


def test_outcomes_keep_the_order_of_the_rules(result: GateResult) -> None:
    assert [item.name for item in result.outcomes] == [
        "holds",
        "is broken by all",
        "is broken by a null alone",
        "names a column that is not there",
        "crashes on a row",
        "is broken by some in two ways",
        "is above a parameter",
    ]


def test_rows_that_break_several_expectations_of_a_rule_are_named_once(result: GateResult) -> None:
    outcome = result.outcomes[5]
    assert outcome.offending_rows == ("number 0", "number 1", "number 2", "number 7")
    assert outcome.offending_count == 4


def test_the_suites_have_parameters(result: GateResult) -> None:
    assert result.outcomes[6].offending_count == 29


def test_a_null_breaks_an_expectation(result: GateResult) -> None:
    outcome = result.outcomes[2]
    assert outcome.status is Status.FAILED
    assert outcome.offending_rows == ("number 7",)


def test_a_crash_is_neither_a_pass_nor_a_failure_of_the_data(result: GateResult) -> None:
    assert status_of(result, "names a column that is not there") is Status.CRASHED
    assert status_of(result, "crashes on a row") is Status.CRASHED
    assert "weight" in result.outcomes[3].exception
    assert "no such thing" in result.outcomes[4].exception
    assert not result.passed


def test_a_crash_does_not_take_its_neighbours_along(result: GateResult) -> None:
    assert status_of(result, "holds") is Status.PASSED
    assert status_of(result, "is broken by all") is Status.FAILED


def test_rows_shown_are_bounded_and_counted(result: GateResult) -> None:
    outcome = result.outcomes[1]
    assert outcome.offending_count == ROWS
    assert len(outcome.offending_rows) == ROWS_SHOWN
    assert f"and {ROWS - ROWS_NAMED} more" in describe([result])


def test_a_row_that_is_shown_is_no_longer_than_a_line(spark: SparkSession) -> None:
    long = spark.range(1).selectExpr("repeat('x', 10000) AS number")
    (outcome,) = run_gate("plan", {"numbers": long}, [rule("is short", query("false"))]).outcomes
    assert len(outcome.offending_rows[0]) == ROW_LENGTH


def test_results_come_back_from_json(result: GateResult) -> None:
    assert GateResult.from_json(json.loads(json.dumps(result.to_json()))) == result


def test_a_refusal_names_expectations_rows_and_remedies_but_not_what_passed(
    result: GateResult,
) -> None:
    text = refusal(result)
    assert "is broken by a null alone" in text
    assert "number 7" in text
    assert "Do something about it." in text
    assert "the check itself crashed" in text
    assert "numbers: holds" not in text
    assert "numbers: holds" in describe([result])


@pytest.mark.slow
@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_is_as_before_afterwards(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        prepare()
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
