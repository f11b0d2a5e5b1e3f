"""The two gates of a plan job: is the snapshot good enough, is the plan right?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from include.cluster.snapshot import Snapshot
from include.planning.arrays import NONE, ClusterArrays
from include.planning.plan import Move, Plan, moves_table, plan_hash
from include.planning.racks import RackTree
from include.planning.request import Action, ReassignmentRequest
from include.quality.results import GateResult
from include.quality.rules import drained_empty_rule, plan_rules, snapshot_rules
from include.quality.runner import run_gate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def check_snapshot(
    spark: SparkSession,
    snapshot_uri: str,
    snapshot: Snapshot,
    now: datetime,
    *,
    max_age_s: float,
    additional: bool = False,
) -> GateResult:
    """Is the snapshot good enough to plan on? Replicas are read by Spark from ``snapshot_uri``."""
    tables = {
        name: spark.read.parquet(f"{snapshot_uri}/{name}.parquet")
        for name in ("brokers", "log_dirs", "topics", "replicas")
    }
    tables["partitions"] = _partitions(tables["replicas"])
    age_s = (now - snapshot.taken_at).total_seconds()
    tables["snapshot"] = _frame(
        spark, [{"taken_at": snapshot.taken_at.isoformat(), "age_s": age_s}]
    )
    return run_gate("snapshot", tables, snapshot_rules(max_age_s=max_age_s, additional=additional))


def check_plan(
    spark: SparkSession,
    snapshot: Snapshot,
    plan: Plan,
    request: ReassignmentRequest,
    *,
    reassignment: Mapping[str, Any],
    rollback: Mapping[str, Any],
    min_free_disk_fraction: float = 0.0,
) -> GateResult:
    """Does the plan keep every hard rule?

    :param reassignment: content of reassignment.json as it will be written.
    :param rollback: content of rollback.json as it will be written.
    :param min_free_disk_fraction: part of each log dir that must stay free at every moment.
    """
    drained = request.brokers if request.action is Action.DRAIN else ()
    explicit = request.action in (Action.REASSIGN, Action.ROLLBACK) or request.ignore_racks
    rules = plan_rules(
        drained=drained,
        replication_factor=(
            request.replication_factor if request.action is Action.SET_REPLICATION_FACTOR else None
        ),
        keeps_replication_factor=not plan.allow_replication_factor_change,
        guards_racks=not explicit,
    )
    if drained and not request.topics:
        rules = (*rules, drained_empty_rule(drained))
    tables = {
        "moves": _moves_frame(spark, snapshot, plan, drained, reassignment, rollback),
        "brokers_after": _brokers_after(spark, snapshot, plan.moves, min_free_disk_fraction),
        "plan": _plan_frame(spark, plan),
    }
    return run_gate("plan", tables, rules)


def _frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows))


def _partitions(replicas: DataFrame) -> DataFrame:
    return replicas.groupBy("topic", "partition").agg(
        *_aggregates(
            replicas="count(*)",
            leaders="sum(int(is_leader))",
            distinct_brokers="count(DISTINCT broker)",
            distinct_positions="count(DISTINCT position)",
            first_position="min(position)",
            last_position="max(position)",
            moving="sum(int(adding OR removing))",
        )
    )


def _aggregates(**expressions: str) -> list[Any]:
    from pyspark.sql.functions import expr

    return [expr(expression).alias(name) for name, expression in expressions.items()]


def _moves_frame(
    spark: SparkSession,
    snapshot: Snapshot,
    plan: Plan,
    drained: tuple[int, ...],
    reassignment: Mapping[str, Any],
    rollback: Mapping[str, Any],
) -> DataFrame:
    table = moves_table(plan.moves)
    for name, violations in _rack_violations(snapshot, plan.moves, drained).items():
        table = table.append_column(name, pa.array(violations, pa.int64()))
    for name, content in (("sent_replicas", reassignment), ("rollback_replicas", rollback)):
        table = table.append_column(name, _replicas_in(content, plan.moves))
    table = table.append_column("snapshot_replicas", _replicas_at(snapshot, plan.moves))
    live = snapshot.brokers.filter(snapshot.brokers.column("live")).column("broker").to_pylist()
    live_type = pa.list_(pa.int32())
    table = table.append_column("live_brokers", pa.array([live] * len(table), live_type))
    frame = spark.createDataFrame(table)
    return frame.selectExpr("*", "count(*) OVER (PARTITION BY topic, partition) AS times_planned")


def _replicas_in(content: Mapping[str, Any], moves: Iterable[Move]) -> pa.Array:
    """Replicas that one of Kafka's files names for each move; null where it leaves one out."""
    listed = {
        (entry["topic"], entry["partition"]): entry["replicas"] for entry in content["partitions"]
    }
    return pa.array(
        [listed.get((move.partition.topic, move.partition.partition)) for move in moves],
        pa.list_(pa.int32()),
    )


