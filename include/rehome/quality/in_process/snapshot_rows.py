"""The gate on a snapshot, in process: its rules, and the tables that Spark makes for it, made here
of rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.request.request import ReassignmentRequest
from rehome.quality.in_process.rules_on_rows import GateRow, broken_rules
from rehome.quality.snapshot.rules import snapshot_rules
from rehome.quality.snapshot.tables import (
    Concerned,
    beside_replicas,
    small_tables,
    with_times_listed,
)


def refused_snapshot(
    snapshot: Snapshot, request: ReassignmentRequest, now: datetime, max_age_s: float
) -> dict[str, GateRow]:
    """Name of each rule that a snapshot breaks → the first row that does."""
    rules = snapshot_rules(additional=request.additional)
    rows = snapshot_rows(snapshot, now, Concerned.by(request))
    return broken_rules(rules, {"max_age_s": max_age_s}, rows)


def snapshot_rows(
    snapshot: Snapshot, now: datetime, concerned: Concerned
) -> dict[str, Sequence[GateRow]]:
    """The rows of each table."""
    rows_by_table: dict[str, Sequence[GateRow]] = {
        name: table.to_pylist() for name, table in small_tables(snapshot, now, concerned).items()
    }
    replicas = snapshot.replicas.to_pylist()
    topics = with_times_listed(snapshot.topics, "topic").to_pylist()
    partitions = list(_partitions(replicas, {topic["topic"] for topic in topics}))
    beside = {row["broker"]: row for row in beside_replicas(snapshot).to_pylist()}
    return {
        **rows_by_table,
        "topics": [{**topic, **_topic_row(topic["topic"], partitions)} for topic in topics],
        "replicas": [_replica(row, beside.get(row["broker"], {})) for row in replicas],
        "partitions": partitions,
    }


def _topic_row(topic: str, partitions: Sequence[GateRow]) -> GateRow:
    numbers = [row["partition"] for row in partitions if row["topic"] == topic]
    return {
        "partitions_seen": len(numbers),
        "first_partition": min(numbers, default=None),
        "last_partition": max(numbers, default=None),
    }


def _partitions(replicas: Sequence[GateRow], listed: set[str]) -> Iterator[GateRow]:
    rows: dict[tuple[str, int], list[GateRow]] = {}
    for row in replicas:
        rows.setdefault((row["topic"], row["partition"]), []).append(row)
    for (topic, partition), each in rows.items():
        places = [row["position"] for row in each]
        yield {
            "topic": topic,
            "partition": partition,
            "replicas": len(each),
            "leaders": sum(row["is_leader"] for row in each),
            "leaders_out_of_sync": sum(row["is_leader"] and not row["in_isr"] for row in each),
            "first_position": min(places),
            "last_position": max(places),
            "positions": sum(1 << place for place in set(places)),
            "moving": sum(row["adding"] or row["removing"] for row in each),
            "moving_log_dir": sum(row["future_log_dir"] is not None for row in each),
            "known_topic": topic in listed,
            "times_on_one_broker": max(Counter(row["broker"] for row in each).values()),
        }


def _replica(row: GateRow, broker: Mapping[str, Any]) -> GateRow:
    """With the facts about its broker; what a dead one, or a failed log dir, does not report is
    not due.
    """
    excused = broker.get("known_alive") is False or bool(broker.get("has_failed_dirs"))
    log_dir = row["log_dir"]
    due = {"log_dir": "", "size_bytes": 0, "log_end_offset": 0}
    is_there = None if log_dir is None else log_dir in broker.get("log_dirs", ())
    return {
        **row,
        "known_alive": broker.get("known_alive"),
        "known_log_dir": is_there,
        **{
            f"due_{name}": instead if excused and row[name] is None else row[name]
            for name, instead in due.items()
        },
    }
