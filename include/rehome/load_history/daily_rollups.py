"""From snapshots to daily rollups: what is pending, one day's work, and what may be removed.

A day's rollup depends on nothing but the snapshots of that day and the last one before it. So
days can be rolled up one interval at a time or all at once, in any order, on any machine, with
the same result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rehome.load_history.bytes_written import between
from rehome.load_history.log_readings import COLUMNS, Readings, readings_of
from rehome.load_history.rollup import Rollup, Span, rollup_of, span_in
from rehome.warehouse import Warehouse, taken_at_of


@dataclass(frozen=True, slots=True)
class SnapshotPace:
    """How far apart snapshots may be, in seconds.

    :param shortest_s: one that follows sooner is passed over: too little happens to be measured.
    :param longest_s: a longer span is a gap: its mean would hide what happened in it.
    """

    shortest_s: float = 60.0
    longest_s: float = 1800.0


@dataclass(frozen=True, slots=True)
class PendingDay:
    """Snapshots of one day of a cluster that are not in its rollup yet.

    :param before: URI of the snapshot that the first interval begins with; None = there is none.
    :param snapshots: URIs, in order of time.
    """

    warehouse: str
    cluster_id: str
    day: str
    before: str | None
    snapshots: tuple[str, ...]


def pending_days(warehouse: Warehouse, cluster_id: str) -> list[PendingDay]:
    """What has to be rolled up, day by day in order."""
    rollups, pending = warehouse.rollups(cluster_id), []
    done = set(rollups.days())
    by_day: dict[str, list[str]] = {}
    earlier: str | None = None
    for uri in warehouse.snapshots(cluster_id):
        by_day.setdefault(day_of(taken_at_of(uri)), []).append(uri)
    for day, uris in by_day.items():
        through = span_in(rollups.metadata(day)).through if day in done else ""
        new = [uri for uri in uris if taken_at_of(uri).isoformat() > through]
        old = [uri for uri in uris if taken_at_of(uri).isoformat() <= through]
        if new:
            before = old[-1] if old else earlier
            pending.append(PendingDay(warehouse.uri, cluster_id, day, before, tuple(new)))
        earlier = uris[-1]
    return pending


def roll_up(pending: PendingDay, pace: SnapshotPace) -> Span:
    """Bring one day's rollup up to date; returns what it covers then.

    Idempotent: a snapshot that is in the rollup already is not counted again, and a rollup is
    replaced as a whole.
    """
    rollups = Warehouse(pending.warehouse).rollups(pending.cluster_id)
    there = pending.day in rollups.days()
    rollup = Rollup.from_table(rollups.read(pending.day)) if there else Rollup()
    before = None if pending.before is None else _readings(pending.before)
    for uri in pending.snapshots:
        at = taken_at_of(uri)
        if before is not None and (at - before.taken_at).total_seconds() < pace.shortest_s:
            continue
        now = _readings(uri)
        rollup = rollup.merge(_step(before, now, rollup, pace))
        before = now
    rollups.write(pending.day, rollup.table())
    return rollup.span


def window(warehouse: Warehouse, cluster_id: str, days: int) -> Rollup:
    """The rollups of a cluster's last days in one, ``days`` back from the newest."""
    rollups = warehouse.rollups(cluster_id)
    return merge_rollups(
        Rollup.from_table(rollups.read(day)) for day in last_days(rollups.days(), days)
    )


def last_days(days: Iterable[str], count: int) -> list[str]:
    """Those that are less than ``count`` days older than the newest."""
    ordered = sorted(days)
    if not ordered:
        return []
    first = datetime.fromisoformat(ordered[-1]) - timedelta(days=count - 1)
    return [day for day in ordered if datetime.fromisoformat(day) >= first]


def merge_rollups(rollups: Iterable[Rollup]) -> Rollup:
    """Rollups of spans that follow each other in one."""
    total = Rollup()
    for rollup in rollups:
        total = total.merge(rollup)
    return total


def day_of(taken_at: datetime) -> str:
    """The UTC day, as in 2026-01-02."""
    return taken_at.astimezone(UTC).date().isoformat()


def _readings(uri: str) -> Readings:
    directory = Warehouse(uri)
    tables = {
        name: directory.read_table(f"{name}.parquet", list(columns))
        for name, columns in COLUMNS.items()
    }
    return readings_of(taken_at_of(uri), tables)


def _step(before: Readings | None, now: Readings, so_far: Rollup, pace: SnapshotPace) -> Rollup:
    """What happened between two snapshots as a rollup, or that there is a gap."""
    at = now.taken_at.isoformat()
    if before is None:
        return Rollup(span=Span(1, at, at, unread=now.unread))
    first = before.taken_at.isoformat()
    if (now.taken_at - before.taken_at).total_seconds() > pace.longest_s:
        return Rollup(span=Span(1, first, at, gaps=((first, at),), unread=now.unread))
    return rollup_of(between(before, now, so_far.record_bytes(now)), now, first)
