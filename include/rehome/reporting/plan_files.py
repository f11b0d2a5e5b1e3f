"""A plan's files, and what people find in each."""

from __future__ import annotations

from collections.abc import Mapping

PLAN_FILES: Mapping[str, str] = {
    "report.html": "the report",
    "moves.parquet": "every move, one row each",
    "reassignment.json": "for kafka-reassign-partitions --execute",
    "rollback.json": "the way back, in the same format",
    "summary.json": "the plan in numbers",
    "request.json": "what was asked for",
    "settings.json": "the cluster's caps, broker sets and targets that it was made with",
    "gates.json": "what the gates found",
    "dry_run.json": "what the dry run found",
    "export.json": "which files for Kafka's own tools lie in export/",
    "load.json": "what the load history knows, and how full disks will be",
    "verification.json": "the proof of the end",
    "leaders.json": "the elections of preferred leaders",
    "drained.json": "what was found on the drained brokers",
    "demoted.json": "what demoted brokers lead in the end",
    "failure.json": "why no plan was made",
}
"""Name → what is in it."""
EXPORT = "export"
"""The folder of the files for Kafka's own tools, in the plan's directory."""
