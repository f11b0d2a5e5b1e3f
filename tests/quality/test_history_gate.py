"""The gate on the history finds the same faults as the history itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rehome.load_history.known_rates import LoadHistory, ResourceHistory
from rehome.load_history.rollup import Span
from rehome.quality.history import check_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FINE = ResourceHistory("bytes_in", 100, 95, 30.0, 24.0, 1.0, 24.0)
NOTHING = np.zeros(0)


def history(*resources: ResourceHistory) -> LoadHistory:
    return LoadHistory(Span(), (), np.zeros(0, np.int64), {}, NOTHING, resources)


FAULTS: dict[str, dict[str, Any]] = {
    "the history is long enough": {"hours": 23.9},
    "the history has nearly every partition": {"known_partitions": 94},
    "the history is recent": {"age_hours": 24.1},
    "the offsets of every consumer group were read": {"unread": ("group g: no",)},
}


def test_each_fault_is_found_by_the_expectation_that_names_it(spark: SparkSession) -> None:
    """One resource has each fault; another has none, and no row."""
    assert FINE.is_known
    spoilt = [replace(FINE, resource=name, **worse) for name, worse in FAULTS.items()]
    result = check_history(spark, history(FINE, *spoilt))
    assert {outcome.name: len(outcome.offending_rows) for outcome in result.failed} == (
        dict.fromkeys(FAULTS, 1)
    )
    assert all(o.offending_rows[0].startswith(f"resource {o.name}") for o in result.failed)
    assert not result.crashed
    assert not result.binding
    assert not any(resource.is_known for resource in spoilt)
