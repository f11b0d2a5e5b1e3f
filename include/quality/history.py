"""The gate on the history: is it enough to plan by? Where it is not, the plan does without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from include.load_history.known_rates import KNOWN_PART, LoadHistory
from include.quality.engine.results import GateResult
from include.quality.engine.rules import Rule
from include.quality.engine.runner import run_gate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KEYS = ("resource",)


def check_history(spark: SparkSession, history: LoadHistory) -> GateResult:
    """Each resource's history against what is demanded of it.

    The result does not bind: what a resource's history breaks, the plan does not use.
    """
    columns = {
        "resource": [item.resource for item in history.resources],
        "partitions": [item.partitions for item in history.resources],
        "known_partitions": [item.known_partitions for item in history.resources],
        "hours": [item.hours for item in history.resources],
        "needed_hours": [item.needed_hours for item in history.resources],
        "age_hours": [item.age_hours for item in history.resources],
        "allowed_age_hours": [item.allowed_age_hours for item in history.resources],
        "unread_groups": ["; ".join(item.unread) for item in history.resources],
    }
    frame = spark.createDataFrame(pa.table(columns))
    return run_gate("history", {"resources": frame}, history_rules(), binding=False)


def history_rules() -> tuple[Rule, ...]:
    """What the history of a resource must satisfy before anything is planned by it."""
    return (
        Rule(
            "the history reaches back far enough",
            "resources",
            "hours >= needed_hours",
            _KEYS,
            "Let collect_snapshots run on, or ask for fewer hours (min_history_hours).",
            ("hours", "needed_hours"),
        ),
        Rule(
            "the history knows nearly every partition",
            "resources",
            f"hours < needed_hours OR known_partitions >= {KNOWN_PART} * partitions",
            _KEYS,
            "Find out which brokers did not answer: the unread column of the rollups.",
            ("known_partitions", "partitions"),
        ),
        Rule(
            "the history is recent",
            "resources",
            "age_hours <= allowed_age_hours",
            _KEYS,
            "See why collect_snapshots has stopped, and let it run again.",
            ("age_hours", "allowed_age_hours"),
        ),
        Rule(
            "the offsets of every consumer group were read",
            "resources",
            "unread_groups = ''",
            _KEYS,
            "Grant Group Describe to the principal that collects snapshots (docs/security.md).",
            ("unread_groups",),
        ),
    )
