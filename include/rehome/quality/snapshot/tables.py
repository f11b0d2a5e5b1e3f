"""The tables that the rules on a snapshot are checked on: the snapshot's rows plus the facts that
each row must agree with.

Brokers, log dirs and topics are few, so their facts are added here. Replicas are read and
aggregated by Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rehome.cluster.snapshot.model import REPLICAS, Snapshot
from rehome.domain.actions import Action
from rehome.domain.kafka import BrokerId
from rehome.domain.request.request import ReassignmentRequest
from rehome.quality.engine.frames import frame_of, keep, one_job_each
from rehome.quality.engine.many_clusters import CLUSTER, stack_tables
from rehome.warehouse import replicas_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_PATHS = pa.list_(pa.string())

_PARTITION = ("topic", "partition")
_ClusterColumns = tuple[str, ...]
"""Columns that identify the cluster; () = a single cluster."""
# A shift by a broker's id is one by its remainder of 64: as many bits as replicas are as many
# brokers, fewer may be. Of up to three brokers, the extremes and what is between them suffice.
_SURELY_DISTINCT = """
    bit_count(broker_bits) = replicas
    OR replicas = 2 AND lowest < highest
    OR replicas = 3 AND lowest < others AND others < highest
"""


@dataclass(frozen=True)
class Concerned:
    """Brokers of which more is asked, or less, than of others.

    :param balanced: whose load, or that of their log dirs, the plan will balance; None = all.
    """

    balanced: tuple[BrokerId, ...] | None = None

    @classmethod
    def by(cls, request: ReassignmentRequest) -> Concerned:
        """Those of a request. It balances load, or that of log dirs, by three actions only."""
        balances = request.action in (Action.REBALANCE, Action.EXPAND, Action.MOVE_LOG_DIRS)
        return cls(request.brokers or None if balances else ())


@contextmanager
def snapshot_tables(
    spark: SparkSession,
    snapshot_uri: str,
    snapshot: Snapshot,
    now: datetime,
    concerned: Concerned = Concerned(),
) -> Iterator[dict[str, DataFrame]]:
    """The tables by name, valid inside the context. Spark reads replicas from ``snapshot_uri``.

    ``snapshot`` (one row), ``brokers``, ``log_dirs``, ``topics``, ``replicas`` and
    ``partitions``; the columns of docs/schema.md and those that the rules compare them with.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    replicas = spark.read.schema(from_arrow_schema(REPLICAS)).parquet(replicas_uri(snapshot_uri))
    with _counted_in(spark, replicas, with_times_listed(snapshot.topics, "topic")) as counted:
        small = small_tables(snapshot, now, concerned)
        yield {
            **{name: frame_of(spark, table) for name, table in small.items()},
            "topics": frame_of(spark, counted.topics),
            "replicas": _replicas(replicas, frame_of(spark, beside_replicas(snapshot))),
            "partitions": counted.partitions,
        }


def small_tables(snapshot: Snapshot, now: datetime, concerned: Concerned) -> dict[str, pa.Table]:
    """Those that need no replicas: ``snapshot``, ``brokers`` and ``log_dirs``."""
    return {
        "snapshot": _header(snapshot, now),
        "brokers": _brokers(snapshot, concerned),
        "log_dirs": _log_dirs(snapshot, concerned.balanced),
    }


@dataclass(frozen=True)
class GatedSnapshot:
    """A snapshot that is checked together with others.

    :param snapshot: with its replicas.
    """

    snapshot: Snapshot
    concerned: Concerned = Concerned()


