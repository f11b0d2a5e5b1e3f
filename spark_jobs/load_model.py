"""The load model of clusters: rates, p95 and growth of each partition, from daily rollups.

    python spark_jobs/load_model.py --warehouse URI --out URI [--cluster ID ...] [--days 7]
    spark-submit --py-files rehome.zip spark_jobs/load_model.py --warehouse URI --out URI

Writes one Parquet table for all clusters, in files by cluster (docs/load.md). A plan takes the same
numbers from the rollups by itself; this is for looking at them, and for other planners. Topics
are dealt out, and each lot of them is merged where it lies.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if __package__ in (None, "") and (Path(__file__).resolve().parent.parent / "include").is_dir():
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run by hand, no zip shipped
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "include"))

from rehome.errors import InvalidRequestError
from rehome.load_history.daily_rollups import last_days, merge_rollups
from rehome.load_history.load_profile import LOADS, loads_of
from rehome.load_history.rollup import Rollup
from rehome.places.path_parts import id_of
from rehome.warehouse import ROLLUP_FILE, Warehouse
from spark_jobs.session import spark_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

GROUPS_PER_TASK = 2
SQL_TYPES = {"string": "string", "int32": "int", "double": "double"}
_COLUMNS = ", ".join(f"{f.name} {SQL_TYPES[str(f.type)]}" for f in LOADS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit code."""
    options = _options(arguments)
    warehouse = Warehouse(options.warehouse)
    clusters = options.cluster or warehouse.clusters()
    try:
        with spark_session("rehome-load-model", python=True) as spark:
            model = loads(spark, warehouse, clusters, options.days)
            model.write.mode("overwrite").partitionBy("cluster").parquet(options.out)
    except InvalidRequestError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"The load of {len(clusters)} clusters: {options.out}")
    return 0


def loads(
    spark: SparkSession, warehouse: Warehouse, clusters: Sequence[str], days: int
) -> DataFrame:
    """The loads of these clusters' last days: ``LOADS`` of the load profile, and ``cluster``.

    :raises InvalidRequestError: when none of them has a rollup.
    """
    from pyspark.sql.functions import hash, lit, pmod

    paths = []
    for cluster_id in clusters:
        rollups = warehouse.rollups(cluster_id)
        paths += [
            f"{rollups.uri}/day={day}/{ROLLUP_FILE}" for day in last_days(rollups.days(), days)
        ]
    if not paths:
        raise InvalidRequestError([f"No rollups of {', '.join(clusters) or 'any cluster'}."])
    frame = spark.read.option("basePath", f"{warehouse.uri}/rollups").parquet(*paths)
    # Read as a date or a number where it could be one; it is a name.
    frame = frame.selectExpr("*", "string(cluster) AS of_cluster", "string(day) AS of_day")
    groups = GROUPS_PER_TASK * int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    return (
        frame.drop("cluster", "day")
        .groupBy("of_cluster", pmod(hash("topic"), lit(groups)))
        .applyInArrow(_loads_of_group, f"{_COLUMNS}, cluster string")
    )


def _loads_of_group(table: pa.Table) -> pa.Table:
    """The loads of some topics of one cluster, from their rows of several days."""
    import pyarrow as pa
    import pyarrow.compute as pc

    days = table.column("of_day")
    ordered = sorted(pc.unique(days).to_pylist())
    parts = (table.filter(pc.equal(days, day)) for day in ordered)
    group_loads = loads_of(merge_rollups(Rollup.from_table(part) for part in parts))
    name = pa.array([id_of(table.column("of_cluster")[0].as_py())] * len(group_loads), pa.string())
    return group_loads.append_column("cluster", name)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--warehouse", required=True, help="URI that every executor can reach")
    parser.add_argument("--out", required=True, help="URI of the table")
    parser.add_argument("--cluster", action="append", help="id; default: all there are")
    parser.add_argument("--days", type=int, default=7, help="back from each one's newest rollup")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