def _replicas_at(snapshot: Snapshot, moves: Iterable[Move]) -> pa.Array:
    """Replicas of each move's partition in the snapshot, in stored order, without leaving ones."""
    arrays = ClusterArrays.from_snapshot(snapshot)
    index = arrays.partition_index()
    return pa.array(
        [
            list(arrays.broker_ids(arrays.rows[index[move.partition]]))
            if move.partition in index
            else None
            for move in moves
        ],
        pa.list_(pa.int32()),
    )


def _rack_violations(
    snapshot: Snapshot, moves: Sequence[Move], drained: tuple[int, ...]
) -> dict[str, list[int]]:
    """How far each move's replicas are from an even spread, before and after."""
    arrays = ClusterArrays.from_snapshot(snapshot)
    index = arrays.brokers.index()
    live = arrays.brokers.live
    left = live & ~np.isin(arrays.brokers.ids, drained)
    found = {}
    for name, hosts, sets in (
        ("rack_violations_before", live, [move.current for move in moves]),
        ("rack_violations_after", left, [move.target for move in moves]),
    ):
        width = max((len(brokers) for brokers in sets), default=1)
        rows = np.full((len(sets), width), NONE, np.int32)
        for row, brokers in zip(rows, sets, strict=True):
            known = [index[broker] for broker in brokers if broker in index]
            row[: len(known)] = known
        tree = RackTree(arrays.brokers.rack_paths, hosts, width)
        found[name] = tree.violations(rows).tolist()
    return found


def _brokers_after(
    spark: SparkSession, snapshot: Snapshot, moves: Sequence[Move], min_free: float
) -> DataFrame:
    """Per broker: bytes the plan brings, room on its disks, replicas it hosts in the end."""
    bytes_in: Counter[int] = Counter()
    replicas = Counter(snapshot.replicas.column("broker").to_pylist())
    for move in moves:
        bytes_in.update(dict.fromkeys(move.adding, move.size_bytes))
        replicas.update(move.adding)
        replicas.subtract(move.removing)
    brokers = snapshot.brokers.column("broker").to_pylist()
    room = _room(snapshot, min_free)
    table = pa.table(
        {
            "broker": pa.array(brokers, pa.int32()),
            "room_bytes": pa.array([room.get(broker) for broker in brokers], pa.int64()),
            "bytes_in": pa.array([bytes_in[broker] for broker in brokers], pa.int64()),
            "replicas_after": pa.array([replicas[broker] for broker in brokers], pa.int64()),
        }
    )
    return spark.createDataFrame(table)


def _room(snapshot: Snapshot, min_free: float) -> dict[int, int | None]:
    """Bytes that may still be written to each broker's log dirs; None where one does not say.

    Offline and cordoned log dirs take nothing.
    """
    room: dict[int, int | None] = {}
    for row in snapshot.log_dirs.to_pylist():
        broker, total, usable = row["broker"], row["total_bytes"], row["usable_bytes"]
        if row["offline"] or row["cordoned"]:
            room.setdefault(broker, 0)
            continue
        known = room.get(broker, 0)
        if known is None or total is None or usable is None:
            room[broker] = None
        else:
            room[broker] = known + max(0, usable - int(total * min_free))
    return room


def _plan_frame(spark: SparkSession, plan: Plan) -> DataFrame:
    summary = plan.summary
    return _frame(
        spark,
        [
            {
                "plan_id": plan.plan_id,
                "plan_hash": plan.plan_hash,
                "computed_hash": plan_hash(plan.cluster_id, plan.moves),
                "bytes_to_move": summary.bytes_to_move,
                "computed_bytes": sum(move.bytes_to_move for move in plan.moves),
                "lower_bound_bytes": summary.lower_bound_bytes,
            }
        ],
    )