@contextmanager
def tables_of_many(
    spark: SparkSession, clusters: Mapping[str, GatedSnapshot], now: datetime
) -> Iterator[dict[str, DataFrame]]:
    """The tables of :func:`snapshot_tables` of many clusters, concatenated; a column names the
    cluster.
    """
    by = (CLUSTER,)

    def table(part: Callable[[GatedSnapshot], pa.Table]) -> pa.Table:
        return stack_tables({name: part(one) for name, one in clusters.items()})

    def frame(part: Callable[[GatedSnapshot], pa.Table]) -> DataFrame:
        return frame_of(spark, table(part))

    replicas = frame(lambda one: one.snapshot.replicas)
    topics = table(lambda one: with_times_listed(one.snapshot.topics, "topic"))
    beside = frame(lambda one: beside_replicas(one.snapshot))
    with _counted_in(spark, replicas, topics, by) as counted:
        yield {
            "snapshot": frame(lambda one: _header(one.snapshot, now)),
            "brokers": frame(lambda one: _brokers(one.snapshot, one.concerned)),
            "log_dirs": frame(lambda one: _log_dirs(one.snapshot, one.concerned.balanced)),
            "topics": frame_of(spark, counted.topics),
            "replicas": _replicas(replicas, beside, by),
            "partitions": counted.partitions,
        }


def _header(snapshot: Snapshot, now: datetime) -> pa.Table:
    row = {
        "taken_at": snapshot.taken_at.isoformat(),
        "age_s": (now - snapshot.taken_at).total_seconds(),
        "live_brokers": sum(snapshot.brokers.column("live").to_pylist()),
    }
    return pa.Table.from_pylist([row])


def _brokers(snapshot: Snapshot, concerned: Concerned) -> pa.Table:
    """One row per broker. Null where a rule does not apply: ``live_if_balanced``,
    ``answered_if_live``; ``known_log_dirs`` of brokers without an answer.
    """
    table = with_times_listed(snapshot.brokers, "broker")
    live, answered = table.column("live"), table.column("answered")
    dirs_of = Counter(snapshot.log_dirs.column("broker").to_pylist())
    dir_counts = pa.array(
        [dirs_of[broker] for broker in table.column("broker").to_pylist()], pa.int64()
    )
    return (
        table.append_column("live_if_balanced", _where(_among(table, concerned.balanced), live))
        .append_column("answered_if_live", _where(live, answered))
        .append_column("known_log_dirs", _where(pc.and_(live, answered), dir_counts))
    )


def _log_dirs(snapshot: Snapshot, balanced: Collection[BrokerId] | None) -> pa.Table:
    """One row per log dir. ``offline_if_balanced``, ``strays_if_balanced``: null for brokers that
    the plan does not balance.
    """
    table = with_times_listed(snapshot.log_dirs, "broker", "log_dir")
    among = _among(table, balanced)
    used = pc.subtract(table.column("total_bytes"), table.column("usable_bytes"))
    return (
        table.append_column("offline_if_balanced", _where(among, table.column("offline")))
        .append_column("strays_if_balanced", _where(among, table.column("stray_replicas")))
        .append_column("used_bytes", used)
    )


def with_times_listed(table: pa.Table, *key: str) -> pa.Table:
    """With ``times_listed``: how many rows have the same key. Spark would have to sort for that,
    and these tables are small.
    """
    keys = list(zip(*(table.column(name).to_pylist() for name in key), strict=True))
    times = Counter(keys)
    return table.append_column("times_listed", pa.array([times[each] for each in keys], pa.int64()))


def _among(table: pa.Table, balanced: Collection[BrokerId] | None) -> pa.Array:
    """Per row, whether its broker is one of ``balanced``."""
    brokers = table.column("broker").to_pylist()
    return pa.array([balanced is None or broker in balanced for broker in brokers], pa.bool_())


def _where(condition: Any, values: Any) -> Any:
    """The values; null where the condition does not hold."""
    return pc.if_else(condition, values, pa.scalar(None, values.type))


def beside_replicas(snapshot: Snapshot) -> pa.Table:
    """Facts about each broker that its replicas are compared with: ``broker``, ``known_alive``,
    ``log_dirs`` and ``has_failed_dirs``.
    """
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


