"""When a plan that was refused is made again; and what two snapshots have to share to be alike."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from include.cluster.snapshot.layout_digest import layout_digest
from include.watching.refusal import Refusal, Refused, RefusedBy
from tests.quality.snapshots import Rows

ENDED = datetime(2030, 1, 2, tzinfo=UTC)


def refused(by: RefusedBy = RefusedBy.GATE, in_a_row: int = 1) -> Refused:
    return Refused(Refusal(by, ("because",), "layout", "settings"), ENDED, in_a_row)


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
    found = Refused(Refusal(by, ("too old",), "", "settings"), ENDED, 1)
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
