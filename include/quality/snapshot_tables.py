"""The tables of a snapshot as the gate looks at them: with what each row has to agree with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from include.cluster.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@contextmanager
def snapshot_tables(
    spark: SparkSession, snapshot_uri: str, snapshot: Snapshot, now: datetime
) -> Iterator[dict[str, DataFrame]]:
    """The tables by name, valid inside the context. Spark reads them from ``snapshot_uri``.

    ``snapshot`` (one row), ``brokers``, ``log_dirs``, ``topics``, ``replicas`` and
    ``partitions``; the columns of docs/schema.md and those that the rules compare them with.
    """
    brokers, log_dirs, topics, replicas = (
        spark.read.parquet(f"{snapshot_uri}/{name}.parquet")
        for name in ("brokers", "log_dirs", "topics", "replicas")
    )
    partitions = _partitions(replicas).cache()
    try:
        yield {
            "snapshot": _header(spark, snapshot, now),
            "brokers": _brokers(brokers, log_dirs),
            "log_dirs": log_dirs.selectExpr(
                "*", "count(*) OVER (PARTITION BY broker, log_dir) AS times_listed"
            ),
            "topics": _topics(topics, partitions),
            "replicas": _replicas(replicas, brokers, log_dirs, topics),
            "partitions": partitions,
        }
    finally:
        partitions.unpersist()


def _header(spark: SparkSession, snapshot: Snapshot, now: datetime) -> DataFrame:
    row = {
        "taken_at": snapshot.taken_at.isoformat(),
        "age_s": (now - snapshot.taken_at).total_seconds(),
        "live_brokers": sum(snapshot.brokers.column("live").to_pylist()),
    }
    return spark.createDataFrame(pa.Table.from_pylist([row]))


def _brokers(brokers: DataFrame, log_dirs: DataFrame) -> DataFrame:
    told = log_dirs.groupBy("broker").agg(*_aggregates(known_log_dirs="count(*)"))
    return brokers.join(told, "broker", "left").selectExpr(
        "* EXCEPT (known_log_dirs)",
        "coalesce(known_log_dirs, 0) AS known_log_dirs",
        "count(*) OVER (PARTITION BY broker) AS times_listed",
        "count_if(live AND size(rack_path) > 0) OVER () AS live_with_rack",
    )


def _topics(topics: DataFrame, partitions: DataFrame) -> DataFrame:
    seen = partitions.groupBy("topic").agg(
        *_aggregates(
            seen="count(*)", first_partition="min(partition)", last_partition="max(partition)"
        )
    )
    return topics.join(seen, "topic", "left").selectExpr(
        "* EXCEPT (seen)",
        "coalesce(seen, 0) AS partitions_seen",
        "count(*) OVER (PARTITION BY topic) AS times_listed",
    )


def _replicas(
    replicas: DataFrame, brokers: DataFrame, log_dirs: DataFrame, topics: DataFrame
) -> DataFrame:
    from pyspark.sql.functions import broadcast

    alive = brokers.groupBy("broker").agg(*_aggregates(known_alive="bool_or(live)"))
    listed = log_dirs.selectExpr("broker", "log_dir", "true AS dir_listed").distinct()
    named = topics.selectExpr("topic", "true AS topic_listed").distinct()
    return (
        replicas.join(broadcast(alive), "broker", "left")
        .join(broadcast(listed), ["broker", "log_dir"], "left")
        .join(broadcast(named), "topic", "left")
        .selectExpr(
            "* EXCEPT (dir_listed, topic_listed)",
            "coalesce(dir_listed, false) AS known_log_dir",
            "coalesce(topic_listed, false) AS known_topic",
        )
    )


def _partitions(replicas: DataFrame) -> DataFrame:
    """One row per partition. Both groupings share one shuffle; none of them counts distinct
    values, for which Spark would write each row several times.
    """
    keys = ("topic", "partition")
    by_broker = (
        replicas.repartition(*keys)
        .groupBy(*keys, "broker")
        .agg(
            *_aggregates(
                times="count(*)",
                leaders="sum(int(is_leader))",
                first="min(position)",
                last="max(position)",
                bits="bit_or(shiftleft(1L, position))",
                moving="sum(int(adding OR removing))",
                moving_log_dir="sum(int(future_log_dir IS NOT NULL))",
            )
        )
    )
    return by_broker.groupBy(*keys).agg(
        *_aggregates(
            replicas="sum(times)",
            leaders="sum(leaders)",
            times_on_one_broker="max(times)",
            first_position="min(first)",
            last_position="max(last)",
            positions="bit_or(bits)",
            moving="sum(moving)",
            moving_log_dir="sum(moving_log_dir)",
        )
    )


def _aggregates(**expressions: str) -> list[Any]:
    from pyspark.sql.functions import expr

    return [expr(expression).alias(name) for name, expression in expressions.items()]
