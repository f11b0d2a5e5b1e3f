"""When a plan that was refused is made again; and what two snapshots have to share to be alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from include.cluster.snapshot.layout_digest import layout_digest
from include.watching.refusal import Refusal, RefusedBy, RefusedRun
from tests.quality.snapshots import Rows

ENDED = datetime(2030, 1, 2, tzinfo=UTC)


def refused(by: RefusedBy = RefusedBy.GATE, in_a_row: int = 1) -> RefusedRun:
    return RefusedRun(Refusal(by, ("because",), "layout", "settings"), ENDED, in_a_row)


@pytest.mark.parametrize(
    ("in_a_row", "minutes"), [(1, 30), (2, 60), (5, 480), (7, 1440), (99, 1440)]
)
def test_each_refusal_in_a_row_doubles_the_wait_up_to_a_day(in_a_row: int, minutes: int) -> None:
    found = refused(in_a_row=in_a_row)
    assert found.again_at == ENDED + timedelta(minutes=minutes)
    before, after = found.again_at - timedelta(seconds=1), found.again_at
    assert found.holds("another", "settings", before)
    assert not found.holds("another", "settings", after)
    assert not found.holds("another", "others", before), "the settings have changed"


@pytest.mark.parametrize("by", RefusedBy)
def test_what_goes_by_the_snapshot_alone_waits_for_another_one(by: RefusedBy) -> None:
    found, later = refused(by), ENDED + timedelta(days=9)
    assert found.holds("layout", "settings", later) is (by in {RefusedBy.PLANNER, RefusedBy.GATE})
    assert found.until_changed is found.holds("layout", "settings", later)


@pytest.mark.parametrize("by", RefusedBy)
def test_what_the_next_snapshot_may_change_waits_for_its_time_alone(by: RefusedBy) -> None:
    found = RefusedRun(Refusal(by, ("too old",), "", "settings"), ENDED, 1)
    assert found.holds("", "settings", found.again_at - timedelta(seconds=1))
    assert not found.holds("", "settings", found.again_at)
    assert not found.until_changed


def test_a_refusal_is_kept_as_json() -> None:
    found = refused().refusal
    assert Refusal.from_json(found.to_json()) == found


def _digest(change: Callable[[Rows], object] = lambda _: None) -> str:
    rows = Rows()
    change(rows)
    return layout_digest(rows.snapshot())


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.replicas[0].update(in_isr=False),
        lambda rows: rows.brokers[0].update(live=False),
        lambda rows: rows.brokers[0].update(rack="/elsewhere"),
        lambda rows: rows.log_dirs[0].update(cordoned=True),
        lambda rows: rows.log_dirs[0].update(usable_bytes=300_000),
        lambda rows: [row.update(size_bytes=row["size_bytes"] * 2) for row in rows.replicas],
        lambda rows: rows.topics[0].update(min_insync_replicas=2),
    ],
)
def test_what_plans_go_by_makes_another_snapshot(change: Callable[[Rows], object]) -> None:
    assert _digest(change) != _digest()


def test_a_little_growth_does_not() -> None:
    def grown(rows: Rows) -> None:
        for row in rows.replicas:
            row.update(size_bytes=row["size_bytes"] + 1, log_end_offset=99)
        for row in rows.log_dirs:
            row.update(usable_bytes=row["usable_bytes"] - 1000)

    assert _digest(grown) == _digest()


def _recut(table: pa.Table) -> pa.Table:
    """The same rows: in two chunks, one cut out of more, the other with encoded texts."""
    encoded = [
        column.dictionary_encode() if pa.types.is_string(column.type) else column
        for column in table.columns
    ]
    half = table.num_rows // 2
    again = pa.table(encoded, names=table.column_names).slice(half).cast(table.schema)
    whole = pa.concat_tables([table, again]).slice(0, half)
    return pa.concat_tables([whole, again])


def _encoded(table: pa.Table) -> pa.Table:
    texts = [pa.types.is_string(column.type) for column in table.columns]
    columns = zip(table.columns, texts, strict=True)
    encoded = [column.dictionary_encode() if text else column for column, text in columns]
    return pa.table(encoded, names=table.column_names)


@pytest.mark.parametrize("other", [_recut, _encoded])
def test_the_same_rows_are_the_same_however_they_are_held(
    other: Callable[[pa.Table], pa.Table],
) -> None:
    rows = Rows()
    rows.replicas[0].update(log_dir=None)
    rows.brokers[0].update(rack=None)
    one = rows.snapshot()
    names = ("brokers", "log_dirs", "topics", "replicas")
    again = replace(one, **{name: other(getattr(one, name)) for name in names})
    assert layout_digest(again) == layout_digest(one)


def test_a_text_that_is_not_there_is_no_empty_one() -> None:
    without = _digest(lambda rows: rows.replicas[0].update(log_dir=None))
    assert without != _digest(lambda rows: rows.replicas[0].update(log_dir=""))


def test_an_empty_cluster_has_a_digest() -> None:
    one = Rows().snapshot()
    names = ("brokers", "log_dirs", "topics", "replicas")
    empty = replace(one, **{name: getattr(one, name).slice(0, 0) for name in names})
    assert layout_digest(empty) != layout_digest(one)
