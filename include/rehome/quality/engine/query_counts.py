"""Rows that the SQL queries of a suite find are counted together with all rows of their table.

Great Expectations runs the query of an ``unexpected_rows_expectation`` twice: for its first rows,
and to count all of them. While Spark finds none, it runs each in several jobs. All that such a
query says is which rows of its table are unexpected. So they are counted by an aggregate, in the
query that counts the rows of the table, and fetched only where there are any.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from rehome.quality.engine.pair_counts import (
    Aggregate,
    CountOfRows,
    register_count,
    replacing_metrics,
)

if TYPE_CHECKING:
    from great_expectations.execution_engine import SparkDFExecutionEngine
    from great_expectations.validator.metric_configuration import MetricConfiguration

_ROWS, _COUNT = "unexpected_rows_query.table", "unexpected_rows_query.row_count"
_AGGREGATE = f"{_COUNT}.aggregate_fn"
_QUERY = re.compile(r"SELECT .+? FROM \{batch\} WHERE (?P<condition>.+)", re.DOTALL)


@cache
def count_queries_together() -> None:
    """Have the rows of SQL queries counted in one query, from now on in this process."""
    from great_expectations.expectations.metrics import query_metrics

    original = query_metrics.UnexpectedRowsQueryTable

    def rows(*, cls: Any, metrics: dict[str, Any], **arguments: Any) -> list[dict[str, Any]]:
        if not metrics[_COUNT]:
            return []
        unexpected_rows: list[dict[str, Any]] = original._spark(
            original, metrics=metrics, **arguments
        )
        return unexpected_rows

    keys = original.domain_keys, original.value_keys
    with replacing_metrics():
        register_count(_Query, _ROWS, *keys, rows, aggregates=False)
        register_count(_Query, _COUNT, *keys, None)
        register_count(_Query, _AGGREGATE, *keys, _count_unexpected)


class _Query(CountOfRows):
    """What the metrics of a query depend on."""

    @staticmethod
    def get_evaluation_dependencies(
        metric: MetricConfiguration, **_: Any
    ) -> dict[str, MetricConfiguration]:
        """Rows depend on their number, and that on its aggregate."""
        from great_expectations.validator.metric_configuration import MetricConfiguration

        kwargs = metric.metric_domain_kwargs, metric.metric_value_kwargs
        if metric.metric_name == _ROWS:
            return {_COUNT: MetricConfiguration(_COUNT, *kwargs)}
        if metric.metric_name == _COUNT:
            return {"metric_partial_fn": MetricConfiguration(_AGGREGATE, *kwargs)}
        return {}


def _count_unexpected(
    *,
    execution_engine: SparkDFExecutionEngine,
    metric_domain_kwargs: dict[str, Any],
    metric_value_kwargs: dict[str, Any],
    **_: Any,
) -> Aggregate:
    """How many rows a query finds.

    :raises ValueError: it is not of the kind ``SELECT … FROM {batch} WHERE …``.
    """
    from pyspark.sql import functions as F

    query = metric_value_kwargs["unexpected_rows_query"]
    match = _QUERY.fullmatch(query)
    if match is None:
        raise ValueError(f"Only SELECT … FROM {{batch}} WHERE … can be counted, not: {query}")
    # As the count of all rows names them: what is of the same rows is asked in one query.
    all_rows = {"table": None, **metric_domain_kwargs}
    _, rows, columns = execution_engine.get_compute_domain(all_rows, "table")
    return F.count(F.when(F.expr(match["condition"]), 1)), rows, columns
