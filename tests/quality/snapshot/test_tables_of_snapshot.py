"""What the gate on a snapshot counts of its replicas, against counting by hand."""

from __future__ import annotations

from collections import Counter
from itertools import chain, combinations_with_replacement
from pathlib import Path
from typing import TYPE_CHECKING

from rehome.quality.snapshot.tables import snapshot_tables
from rehome.warehouse import Warehouse
from tests.quality.snapshots import TAKEN_AT, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPRESSED = "spark.sql.inMemoryColumnarStorage.compressed"
BROKERS = (1, 2, 3, 65, 129)
"""Three of these have the same remainder of 64."""


def test_replicas_on_one_broker_are_counted_however_many_there_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Every choice of up to five brokers, with repetition, is a partition of its own."""
    chosen = list(chain(*(combinations_with_replacement(BROKERS, n) for n in range(1, 6))))
    rows = Rows()
    like = rows.replicas[0]
    rows.replicas = [
        like | {"partition": number, "position": position, "broker": broker}
        for number, brokers in enumerate(chosen)
        for position, broker in enumerate(brokers)
    ]
    snapshot = rows.snapshot()
    uri = Warehouse(tmp_path.as_uri()).write_snapshot(snapshot)
    before = spark.conf.get(COMPRESSED)
    with snapshot_tables(spark, uri, snapshot, TAKEN_AT) as tables:
        found = {row.partition: row for row in tables["partitions"].collect()}
    assert {number: row.times_on_one_broker for number, row in found.items()} == {
        number: max(Counter(brokers).values()) for number, brokers in enumerate(chosen)
    }
    assert {number: row.replicas for number, row in found.items()} == {
        number: len(brokers) for number, brokers in enumerate(chosen)
    }
    assert spark.conf.get(COMPRESSED) == before