def _replicas(replicas: DataFrame, beside: DataFrame, by: _ClusterColumns = ()) -> DataFrame:
    """One row per replica, with the facts about its broker.

    ``due_…``: null if the broker should have reported the value and did not. Dead brokers report
    nothing, and live ones nothing about a failed log dir. ``known_log_dir``: null if no log dir is
    known.
    """
    from pyspark.sql.functions import broadcast

    excused = "NOT coalesce(known_alive, true) OR coalesce(has_failed_dirs, false)"
    return replicas.join(broadcast(beside), [*by, "broker"], "left").selectExpr(
        "* EXCEPT (log_dirs, has_failed_dirs)",
        "if(log_dir IS NULL, NULL, coalesce(array_contains(log_dirs, log_dir), false)) "
        "AS known_log_dir",
        f"if({excused}, coalesce(log_dir, ''), log_dir) AS due_log_dir",
        f"if({excused}, coalesce(size_bytes, 0), size_bytes) AS due_size_bytes",
        f"if({excused}, coalesce(log_end_offset, 0), log_end_offset) AS due_log_end_offset",
    )


@dataclass(frozen=True)
class _Counted:
    """The aggregates.

    :param topics: each topic with the number of its partitions in the snapshot, and the first and
        last of them.
    :param partitions: each partition with its replicas, the most of them on any one broker, and
        whether its topic is listed.
    """

    topics: pa.Table
    partitions: DataFrame


@contextmanager
def _counted_in(
    spark: SparkSession, replicas: DataFrame, topics: pa.Table, by: _ClusterColumns = ()
) -> Iterator[_Counted]:
    """Compute the aggregates in one grouping, which is cached inside the context.

    Replicas are grouped by broker only for partitions where cheaper aggregates do not prove that
    brokers are distinct: for all partitions, it takes three times as long.
    """
    with ExitStack() as stack:
        stack.enter_context(one_job_each(spark))
        grouped = stack.enter_context(
            keep(_by_partition(replicas, _listed_topics(spark, topics, by), by))
        )
        counts = grouped.groupBy(*by, "topic").agg(
            *_aggregates(
                seen="count(*)",
                first="min(partition)",
                last="max(partition)",
                unclear="sum(int(NOT surely_distinct))",
            )
        )
        rows = counts.toArrow().to_pylist()
        partitions, times = grouped, "1L"
        if any(row["unclear"] for row in rows):
            partitions = stack.enter_context(keep(_with_times(grouped, replicas, by)))
            times = "coalesce(times, 1)"
        columns = [name for name in grouped.columns if name != "surely_distinct"]
        yield _Counted(
            _with_seen(topics, rows, [*by, "topic"]),
            partitions.selectExpr(*columns, f"{times} AS times_on_one_broker"),
        )


def _listed_topics(spark: SparkSession, topics: pa.Table, by: _ClusterColumns) -> DataFrame:
    names = [*by, "topic"]
    listed = frame_of(spark, topics.group_by(names).aggregate([]))
    return listed.selectExpr(*names, "true AS listed")


def _with_seen(
    topics: pa.Table, topic_rows: Sequence[Mapping[str, Any]], key: Sequence[str]
) -> pa.Table:
    by_topic = {tuple(row[name] for name in key): row for row in topic_rows}
    keys = zip(*(topics.column(name).to_pylist() for name in key), strict=True)
    rows = [by_topic.get(each, {}) for each in keys]
    counts = [row.get("seen", 0) for row in rows]
    first, last = ([row.get(name) for row in rows] for name in ("first", "last"))
    return (
        topics.append_column("partitions_seen", pa.array(counts, pa.int64()))
        .append_column("first_partition", pa.array(first, pa.int32()))
        .append_column("last_partition", pa.array(last, pa.int32()))
    )


def _by_partition(replicas: DataFrame, listed: DataFrame, by: _ClusterColumns) -> DataFrame:
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


def _with_times(grouped: DataFrame, replicas: DataFrame, by: _ClusterColumns) -> DataFrame:
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
