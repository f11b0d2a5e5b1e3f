"""Run the rules of a gate with Great Expectations on Spark.

Each table has a suite, which is validated on it as one batch. The first pass only asks whether
expectations hold, so all counts of a table's columns, and of pairs of them, are one query. The
offending rows are fetched only for broken expectations, by their keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rehome.quality.engine.context import expectation_of, quiet, suite_of, whole_table
from rehome.quality.engine.expectation_results import ExpectationResult, outcome_of
from rehome.quality.engine.frames import one_job_each
from rehome.quality.engine.pair_counts import count_pairs_together
from rehome.quality.engine.query_counts import count_queries_together
from rehome.quality.engine.results import (
    ROWS_SHOWN,
    ExpectationOutcome,
    GateResult,
    Validation,
)
from rehome.quality.engine.rules import Expectation, Rule

if TYPE_CHECKING:
    from great_expectations.core import (
        ExpectationSuite,
        ExpectationSuiteValidationResult,
        ExpectationValidationResult,
    )
    from great_expectations.core.batch_definition import BatchDefinition
    from great_expectations.datasource.fluent.interfaces import Batch
    from pyspark.sql import DataFrame

_SQL = "unexpected_rows_expectation"
_VIEW = "tmp_view"
"""The temporary view that Great Expectations leaves behind after an SQL query."""


def run_gate(
    gate: str,
    tables: Mapping[str, DataFrame],
    rules: Iterable[Rule],
    *,
    parameters: Mapping[str, Any] | None = None,
    binding: bool = True,
) -> GateResult:
    """Check every rule on its table.

    :param gate: ``snapshot``, ``history`` or ``plan``.
    :param tables: the tables that the rules name.
    :param parameters: values of ``$PARAMETER`` in the suites.
    :param binding: see :class:`GateResult`.
    """
    import great_expectations as gx

    count_pairs_together()
    count_queries_together()
    rules = tuple(rules)
    spark = next(iter(tables.values())).sparkSession
    context = quiet(gx.get_context(mode="ephemeral"))
    outcomes: dict[Rule, ExpectationOutcome] = {}
    validations = []
    with one_job_each(spark):
        for table, table_rules in by_table(rules).items():
            suite = suite_of(f"{gate}.{table}", table_rules)
            batches = _Batches(whole_table(context, table), tables[table], dict(parameters or {}))
            result = batches.validate(suite, table_rules)
            outcomes |= _outcomes(table_rules, result.results)
            validations.append(Validation(suite.name, tuple(table_rules), result))
    spark.catalog.dropTempView(_VIEW)
    outcomes_in_order = tuple(outcomes[rule] for rule in rules)
    return GateResult(gate, outcomes_in_order, binding, tuple(validations))


def by_table(rules: Iterable[Rule]) -> dict[str, list[Rule]]:
    """The rules of each table, in their order."""
    rules_by_table: dict[str, list[Rule]] = {}
    for rule in rules:
        rules_by_table.setdefault(rule.table, []).append(rule)
    return rules_by_table


def _outcomes(
    rules: Sequence[Rule], results: Sequence[ExpectationValidationResult]
) -> dict[Rule, ExpectationOutcome]:
    judged = iter([ExpectationResult.of(result.to_json_dict()) for result in results])
    return {rule: outcome_of(rule, [next(judged) for _ in rule.expectations]) for rule in rules}


class _Batches:
    """Validates expectations on a table."""

    def __init__(
        self, data: BatchDefinition, frame: DataFrame, parameters: Mapping[str, Any]
    ) -> None:
        self._data = data
        self._frame = frame
        self._parameters = parameters

    def validate(
        self, suite: ExpectationSuite, rules: Sequence[Rule]
    ) -> ExpectationSuiteValidationResult:
        """Validate a suite, and fetch the rows that break its rules."""
        result = self._batch(self._frame).validate(
            suite, result_format="BOOLEAN_ONLY", expectation_parameters=dict(self._parameters)
        )
        result.results = self._in_detail(rules, result.results)
        return result

    def _batch(self, frame: DataFrame) -> Batch:
        return self._data.get_batch({"dataframe": frame})

    def _in_detail(
        self, rules: Sequence[Rule], results: Sequence[ExpectationValidationResult]
    ) -> list[ExpectationValidationResult]:
        """The results, with the offending rows of broken expectations. A crash fails every
        expectation of the same query, so each of them is validated alone.
        """
        pairs = [(rule, item) for rule in rules for item in rule.expectations]
        by_number = {result.expectation_config.meta["number"]: result for result in results}
        for number, (rule, item) in enumerate(pairs):
            if not by_number[number].success:
                by_number[number] = self._validate_alone(rule, item, number)
        return [by_number[number] for number in range(len(pairs))]

    def _validate_alone(
        self, rule: Rule, item: Expectation, number: int
    ) -> ExpectationValidationResult:
        # Spark sorts only the rows left by the filter, and only as many as are shown.
        batch = self._batch(self._frame.orderBy(*rule.keys))
        columns = list(dict.fromkeys((*rule.keys, *rule.shows)))
        rows: dict[str, Any] = {
            "result_format": "SUMMARY",
            "unexpected_index_column_names": columns,
            "partial_unexpected_count": ROWS_SHOWN,
        }
        if item.type == _SQL:  # returns rows (at most 200) only in this format
            rows = {"result_format": "COMPLETE"}
        return batch.validate(
            expectation_of(rule, item, number),
            result_format=rows,
            expectation_parameters=dict(self._parameters),
        )
