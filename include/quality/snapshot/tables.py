"""The tables of a snapshot as the gate looks at them: with what each row has to agree with.

Brokers, log dirs and topics are few: what belongs beside them is counted here. Replicas are read
and counted by Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from include.cluster.snapshot.model import REPLICAS, Snapshot
from include.domain.kafka import BrokerId
from include.quality.engine.frames import frame_of, kept
from include.quality.engine.together import CLUSTER, stacked
from include.warehouse import replicas_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PARTITION = ("topic", "partition")
By = tuple[str, ...]
"""Columns that tell clusters apart; () = there is one."""
_PATHS = pa.list_(pa.string())

# A shift by a broker's id is one by its remainder of 64: as many bits as replicas are as many
# brokers, fewer may be. Of up to three brokers, the extremes and what is between them suffice.
_SURELY_DISTINCT = """
    bit_count(broker_bits) = replicas
    OR replicas = 2 AND lowest < highest
    OR replicas = 3 AND lowest < others AND others < highest
"""


@contextmanager
def snapshot_tables(
    spark: SparkSession,
    snapshot_uri: str,
    snapshot: Snapshot,
    now: datetime,
    levelled: Collection[BrokerId] | None = None,
) -> Iterator[dict[str, DataFrame]]:
    """The tables by name, valid inside the context. Spark reads replicas from ``snapshot_uri``.

    ``snapshot`` (one row), ``brokers``, ``log_dirs``, ``topics``, ``replicas`` and
    ``partitions``; the columns of docs/schema.md and those that the rules compare them with.

    :param levelled: brokers whose load, or that of their log dirs, is to be evened out; None = all.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    replicas = spark.read.schema(from_arrow_schema(REPLICAS)).parquet(replicas_uri(snapshot_uri))
    topics = frame_of(spark, snapshot.topics)
    with ExitStack() as held:
        counted = held.enter_context(kept(_counted(replicas)))
        yield {
            "snapshot": frame_of(spark, _header(snapshot, now)),
            "brokers": frame_of(spark, _brokers(snapshot, levelled)),
            "log_dirs": frame_of(spark, _among(snapshot.log_dirs, levelled)),
            "topics": held.enter_context(kept(_topics(topics, counted))),
            "replicas": _replicas(replicas, frame_of(spark, _beside(snapshot))),
            "partitions": held.enter_context(kept(_partitions(counted, replicas, topics))),
        }


@dataclass(frozen=True)
class Concerned:
    """A snapshot that is judged beside others.

    :param snapshot: with its replicas.
    :param levelled: see :func:`snapshot_tables`.
    """

    snapshot: Snapshot
    levelled: tuple[BrokerId, ...] | None = None


@contextmanager
def tables_of_many(
    spark: SparkSession, clusters: Mapping[str, Concerned], now: datetime
) -> Iterator[dict[str, DataFrame]]:
    """The tables of :func:`snapshot_tables` of many clusters, one below the other: each row has
    its cluster.
    """
    by = (CLUSTER,)

    def frame(part: Callable[[Concerned], pa.Table]) -> DataFrame:
        return frame_of(spark, stacked({name: part(one) for name, one in clusters.items()}))

    replicas = frame(lambda one: one.snapshot.replicas)
    topics = frame(lambda one: one.snapshot.topics)
    beside = frame(lambda one: _beside(one.snapshot))
    with ExitStack() as held:
        counted = held.enter_context(kept(_counted(replicas, by)))
        yield {
            "snapshot": frame(lambda one: _header(one.snapshot, now)),
            "brokers": frame(lambda one: _brokers(one.snapshot, one.levelled)),
            "log_dirs": frame(lambda one: _among(one.snapshot.log_dirs, one.levelled)),
            "topics": held.enter_context(kept(_topics(topics, counted, by))),
            "replicas": _replicas(replicas, beside, by),
            "partitions": held.enter_context(kept(_partitions(counted, replicas, topics, by))),
        }


def _header(snapshot: Snapshot, now: datetime) -> pa.Table:
    row = {
        "taken_at": snapshot.taken_at.isoformat(),
        "age_s": (now - snapshot.taken_at).total_seconds(),
        "live_brokers": sum(snapshot.brokers.column("live").to_pylist()),
    }
    return pa.Table.from_pylist([row])


def _brokers(snapshot: Snapshot, levelled: Collection[BrokerId] | None) -> pa.Table:
    table = snapshot.brokers
    told = Counter(snapshot.log_dirs.column("broker").to_pylist())
    with_rack = sum(row["live"] and bool(row["rack_path"]) for row in table.to_pylist())
    silent = [not (row["live"] and row["answered"]) for row in table.to_pylist()]
    counts = np.array([told[broker] for broker in table.column("broker").to_pylist()], np.int64)
    known = pa.array(counts, mask=np.array(silent, bool))  # null: it was not asked, or is silent
    return (
        _among(table, levelled)
        .append_column("known_log_dirs", known)
        .append_column("rack_levels", pc.list_value_length(table.column("rack_path")))
        .append_column("live_with_rack", pa.array([with_rack] * len(table), pa.int64()))
    )


