"""Runs rules as Great Expectations on Spark.

Spark asks every rule about every row in one pass, and counts the rows that agree in all verdicts
(:mod:`include.quality.engine.evaluate`). Each rule then is one expectation on these groups: a
boolean column that has to be true. Great Expectations says ``success: false`` both for broken data
and for a check that crashed: the two are distinguished here.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from include.quality.engine.evaluate import Alike, by_table, is_broken, judge, with_bits
from include.quality.engine.frames import frame_of
from include.quality.engine.results import (
    ROW_LENGTH,
    ROWS_SHOWN,
    ExpectationOutcome,
    GateResult,
    Status,
)
from include.quality.engine.rules import Rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Great Expectations would otherwise report its use to its makers.
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")


def prepare() -> None:
    """Import Great Expectations, which takes seconds; fewer where garbage is not looked for, of
    which an import leaves next to none.
    """
    looked = gc.isenabled()
    gc.disable()
    try:
        import great_expectations  # noqa: F401
    finally:
        if looked:
            gc.enable()


def run_gate(
    gate: str, tables: Mapping[str, DataFrame], rules: Iterable[Rule], *, binding: bool = True
) -> GateResult:
    """Check every rule on its table.

    :param gate: ``snapshot``, ``history`` or ``plan``.
    :param tables: the tables that the rules name.
    :param binding: see :class:`GateResult`.
    """
    rules = tuple(rules)
    verdicts = judge(tables, rules)
    asked = [rule for rule in rules if rule not in verdicts.crashed]
    spark = next(iter(tables.values())).sparkSession
    results = _validate(frame_of(spark, _table(verdicts.groups, asked)), asked)
    crashed = dict(verdicts.crashed)
    for rule, result in results.items():
        if exception := _exception(result.exception_info):
            crashed[rule] = exception
    broken = [rule for rule, result in results.items() if not result.success]
    rows = _first_rows(tables, [rule for rule in broken if rule not in crashed])

    def outcome(rule: Rule) -> ExpectationOutcome:
        if rule in crashed:
            return _crashed(rule, crashed[rule])
        if rule not in rows:
            return _outcome(rule, Status.PASSED)
        count = verdicts.broken_rows(rule)
        return _outcome(rule, Status.FAILED, offending_count=count, offending_rows=rows[rule])

    return GateResult(gate, tuple(map(outcome, rules)), binding)


def _column(number: int) -> str:
    return f"holds_{number}"


def _table(groups: Sequence[Alike], rules: Sequence[Rule]) -> pa.Table:
    """A row per group and a column per rule, null where the rule is of another table."""
    return pa.table(
        {
            _column(number): pa.array([group.holds.get(rule) for group in groups], pa.bool_())
            for number, rule in enumerate(rules)
        }
    )


def _validate(frame: DataFrame, rules: Sequence[Rule]) -> dict[Rule, Any]:
    """Great Expectations' result of each rule, whose column has to be true wherever it is known.

    It is asked for yes or no only: all that it counts then is one query.
    """
    if not rules:
        return {}
    import great_expectations as gx

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    batch = (
        context.data_sources.add_spark("spark", persist=False)
        .add_dataframe_asset("verdicts")
        .add_batch_definition_whole_dataframe("all")
        .get_batch({"dataframe": frame})
    )
    of_column = {_column(number): rule for number, rule in enumerate(rules)}
    suite = gx.ExpectationSuite(
        name="gate",
        expectations=[
            gx.expectations.ExpectColumnValuesToBeInSet(
                column=column, value_set=[True], meta={"name": rule.name, "remedy": rule.remedy}
            )
            for column, rule in of_column.items()
        ],
    )
    result = batch.validate(suite, result_format="BOOLEAN_ONLY")
    return {of_column[item.expectation_config.kwargs["column"]]: item for item in result.results}


def _first_rows(
    tables: Mapping[str, DataFrame], broken: Sequence[Rule]
) -> dict[Rule, tuple[str, ...]]:
    """The first rows that break each rule. A table is read once for all of its rules."""
    found = {}
    for table, rules in by_table(broken).items():
        shown = dict.fromkeys(name for rule in rules for name in (*rule.keys, *rule.shows))
        any_broken = " OR ".join(map(is_broken, range(len(rules))))
        offending = with_bits(tables[table], rules, *shown).where(any_broken).persist()
        try:
            for number, rule in enumerate(rules):
                rows = (
                    offending.where(is_broken(number))
                    .select(*rule.keys, *rule.shows)
                    .orderBy(*rule.keys)
                    .limit(ROWS_SHOWN)
                    .collect()
                )
                found[rule] = tuple(_row_text(row.asDict()) for row in rows)
        finally:
            offending.unpersist()
    return found


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


def _outcome(rule: Rule, status: Status, **found: Any) -> ExpectationOutcome:
    return ExpectationOutcome(rule.name, rule.table, status, rule.remedy, **found)


def _crashed(rule: Rule, message: str) -> ExpectationOutcome:
    first = message.strip().splitlines()[0] if message.strip() else "no message"
    return _outcome(rule, Status.CRASHED, exception=first[:500])
