"""The jobs that roll up and model load in Spark say what the same functions say without it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rehome.load_history.daily_rollups import merge_rollups, window
from rehome.load_history.load_profile import LOADS, loads_of
from rehome.load_history.rollup import Rollup
from rehome.warehouse import Warehouse
from spark_jobs import load_model, rollup
from tests.load_history.recorded import START, Cluster
from tests.quality.snapshots import Rows

SNAPSHOTS = 9  # from 22:00 to 0:40


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Two clusters over two days, with nothing rolled up."""
    cluster = Cluster(tmp_path.as_uri())
    for number in range(SNAPSHOTS):
        cluster.snapshot(20 * number)
        taken_at = START + timedelta(minutes=25 * number)
        other = replace(Rows().snapshot(), cluster_id="other", taken_at=taken_at)
        cluster.warehouse.write_snapshot(other)
    return cluster.warehouse


def rollups_of(warehouse: Warehouse) -> dict[tuple[str, str], pa.Table]:
    return {
        (cluster_id, day): warehouse.rollups(cluster_id).read(day)
        for cluster_id in ("test", "other")
        for day in warehouse.rollups(cluster_id).days()
    }


@pytest.mark.usefixtures("spark")
def test_days_and_clusters_are_rolled_up_side_by_side_and_then_modelled(
    warehouse: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rollup.main(["--warehouse", warehouse.uri]) == 0
    by_spark = rollups_of(warehouse)
    assert len(by_spark) == 4
    assert "test 2026-01-06: 3 snapshots, 0 gaps" in capsys.readouterr().out
    for cluster_id, day in by_spark:
        warehouse.rollups(cluster_id).discard(day)
    Cluster(warehouse.uri).roll_up()
    here = rollups_of(warehouse)
    assert len(here) == 2
    assert all(here[key].equals(by_spark[key], check_metadata=True) for key in here)

    out = (tmp_path / "loads").as_uri()
    assert load_model.main(["--warehouse", warehouse.uri, "--cluster", "test", "--out", out]) == 0
    table = pq.read_table(tmp_path / "loads", partitioning="hive").select(LOADS.names)
    order = [("topic", "ascending"), ("partition", "ascending")]
    wanted = loads_of(window(warehouse, "test", 7))
    assert table.cast(wanted.schema).sort_by(order).to_pylist() == wanted.to_pylist()


@pytest.mark.usefixtures("spark")
def test_the_jobs_say_when_there_is_nothing_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = tmp_path.as_uri()
    assert rollup.main(["--warehouse", uri]) == 0
    assert "Every snapshot is rolled up." in capsys.readouterr().out
    assert load_model.main(["--warehouse", uri, "--out", f"{uri}/loads"]) == 2
    assert "No rollups of any cluster." in capsys.readouterr().err


def test_the_rows_of_some_topics_merge_as_they_do_among_all(warehouse: Warehouse) -> None:
    Cluster(warehouse.uri).roll_up()
    days = [warehouse.rollups("test").read(day) for day in warehouse.rollups("test").days()]
    half = [table.slice(0, 6) for table in days]
    some = loads_of(merge_rollups(map(Rollup.from_table, half)))
    assert some.equals(loads_of(merge_rollups(map(Rollup.from_table, days))).slice(0, 6))
