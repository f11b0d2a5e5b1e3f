"""The gate on the load history: is there enough to plan by? If not, the plan ignores that
resource.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rehome.load_history.known_rates import KNOWN_PART, LoadHistory
from rehome.quality.engine.frames import frame_of
from rehome.quality.engine.results import GateResult
from rehome.quality.engine.rules import rules_of
from rehome.quality.engine.runner import run_gate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_history(spark: SparkSession, history: LoadHistory) -> GateResult:
    """Check the history of each resource.

    The result is not binding: the plan only ignores resources whose history fails.
    """
    columns = {
        "resource": [item.resource for item in history.resources],
        "partitions": [item.partitions for item in history.resources],
        "known_partitions": [item.known_partitions for item in history.resources],
        "needed_partitions": [KNOWN_PART * item.partitions for item in history.resources],
        "hours": [item.hours for item in history.resources],
        "needed_hours": [item.needed_hours for item in history.resources],
        "age_hours": [item.age_hours for item in history.resources],
        "allowed_age_hours": [item.allowed_age_hours for item in history.resources],
        "unread_groups": pa.array(
            ["; ".join(item.unread) or None for item in history.resources], pa.string()
        ),
    }
    frame = frame_of(spark, pa.table(columns))
    rules = rules_of("history", ["resources"])
    return run_gate("history", {"resources": frame}, rules, binding=False)
