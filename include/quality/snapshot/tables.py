"""The tables of a snapshot as the gate looks at them: with what each row has to agree with.

Brokers, log dirs and topics are few: what belongs beside them is counted here. Replicas are read
and counted by Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from include.cluster.snapshot.model import REPLICAS, Snapshot
from include.quality.engine.frames import frame_of, kept
from include.warehouse import replicas_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITION = ("topic", "partition")

# A shift by a broker's id is one by its remainder of 64: as many bits as replicas are as many
# brokers, fewer may be. Of up to three brokers, the extremes and what is between them suffice.
_SURELY_DISTINCT = """
    bit_count(broker_bits) = replicas
    OR replicas = 2 AND lowest < highest
    OR replicas = 3 AND lowest < others AND others < highest
"""


@contextmanager
def snapshot_tables(
    spark: SparkSession, snapshot_uri: str, snapshot: Snapshot, now: datetime
) -> Iterator[dict[str, DataFrame]]:
    """The tables by name, valid inside the context. Spark reads replicas from ``snapshot_uri``.

    ``snapshot`` (one row), ``brokers``, ``log_dirs``, ``topics``, ``replicas`` and
    ``partitions``; the columns of docs/schema.md and those that the rules compare them with.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    replicas = spark.read.schema(from_arrow_schema(REPLICAS)).parquet(replicas_uri(snapshot_uri))
    with kept(_counted(replicas)) as counted:
        yield {
            "snapshot": frame_of(spark, _header(snapshot, now)),
            "brokers": frame_of(spark, _brokers(snapshot)),
            "log_dirs": frame_of(spark, _listed(snapshot.log_dirs, "broker", "log_dir")),
            "topics": _topics(frame_of(spark, _listed(snapshot.topics, "topic")), counted),
            "replicas": _replicas(spark, replicas, snapshot),
            "partitions": _partitions(counted, replicas),
        }


def _header(snapshot: Snapshot, now: datetime) -> pa.Table:
    row = {
        "taken_at": snapshot.taken_at.isoformat(),
        "age_s": (now - snapshot.taken_at).total_seconds(),
        "live_brokers": sum(snapshot.brokers.column("live").to_pylist()),
    }
    return pa.Table.from_pylist([row])


def _brokers(snapshot: Snapshot) -> pa.Table:
    table = snapshot.brokers
    told = Counter(snapshot.log_dirs.column("broker").to_pylist())
    with_rack = sum(row["live"] and bool(row["rack_path"]) for row in table.to_pylist())
    known = pa.array([told[broker] for broker in table.column("broker").to_pylist()], pa.int64())
    return (
        _listed(table, "broker")
        .append_column("known_log_dirs", known)
        .append_column("live_with_rack", pa.array([with_rack] * len(table), pa.int64()))
    )


def _listed(table: pa.Table, *keys: str) -> pa.Table:
    """The table, and how many rows have the key of each."""
    rows = list(zip(*(table.column(key).to_pylist() for key in keys), strict=True))
    times = Counter(rows)
    return table.append_column("times_listed", pa.array([times[row] for row in rows], pa.int64()))


def _topics(topics: DataFrame, partitions: DataFrame) -> DataFrame:
    seen = partitions.groupBy("topic").agg(
        *_aggregates(
            seen="count(*)", first_partition="min(partition)", last_partition="max(partition)"
        )
    )
    return topics.join(seen, "topic", "left").selectExpr(
        "* EXCEPT (seen)", "coalesce(seen, 0) AS partitions_seen"
    )


def _replicas(spark: SparkSession, replicas: DataFrame, snapshot: Snapshot) -> DataFrame:
    from pyspark.sql.functions import broadcast

    alive = snapshot.brokers.group_by("broker").aggregate([("live", "any")])
    failed = snapshot.log_dirs.filter(snapshot.log_dirs["offline"])["broker"]
    alive = alive.append_column("failed", pc.is_in(alive["broker"], failed))
    beside = {
        ("broker",): alive.rename_columns(["broker", "known_alive", "has_failed_dirs"]),
        ("broker", "log_dir"): _distinct(snapshot.log_dirs, "broker", "log_dir"),
        ("topic",): _distinct(snapshot.topics, "topic"),
    }
    for keys, table in beside.items():
        replicas = replicas.join(broadcast(frame_of(spark, table)), list(keys), "left")
    return replicas.selectExpr(
        "*",
        "known_by_broker_log_dir IS NOT NULL AS known_log_dir",
        "known_by_topic IS NOT NULL AS known_topic",
    )


def _distinct(table: pa.Table, *keys: str) -> pa.Table:
    """Each key once, with a column that is null where a join does not find it."""
    found = table.group_by(list(keys)).aggregate([])
    return found.append_column(f"known_by_{'_'.join(keys)}", pa.array([True] * len(found)))


def _counted(replicas: DataFrame) -> DataFrame:
    """One row per partition, with what a single grouping can find of it."""
    counted = replicas.groupBy(*_PARTITION).agg(
        *_aggregates(
            replicas="count(*)",
            leaders="sum(int(is_leader))",
            first_position="min(position)",
            last_position="max(position)",
            positions="bit_or(shiftleft(1L, position))",
            moving="sum(int(adding OR removing))",
            moving_log_dir="sum(int(future_log_dir IS NOT NULL))",
            broker_bits="bit_or(shiftleft(1L, broker))",
            lowest="min(broker)",
            highest="max(broker)",
            others="sum(broker) - min(broker) - max(broker)",
        )
    )
    return counted.selectExpr(
        "* EXCEPT (broker_bits, lowest, highest, others)", f"{_SURELY_DISTINCT} AS surely_distinct"
    )


def _partitions(counted: DataFrame, replicas: DataFrame) -> DataFrame:
    """One row per partition, and how many of its replicas lie on one broker.

    Replicas are grouped by their brokers only where nothing cheaper shows that these are distinct:
    for all, it takes three times as long. Where there are none such, Spark does not read them.
    """
    from pyspark.sql.functions import broadcast

    unclear = counted.where("NOT surely_distinct").select(*_PARTITION)
    times = (
        replicas.join(broadcast(unclear), [*_PARTITION], "left_semi")
        .groupBy(*_PARTITION, "broker")
        .agg(*_aggregates(times="count(*)"))
        .groupBy(*_PARTITION)
        .agg(*_aggregates(times="max(times)"))
    )
    return counted.join(broadcast(times), [*_PARTITION], "left").selectExpr(
        "* EXCEPT (surely_distinct, times)", "coalesce(times, 1) AS times_on_one_broker"
    )


def _aggregates(**expressions: str) -> list[Any]:
    from pyspark.sql.functions import expr

    return [expr(expression).alias(name) for name, expression in expressions.items()]
