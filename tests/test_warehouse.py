"""What is written to the warehouse comes back, and what was never finished is never read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rehome.cluster.snapshot.model import TABLES, Snapshot
from rehome.directory import ROWS_TOGETHER
from rehome.domain.actions import Action
from rehome.domain.plan.plan import Plan
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import ReassignmentRequest
from rehome.errors import RehomeError
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.warehouse import (
    OF_ONE_PLAN,
    PlanExistsError,
    Warehouse,
    read_snapshot,
    replicas_in,
)
from tests.quality.snapshots import TAKEN_AT, Rows
from tests.session.open_to_others import open_to_others
from tests.session.s3_server import S3

DRAIN = ReassignmentRequest(Action.DRAIN, brokers=(4,))


@pytest.fixture(params=["file", "memory", "s3"])
def warehouse(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Warehouse]:
    """On a disk, and on stores that have no directories and no renaming."""
    if request.param == "s3":
        server: S3 = request.getfixturevalue("s3")
        with server.logged_in():
            yield Warehouse(server.new_warehouse() + "/")
    else:
        uri = tmp_path.as_uri() if request.param == "file" else f"memory://{tmp_path.name}"
        yield Warehouse(uri + "/")


def snapshot(hours: int = 0) -> Snapshot:
    return replace(Rows().snapshot(), taken_at=TAKEN_AT + timedelta(hours=hours))


def a_plan() -> Plan:
    return make_plan(snapshot(), DRAIN, PlanOptions(plan_id="p", rate_bytes_per_s=1_000_000))


@pytest.mark.slow
def test_a_snapshot_comes_back_as_it_was(warehouse: Warehouse) -> None:
    written = replace(snapshot(), hidden_topics=("salaries",))
    uri = warehouse.write_snapshot(written)
    assert uri.endswith("/snapshots/cluster=test/taken_at=20260102T030405.000000Z")
    read = read_snapshot(uri)
    assert read == written
    assert all(getattr(read, name).equals(getattr(written, name)) for name in TABLES)


@pytest.mark.slow
def test_many_rows_are_written_so_that_several_tasks_can_read_them(tmp_path: Path) -> None:
    rows = ROWS_TOGETHER + 1
    table = pa.table({"number": np.arange(rows)})
    directory = Warehouse(tmp_path.as_uri())
    directory.write_table("numbers.parquet", table)
    assert pq.read_metadata(tmp_path / "numbers.parquet").num_row_groups == 2
    assert directory.read_table("numbers.parquet").equals(table)


def test_a_table_without_a_column_that_is_asked_for_is_damaged(warehouse: Warehouse) -> None:
    warehouse.write_table("t.parquet", pa.table({"there": [1]}))
    assert warehouse.read_table("t.parquet", ["there"]).num_rows == 1
    with pytest.raises(RehomeError, match=r"t\.parquet cannot be read: it has no column other"):
        warehouse.read_table("t.parquet", ["there", "other"])


@pytest.mark.slow
def test_the_newest_snapshot_of_a_cluster_is_found(warehouse: Warehouse) -> None:
    assert warehouse.latest_snapshot("test") is None
    newest = [warehouse.write_snapshot(snapshot(hours)) for hours in (1, 3, 2)][1]
    warehouse.write_snapshot(replace(snapshot(9), cluster_id="another"))
    assert warehouse.latest_snapshot("test") == newest
    assert read_snapshot(newest).taken_at == TAKEN_AT + timedelta(hours=3)


@pytest.mark.slow
def test_a_snapshot_that_was_never_finished_is_not_read(warehouse: Warehouse) -> None:
    finished = warehouse.write_snapshot(snapshot())
    half = warehouse.write_snapshot(snapshot(1))
    Warehouse(half).remove("snapshot.json")
    assert warehouse.latest_snapshot("test") == finished
    with pytest.raises(RehomeError, match=r"snapshot\.json does not exist"):
        read_snapshot(half)


@pytest.mark.slow
def test_the_tables_are_written_before_what_finishes_a_snapshot(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("rehome.directory.pq.write_table", fail)
    with pytest.raises(OSError, match="disk full"):
        warehouse.write_snapshot(snapshot())
    assert warehouse.latest_snapshot("test") is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda there: there.remove("replicas.parquet"), r"replicas\.parquet does not exist"),
        (lambda there: there.write_text("replicas.parquet", "?"), "cannot be read"),
    ],
    ids=["gone", "damaged"],
)
@pytest.mark.parametrize("read", [read_snapshot, replicas_in])
def test_a_damaged_snapshot_is_an_error_that_names_the_file(
    warehouse: Warehouse,
    read: Callable[[str], object],
    spoil: Callable[[Warehouse], object],
    message: str,
) -> None:
    uri = warehouse.write_snapshot(snapshot())
    spoil(Warehouse(uri))
    with pytest.raises(RehomeError, match=message):
        read(uri)


@pytest.mark.slow
def test_replicas_are_counted_in_one_file_and_in_many(warehouse: Warehouse) -> None:
    uri, replicas = warehouse.write_snapshot(snapshot()), snapshot().replicas
    assert replicas_in(uri) == len(replicas)
    Warehouse(uri).remove("replicas.parquet")
    written_by_spark = Warehouse(f"{uri}/replicas.parquet")
    written_by_spark.write_text("_SUCCESS", "")
    for part in range(2):
        written_by_spark.write_table(f"part-{part}.parquet", replicas)
    assert replicas_in(uri) == len(read_snapshot(uri).replicas) == 2 * len(replicas)


@pytest.mark.slow
def test_a_plan_comes_back_as_it_was(warehouse: Warehouse) -> None:
    plan, directory = a_plan(), warehouse.plan("p")
    assert plan.moves
    directory.save(plan, DRAIN)
    assert warehouse.plan("p").load() == plan
    assert parse_request(directory.read_json("request.json")) == DRAIN


@pytest.mark.slow
def test_reading_a_plan_does_not_load_pandas(tmp_path: Path) -> None:
    """Each task and callback of a run does it in a process of its own."""
    plan = Warehouse(tmp_path.as_uri()).plan("p")
    plan.save(a_plan(), DRAIN)
    code = (
        "import sys; from rehome.warehouse import PlanDirectory; "
        f"print(len(PlanDirectory({plan.uri!r}).load().moves), 'pandas' in sys.modules)"
    )
    read = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )
    assert read.stdout.split() == [str(len(a_plan().moves)), "False"]


@pytest.mark.slow
def test_a_finished_plan_is_never_replaced(warehouse: Warehouse) -> None:
    directory = warehouse.plan("p")
    directory.save(a_plan(), DRAIN)
    with pytest.raises(PlanExistsError, match="never replaced"):
        directory.save(a_plan(), DRAIN)


def test_a_plan_that_is_not_there_is_an_error_that_says_so(warehouse: Warehouse) -> None:
    with pytest.raises(RehomeError, match="does not exist"):
        warehouse.plan("other").load()


@pytest.mark.slow
def test_a_folder_that_is_written_again_keeps_nothing_of_before(warehouse: Warehouse) -> None:
    """As of a dry run that exports fewer batches than the last one."""
    directory = warehouse.plan("p1")
    directory.replace_folder(
        "export", {"reassignment-0001.json": "a", "reassignment-0002.json": "b"}
    )
    directory.replace_folder("export", {"reassignment-0001.json": "c"})
    folder = directory.folder("export")
    assert folder.read_text("reassignment-0001.json") == "c"
    assert not folder.exists("reassignment-0002.json")


@pytest.mark.slow
def test_discarding_a_plan_leaves_the_request_alone(warehouse: Warehouse) -> None:
    directory = warehouse.plan("p")
    directory.save(a_plan(), DRAIN)
    for name in OF_ONE_PLAN:
        if not directory.exists(name):
            directory.write_text(name, "of an earlier run")
    directory.discard()
    assert not [name for name in OF_ONE_PLAN if directory.exists(name)]
    assert directory.exists("request.json")


def test_writing_again_replaces_the_file(warehouse: Warehouse) -> None:
    warehouse.write_json("note.json", [1])
    warehouse.write_json("note.json", [2])
    assert warehouse.read_json("note.json") == [2]


def test_a_warehouse_on_a_disk_is_closed_to_other_users(tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    warehouse = Warehouse(root.as_uri())
    warehouse.close_to_others(0o750)
    warehouse.write_snapshot(snapshot())
    assert list(open_to_others(root)) == []
    root.chmod(0o755)
    assert len(list(open_to_others(root))) > len(TABLES)
    warehouse.close_to_others(0o755)
    assert len(list(open_to_others(root))) > len(TABLES)
    warehouse.close_to_others(0o750)
    assert list(open_to_others(root)) == []


def test_a_warehouse_elsewhere_has_no_mode() -> None:
    Warehouse("memory://elsewhere").close_to_others(0o750)


def test_a_folder_that_cannot_be_made_is_left_to_who_writes_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    Warehouse((tmp_path / "file" / "warehouse").as_uri()).close_to_others(0o750)


@pytest.mark.slow
def test_a_plan_that_names_no_snapshot_keeps_none(warehouse: Warehouse) -> None:
    uri = warehouse.write_snapshot(snapshot())
    named = {"good": uri.split("/snapshots/")[1], "empty": "", "hostile": "../../elsewhere"}
    for plan_id, name in named.items():
        warehouse.plan(plan_id).write_json("summary.json", {"snapshot": name})
    assert warehouse.planned_snapshots() == {uri}
