"""Runs rules as Great Expectations on Spark.

Each rule becomes a boolean column of its table, and one expectation that the column is true.
What Great Expectations reports as a failure is told apart: broken data, or a check that crashed
(it says ``success: false`` for both).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from include.quality.results import ROW_LENGTH, ROWS_SHOWN, ExpectationOutcome, GateResult, Status
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

    outcomes: dict[str, ExpectationOutcome] = {}
    sound: dict[str, Rule] = {}
    for number, rule in enumerate(rules):
        try:
            frame.selectExpr(_holds(rule))
        except PySparkException as error:
            outcomes[rule.name] = _crashed(rule, str(error))
        else:
            sound[f"holds_{number}"] = rule
    results = _validate(frame, sound) if sound else {}
    broken = []
    for column, rule in sound.items():
        exception = _exception(results[column].exception_info)
        if exception:
            outcomes[rule.name] = _crashed(rule, exception)
        elif results[column].success:
            outcomes[rule.name] = ExpectationOutcome(
                rule.name, rule.table, Status.PASSED, rule.remedy
            )
        else:
            broken.append(rule)
    outcomes |= {outcome.name: outcome for outcome in _broken(frame, broken)}
    return [outcomes[rule.name] for rule in rules]


def _holds(rule: Rule) -> str:
    return f"coalesce({rule.holds}, false)"


def _validate(frame: DataFrame, rules: Mapping[str, Rule]) -> dict[str, Any]:
    """Great Expectations' result per column name of ``rules``.

    It sees one boolean column per rule and nothing else, and is asked for yes or no only: all
    that it counts then is one query over the table. Rows that fail would cost it one more for
    each expectation, held or not.
    """
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    batch = (
        context.data_sources.add_spark("spark")
        .add_dataframe_asset("table")
        .add_batch_definition_whole_dataframe("all")
        .get_batch({"dataframe": _verdicts(frame, rules)})
    )
    suite = gx.ExpectationSuite(
        name="gate",
        expectations=[
            gx.expectations.ExpectColumnValuesToBeInSet(
                column=column, value_set=[True], meta={"name": rule.name, "remedy": rule.remedy}
            )
            for column, rule in rules.items()
        ],
    )
    result = batch.validate(suite, result_format="BOOLEAN_ONLY")
    return {item.expectation_config.kwargs["column"]: item for item in result.results}


def _verdicts(frame: DataFrame, rules: Mapping[str, Rule]) -> DataFrame:
    return frame.selectExpr(*(f"{_holds(rule)} AS {column}" for column, rule in rules.items()))


def _broken(frame: DataFrame, rules: list[Rule]) -> list[ExpectationOutcome]:
    """How many rows break each rule, in one query, and the first of them."""
    if not rules:
        return []
    counts = frame.selectExpr(
        *(f"count_if(NOT {_holds(rule)}) AS broken_{n}" for n, rule in enumerate(rules))
    ).collect()[0]
    return [
        ExpectationOutcome(
            name=rule.name,
            table=rule.table,
            status=Status.FAILED,
            remedy=rule.remedy,
            offending_count=int(count),
            offending_rows=_first_rows(frame, rule),
        )
        for rule, count in zip(rules, counts, strict=True)
    ]


def _first_rows(frame: DataFrame, rule: Rule) -> tuple[str, ...]:
    shown = frame.where(f"NOT {_holds(rule)}").select(*rule.keys, *rule.shows)
    rows = shown.orderBy(*rule.keys).limit(ROWS_SHOWN).collect()
    return tuple(_row_text(row.asDict()) for row in rows)


def _row_text(row: Mapping[str, Any]) -> str:
    text = ", ".join(f"{name} {value}" for name, value in row.items() if value is not None)
    return text if len(text) <= ROW_LENGTH else f"{text[: ROW_LENGTH - 1]}…"


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
