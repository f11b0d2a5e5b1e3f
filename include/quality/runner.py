"""Runs rules as Great Expectations on Spark.

Each rule becomes a boolean column of its table, and one expectation that the column is true.
What Great Expectations reports as a failure is told apart: broken data, or a check that crashed
(it says ``success: false`` for both).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from include.quality.results import ROWS_SHOWN, ExpectationOutcome, GateResult, Status
from include.quality.rules import Rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Great Expectations would otherwise report its use to its makers.
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")


def run_gate(
    gate: str, tables: Mapping[str, DataFrame], rules: Iterable[Rule], *, binding: bool = True
) -> GateResult:
    """Check every rule on its table.

    :param gate: ``snapshot``, ``history`` or ``plan``.
    :param tables: the tables that the rules name.
    :param binding: see :class:`GateResult`.
    """
    by_table: dict[str, list[Rule]] = {}
    for rule in rules:
        by_table.setdefault(rule.table, []).append(rule)
    outcomes = [
        outcome
        for table, table_rules in by_table.items()
        for outcome in _check_table(tables[table], table_rules)
    ]
    return GateResult(gate, tuple(outcomes), binding)


def _check_table(frame: DataFrame, rules: list[Rule]) -> list[ExpectationOutcome]:
    outcomes = _check_together(frame, rules)
    if len(rules) == 1:
        return outcomes
    # One crash takes down every check of the same query: those are asked again, one by one.
    return [
        _check_together(frame, [rule])[0] if outcome.status is Status.CRASHED else outcome
        for rule, outcome in zip(rules, outcomes, strict=True)
    ]


def _check_together(frame: DataFrame, rules: list[Rule]) -> list[ExpectationOutcome]:
    """Outcomes in the order of ``rules``."""
    from pyspark.errors import PySparkException

    checked, columns = frame, {}
    outcomes: dict[str, ExpectationOutcome] = {}
    for number, rule in enumerate(rules):
        column = f"holds_{number}"
        try:
            checked = checked.selectExpr("*", f"coalesce({rule.holds}, false) AS {column}")
        except PySparkException as error:
            outcomes[rule.name] = _crashed(rule, str(error))
        else:
            columns[column] = rule
    checked = checked.cache()
    try:
        results = _validate(checked, columns) if columns else {}
        for column, rule in columns.items():
            outcomes[rule.name] = _outcome(checked, column, rule, results[column])
    finally:
        checked.unpersist()
    return [outcomes[rule.name] for rule in rules]


def _validate(frame: DataFrame, columns: Mapping[str, Rule]) -> dict[str, Any]:
    """Great Expectations' result per column."""
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    batch = (
        context.data_sources.add_spark("spark")
        .add_dataframe_asset("table")
        .add_batch_definition_whole_dataframe("all")
        .get_batch({"dataframe": frame})
    )
    suite = gx.ExpectationSuite(
        name="gate",
        expectations=[
            gx.expectations.ExpectColumnValuesToBeInSet(
                column=column, value_set=[True], meta={"name": rule.name, "remedy": rule.remedy}
            )
            for column, rule in columns.items()
        ],
    )
    result = batch.validate(suite, result_format="BASIC")
    return {item.expectation_config.kwargs["column"]: item for item in result.results}


def _outcome(frame: DataFrame, column: str, rule: Rule, result: Any) -> ExpectationOutcome:
    if result.success:
        return ExpectationOutcome(rule.name, rule.table, Status.PASSED, rule.remedy)
    exception = _exception(result.exception_info)
    if exception:
        return _crashed(rule, exception)
    shown = frame.where(f"NOT {column}").select(*rule.keys, *rule.shows)
    rows = shown.orderBy(*rule.keys).limit(ROWS_SHOWN).collect()
    return ExpectationOutcome(
        name=rule.name,
        table=rule.table,
        status=Status.FAILED,
        remedy=rule.remedy,
        offending_count=int(result.result["unexpected_count"]),
        offending_rows=tuple(_row_text(row.asDict()) for row in rows),
    )


def _row_text(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.items() if value is not None)


def _exception(info: Mapping[str, Any]) -> str:
    """The exception's message; "" when nothing was raised. Its shape differs by kind of crash."""
    if "raised_exception" in info:
        return str(info["exception_message"]) if info["raised_exception"] else ""
    messages = [
        str(item["exception_message"]) for item in info.values() if item["raised_exception"]
    ]
    return "; ".join(messages)


def _crashed(rule: Rule, message: str) -> ExpectationOutcome:
    first = message.strip().splitlines()[0] if message.strip() else "no message"
    return ExpectationOutcome(
        rule.name, rule.table, Status.CRASHED, rule.remedy, exception=first[:500]
    )
