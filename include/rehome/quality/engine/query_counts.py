"""Rows that an SQL query finds are counted among those that are fetched.

Great Expectations runs the query of an ``unexpected_rows_expectation`` twice: for its first rows,
and to count all of them. Where there are no more than the first, the second time is left out.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from rehome.quality.engine.pair_counts import replacing_metrics

if TYPE_CHECKING:
    from great_expectations.validator.metric_configuration import MetricConfiguration

_ROWS, _COUNT = "unexpected_rows_query.table", "unexpected_rows_query.row_count"


@cache
def count_rows_fetched() -> None:
    """Have queries that find few rows run once, from now on in this process."""
    from great_expectations.constants import MAX_RESULT_RECORDS
    from great_expectations.core.metric_function_types import MetricFunctionTypes
    from great_expectations.execution_engine import SparkDFExecutionEngine
    from great_expectations.expectations.metrics import query_metrics
    from great_expectations.expectations.registry import register_metric

    original = query_metrics.UnexpectedRowsQueryRowCount

    def row_count(*, cls: Any, metrics: dict[str, Any], **asked: Any) -> int:
        fetched = len(metrics[_ROWS])
        if fetched < MAX_RESULT_RECORDS:
            return fetched
        counted: int = original._spark(original, metrics=metrics, **asked)
        return counted

    with replacing_metrics():
        register_metric(
            _COUNT,
            metric_domain_keys=original.domain_keys,
            metric_value_keys=original.value_keys,
            execution_engine=SparkDFExecutionEngine,
            metric_class=_RowCount,
            metric_provider=row_count,
            metric_fn_type=MetricFunctionTypes.VALUE,
        )


class _RowCount:
    """What the count depends on, as Great Expectations asks each metric's class."""

    domain_keys: ClassVar[tuple[str, ...]] = ()
    value_keys: ClassVar[tuple[str, ...]] = ()
    default_kwarg_values: ClassVar[dict[str, Any]] = {}

    @staticmethod
    def get_evaluation_dependencies(
        metric: MetricConfiguration, **_: Any
    ) -> dict[str, MetricConfiguration]:
        """The rows that the same query fetches."""
        from great_expectations.validator.metric_configuration import MetricConfiguration

        asked = metric.metric_domain_kwargs, metric.metric_value_kwargs
        return {_ROWS: MetricConfiguration(_ROWS, *asked)}
