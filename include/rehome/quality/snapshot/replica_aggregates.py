"""Aggregates of a snapshot's replicas, in a single Spark grouping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rehome.quality.engine.frames import frame_of, keep, one_job_each

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITION = ("topic", "partition")
ClusterColumns = tuple[str, ...]
"""Columns that identify the cluster; () = a single cluster."""
# A shift by a broker's id is one by its remainder of 64: as many bits as replicas are as many
# brokers, fewer may be. Of up to three brokers, the extremes and what is between them suffice.
_SURELY_DISTINCT = """
    bit_count(broker_bits) = replicas
    OR replicas = 2 AND lowest < highest
    OR replicas = 3 AND lowest < others AND others < highest
"""


@dataclass(frozen=True)
class Counted:
    """The aggregates.

    :param topics: each topic with the number of its partitions in the snapshot, and the first and
        last of them.
    :param partitions: each partition with its replicas, the most of them on any one broker, and
        whether its topic is listed.
    """

    topics: pa.Table
    partitions: DataFrame


@contextmanager
def counted_in(
    spark: SparkSession, replicas: DataFrame, topics: pa.Table, by: ClusterColumns = ()
) -> Iterator[Counted]:
    """Compute the aggregates in one grouping, which is cached inside the context.

    Replicas are grouped by broker only for partitions where cheaper aggregates do not prove that
    brokers are distinct: for all partitions, it takes three times as long.
    """
    with ExitStack() as held:
        held.enter_context(one_job_each(spark))
        grouped = held.enter_context(
            keep(_by_partition(replicas, _listed_topics(spark, topics, by), by))
        )
        seen = grouped.groupBy(*by, "topic").agg(
            *_aggregates(
                seen="count(*)",
                first="min(partition)",
                last="max(partition)",
                unclear="sum(int(NOT surely_distinct))",
            )
        )
        rows = seen.toArrow().to_pylist()
        partitions, times = grouped, "1L"
        if any(row["unclear"] for row in rows):
            partitions = held.enter_context(keep(_with_times(grouped, replicas, by)))
            times = "coalesce(times, 1)"
        columns = [name for name in grouped.columns if name != "surely_distinct"]
        yield Counted(
            _with_seen(topics, rows, [*by, "topic"]),
            partitions.selectExpr(*columns, f"{times} AS times_on_one_broker"),
        )


def _listed_topics(spark: SparkSession, topics: pa.Table, by: ClusterColumns) -> DataFrame:
    names = [*by, "topic"]
    listed = frame_of(spark, topics.group_by(names).aggregate([]))
    return listed.selectExpr(*names, "true AS listed")


def _with_seen(topics: pa.Table, seen: Sequence[Mapping[str, Any]], key: Sequence[str]) -> pa.Table:
    by_topic = {tuple(row[name] for name in key): row for row in seen}
    keys = zip(*(topics.column(name).to_pylist() for name in key), strict=True)
    rows = [by_topic.get(each, {}) for each in keys]
    counts = [row.get("seen", 0) for row in rows]
    first, last = ([row.get(name) for row in rows] for name in ("first", "last"))
    return (
        topics.append_column("partitions_seen", pa.array(counts, pa.int64()))
        .append_column("first_partition", pa.array(first, pa.int32()))
        .append_column("last_partition", pa.array(last, pa.int32()))
    )


def _by_partition(replicas: DataFrame, listed: DataFrame, by: ClusterColumns) -> DataFrame:
    """One row per partition, with the aggregates of a single grouping."""
    from pyspark.sql.functions import broadcast

    grouped = replicas.groupBy(*by, *_PARTITION).agg(
        *_aggregates(
            replicas="count(*)",
            leaders="sum(int(is_leader))",
            leaders_out_of_sync="sum(int(is_leader AND NOT in_isr))",
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
    return grouped.join(broadcast(listed), [*by, "topic"], "left").selectExpr(
        "* EXCEPT (broker_bits, lowest, highest, others, listed)",
        f"{_SURELY_DISTINCT} AS surely_distinct",
        "listed IS NOT NULL AS known_topic",
    )


def _with_times(grouped: DataFrame, replicas: DataFrame, by: ClusterColumns) -> DataFrame:
    """Adds ``times``: the most replicas on any one broker, for partitions whose brokers may not be
    distinct.
    """
    from pyspark.sql.functions import broadcast

    key = [*by, *_PARTITION]
    unclear = grouped.where("NOT surely_distinct").select(*key)
    times = (
        replicas.join(broadcast(unclear), key, "left_semi")
        .groupBy(*key, "broker")
        .agg(*_aggregates(times="count(*)"))
        .groupBy(*key)
        .agg(*_aggregates(times="max(times)"))
    )
    return grouped.join(broadcast(times), key, "left")


def _aggregates(**expressions: str) -> list[Any]:
    from pyspark.sql.functions import expr

    return [expr(expression).alias(name) for name, expression in expressions.items()]
