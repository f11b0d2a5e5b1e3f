"""Counts of expectations on two columns, as part of their table's one query.

Great Expectations asks for all single columns of a table in one aggregation, and for each pair of
columns in queries of its own. Its registry of metrics decides which: here the two counts of a pair
are registered as aggregates. They count the same rows as before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from great_expectations.validator.metric_configuration import MetricConfiguration
    from pyspark.sql import Column

Aggregate = tuple["Column", dict[str, Any], dict[str, Any]]
"""What an engine bundles: a sum over rows, the domain of these rows, and the columns."""

_UNEXPECTED, _CHECKED = ".unexpected_count", ".filtered_row_count"
_AGGREGATE, _CONDITION = ".aggregate_fn", ".condition"


@cache
def count_pairs_together() -> None:
    """Have pairs of columns counted in their table's one query, from now on in this process."""
    from great_expectations.expectations import metrics

    with replacing_metrics():
        for pair in (metrics.ColumnPairValuesEqual, metrics.ColumnPairValuesAGreaterThanB):
            keys, values = pair.condition_domain_keys, pair.condition_value_keys
            for count, of_value, function in (
                (_UNEXPECTED, values, _count_unexpected),
                (_CHECKED, (*values, "result_format"), _count_checked),
            ):
                name = f"{pair.condition_metric_name}{count}"
                register_count(_Counts, name, keys, of_value, None)
                register_count(_Counts, f"{name}{_AGGREGATE}", keys, values, function)


@contextmanager
def replacing_metrics() -> Iterator[None]:
    """Inside the context Great Expectations does not warn of metrics that replace its own."""
    from great_expectations.expectations.registry import register_metric

    log = logging.getLogger(register_metric.__module__)
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = False


def register_count(
    metric_class: type[CountOfRows],
    name: str,
    domain_keys: tuple[str, ...],
    value_keys: tuple[str, ...],
    provider: Callable[..., Any] | None,
    *,
    aggregates: bool = True,
) -> None:
    """Register a metric; without a function, its value is that of its aggregate.

    :param aggregates: whether the function returns what is asked of the engine, not the value.
    """
    from great_expectations.core.metric_function_types import (
        MetricFunctionTypes,
        MetricPartialFunctionTypes,
    )
    from great_expectations.execution_engine import SparkDFExecutionEngine
    from great_expectations.expectations.registry import register_metric

    partial, value = MetricPartialFunctionTypes.AGGREGATE_FN, MetricFunctionTypes.VALUE
    register_metric(
        name,
        metric_domain_keys=domain_keys,
        metric_value_keys=value_keys,
        execution_engine=SparkDFExecutionEngine,
        metric_class=metric_class,
        metric_provider=provider,
        metric_fn_type=partial if provider and aggregates else value,
    )


class CountOfRows:
    """A metric, as Great Expectations asks its class."""

    domain_keys: ClassVar[tuple[str, ...]] = ()
    value_keys: ClassVar[tuple[str, ...]] = ()
    default_kwarg_values: ClassVar[dict[str, Any]] = {}


class _Counts(CountOfRows):
    """What a count depends on."""

    @staticmethod
    def get_evaluation_dependencies(
        metric: MetricConfiguration, **_: Any
    ) -> dict[str, MetricConfiguration]:
        """An aggregate depends on the condition of its expectation, a value on its aggregate."""
        from great_expectations.validator.metric_configuration import MetricConfiguration

        name, domain = metric.metric_name, metric.metric_domain_kwargs
        values = {k: v for k, v in metric.metric_value_kwargs.items() if k != "result_format"}
        if not name.endswith(_AGGREGATE):
            return {"metric_partial_fn": MetricConfiguration(name + _AGGREGATE, domain, values)}
        pair = name.removesuffix(_AGGREGATE).removesuffix(_UNEXPECTED).removesuffix(_CHECKED)
        return {"unexpected_condition": MetricConfiguration(pair + _CONDITION, domain, values)}


def _count_unexpected(*, metrics: dict[str, Any], **_: Any) -> Aggregate:
    """How many rows break the expectation."""
    condition, domain, columns = metrics["unexpected_condition"]
    return _sum(condition, domain, columns)


def _count_checked(*, metrics: dict[str, Any], **_: Any) -> Aggregate:
    """How many rows the expectation is about."""
    from pyspark.sql import functions as F

    _condition, domain, columns = metrics["unexpected_condition"]
    return _sum(F.lit(True), domain, columns)


def _sum(condition: Column, domain: dict[str, Any], columns: dict[str, Any]) -> Aggregate:
    """Ignored rows stay in the domain, so that it is that of the table's other expectations, and
    add nothing.
    """
    from pyspark.sql import functions as F

    a, b = F.col(columns["column_A"]), F.col(columns["column_B"])
    considered = {
        "neither": F.lit(True),
        "both_values_are_missing": a.isNotNull() | b.isNotNull(),
        "either_value_is_missing": a.isNotNull() & b.isNotNull(),
    }[domain["ignore_row_if"]]
    rows = {key: value for key, value in domain.items() if key != "ignore_row_if"}
    return F.sum(F.when(considered & condition, 1).otherwise(0)), rows, columns
