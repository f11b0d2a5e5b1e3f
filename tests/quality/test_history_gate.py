"""The gate on the history finds the same faults as the history itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from include.load_history.known_rates import LoadHistory, ResourceHistory
from include.load_history.rollup import Span
from include.quality.history import check_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FINE = ResourceHistory("bytes_in", 100, 95, 30.0, 24.0, 1.0, 24.0)
NOTHING = np.zeros(0)


def history(*resources: ResourceHistory) -> LoadHistory:
    return LoadHistory(Span(), (), np.zeros(0, np.int64), {}, NOTHING, resources)


@pytest.mark.parametrize(
    ("worse", "broken"),
    [
        ({}, None),
        ({"hours": 23.9}, "the history reaches back far enough"),
        ({"known_partitions": 94}, "the history knows nearly every partition"),
        ({"age_hours": 24.1}, "the history is recent"),
        ({"unread": ("group g: no",)}, "the offsets of every consumer group were read"),
    ],
)
def test_each_fault_is_found_by_the_expectation_that_names_it(
    spark: SparkSession, worse: dict[str, Any], broken: str | None
) -> None:
    spoilt = replace(FINE, resource="bytes_out", **worse)
    result = check_history(spark, history(FINE, spoilt))
    assert [outcome.name for outcome in result.failed] == ([broken] if broken else [])
    assert all(o.offending_rows[0].startswith("resource bytes_out") for o in result.failed)
    assert not result.crashed
    assert not result.binding
    assert spoilt.known == result.passed