def _among(table: pa.Table, levelled: Collection[BrokerId] | None) -> pa.Table:
    """The table, and of each row whether its broker is one of those."""
    brokers = table.column("broker").to_pylist()
    concerned = [levelled is None or broker in levelled for broker in brokers]
    return table.append_column("levelled", pa.array(concerned, pa.bool_()))


def _topics(topics: DataFrame, partitions: DataFrame, by: By = ()) -> DataFrame:
    seen = partitions.groupBy(*by, "topic").agg(
        *_aggregates(
            seen="count(*)", first_partition="min(partition)", last_partition="max(partition)"
        )
    )
    return topics.join(seen, [*by, "topic"], "left").selectExpr(
        "* EXCEPT (seen)", "coalesce(seen, 0) AS partitions_seen"
    )


def _beside(snapshot: Snapshot) -> pa.Table:
    """What each replica is compared with, by its broker."""
    alive = snapshot.brokers.group_by("broker").aggregate([("live", "any")])
    log_dirs: dict[BrokerId, list[str]] = {}
    for row in snapshot.log_dirs.select(["broker", "log_dir"]).to_pylist():
        log_dirs.setdefault(row["broker"], []).append(row["log_dir"])
    failed = snapshot.log_dirs.filter(snapshot.log_dirs["offline"])["broker"]
    ids = sorted({*alive["broker"].to_pylist(), *log_dirs})
    live = dict(zip(alive["broker"].to_pylist(), alive["live_any"].to_pylist(), strict=True))
    return pa.table(
        {
            "broker": pa.array(ids, pa.int32()),
            "known_alive": pa.array([live.get(broker) for broker in ids], pa.bool_()),
            "log_dirs": pa.array([log_dirs.get(broker, []) for broker in ids], _PATHS),
            "has_failed_dirs": pc.is_in(pa.array(ids, pa.int32()), failed.combine_chunks()),
        }
    )


def _replicas(replicas: DataFrame, beside: DataFrame, by: By = ()) -> DataFrame:
    """Each replica beside its broker.

    ``must_report``: whether the broker has to tell of it. Dead ones tell nothing, and live ones
    nothing of what is in a failed log dir. ``known_log_dir``: null where no log dir is known.
    """
    from pyspark.sql.functions import broadcast

    return replicas.join(broadcast(beside), [*by, "broker"], "left").selectExpr(
        "* EXCEPT (log_dirs, has_failed_dirs)",
        "if(log_dir IS NULL, NULL, coalesce(array_contains(log_dirs, log_dir), false)) "
        "AS known_log_dir",
        "coalesce(known_alive, true) AND NOT coalesce(has_failed_dirs, false) AS must_report",
    )


def _counted(replicas: DataFrame, by: By = ()) -> DataFrame:
    """One row per partition, with what a single grouping can find of it."""
    counted = replicas.groupBy(*by, *_PARTITION).agg(
        *_aggregates(
            replicas="count(*)",
            leaders="sum(int(is_leader))",
            leaders_in_sync="sum(int(is_leader AND in_isr))",
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


def _partitions(
    counted: DataFrame, replicas: DataFrame, topics: DataFrame, by: By = ()
) -> DataFrame:
    """One row per partition, how many of its replicas lie on one broker, and whether its topic is
    listed.

    Replicas are grouped by their brokers only where nothing cheaper shows that these are distinct:
    for all, it takes three times as long. Where there are none such, Spark does not read them.
    """
    from pyspark.sql.functions import broadcast

    key = [*by, *_PARTITION]
    unclear = counted.where("NOT surely_distinct").select(*key)
    times = (
        replicas.join(broadcast(unclear), key, "left_semi")
        .groupBy(*key, "broker")
        .agg(*_aggregates(times="count(*)"))
        .groupBy(*key)
        .agg(*_aggregates(times="max(times)"))
    )
    listed = topics.select(*by, "topic").distinct().selectExpr(*by, "topic", "true AS listed")
    beside = counted.join(broadcast(times), key, "left")
    return beside.join(broadcast(listed), [*by, "topic"], "left").selectExpr(
        "* EXCEPT (surely_distinct, times, listed)",
        "coalesce(times, 1) AS times_on_one_broker",
        "listed IS NOT NULL AS known_topic",
    )


def _aggregates(**expressions: str) -> list[Any]:
    from pyspark.sql.functions import expr

    return [expr(expression).alias(name) for name, expression in expressions.items()]
