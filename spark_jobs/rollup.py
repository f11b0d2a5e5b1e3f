"""Roll up all snapshots of a warehouse that are not yet, many days and clusters at once.

    python spark_jobs/rollup.py --warehouse URI [--cluster ID ...]
    spark-submit --py-files rehome.zip spark_jobs/rollup.py --warehouse URI

`collect_snapshots` does the same for the snapshot that it has just taken. This is for history that
comes in bulk: after a time without rollups, or from elsewhere. A task is one day of one cluster;
snapshots are read where the task runs, and nothing is shuffled.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if __package__ in (None, "") and (Path(__file__).resolve().parent.parent / "include").is_dir():
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run by hand, no zip shipped
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "include"))

from rehome.load_history.daily_rollups import PendingDay, SnapshotPace, pending_days, roll_up
from rehome.warehouse import Warehouse
from spark_jobs.session import spark_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

DONE = "cluster_id string, day string, snapshots long, gaps long"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    options = _options(arguments)
    warehouse = Warehouse(options.warehouse)
    pending = [
        day
        for cluster_id in options.cluster or warehouse.clusters()
        for day in pending_days(warehouse, cluster_id)
    ]
    if not pending:
        print("Every snapshot is rolled up.")
        return 0
    with spark_session("rehome-rollup", python=True) as spark:
        for cluster_id, day, snapshots, gaps in roll_up_all(
            spark, pending, SnapshotPace(longest_s=options.max_snapshot_gap_s)
        ):
            print(f"{cluster_id} {day}: {snapshots} snapshots, {gaps} gaps")
    return 0


def roll_up_all(
    spark: SparkSession, pending: Sequence[PendingDay], pace: SnapshotPace
) -> list[tuple[str, str, int, int]]:
    """Cluster, day, snapshots and gaps of each day; one task each, the longest first."""
    ordered = sorted(pending, key=lambda day: (-len(day.snapshots), day.cluster_id, day.day))
    rows = [(number,) for number in range(len(ordered))]
    frame = spark.createDataFrame(rows, "number long").repartitionByRange(len(rows), "number")

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        for batch in batches:
            for number in batch.column("number").to_pylist():
                day = ordered[number]
                span = roll_up(day, pace)
                row = {
                    "cluster_id": day.cluster_id,
                    "day": day.day,
                    "snapshots": span.snapshots,
                    "gaps": len(span.gaps),
                }
                yield pyarrow.RecordBatch.from_pylist([row])

    day_rows = frame.mapInArrow(work, DONE).collect()
    return sorted((row.cluster_id, row.day, row.snapshots, row.gaps) for row in day_rows)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--warehouse", required=True, help="URI that every executor can reach")
    parser.add_argument("--cluster", action="append", help="id; default: all there are")
    parser.add_argument("--max-snapshot-gap-s", type=float, default=1800.0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
