"""Windows of a cluster that overlap: allowed, and explained where the file is read. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache

from rehome.clusters.clusters_file import ClustersFile
from rehome.domain.text import minute_text
from rehome.execution.access.open_windows import CronWindow

_YEAR = timedelta(days=366)
_MOST_OPENINGS = 400
"""Of one window that are looked at: of one that opens each day those of a year."""


def overlap_notes(file: ClustersFile, since: datetime) -> list[str]:
    """What becomes of windows that overlap within a year, a text for each pair. Looked for once a
    day: a fleet has many windows.
    """
    since = since.replace(hour=0, minute=0, second=0, microsecond=0)
    return [
        f"clusters.{name}.windows: {_overlap_text(pair)}, first at {minute_text(at)}. One run at a "
        "time has a window: of those that are open, the one that closes last. One that lies within "
        "the window that was used last has no run."
        for name, entry in file.clusters.items()
        for pair, at in _overlaps(entry.windows, since)
    ]


def _overlap_text(pair: tuple[int, int]) -> str:
    first, second = pair
    if first == second:
        return f"[{first}] opens again before it closes"
    return f"[{first}] and [{second}] overlap"


@lru_cache(maxsize=256)
def _overlaps(
    windows: tuple[CronWindow, ...], since: datetime
) -> list[tuple[tuple[int, int], datetime]]:
    return list(_look_for(windows, since))


def _look_for(
    windows: tuple[CronWindow, ...], since: datetime
) -> Iterator[tuple[tuple[int, int], datetime]]:
    openings = [list(_openings(window, since)) for window in windows]
    for first, second in itertools.combinations_with_replacement(range(len(windows)), 2):
        times = sorted({(at, each) for each in (first, second) for at in openings[each]})
        for (opened, one), (at, _) in itertools.pairwise(times):
            if at < opened + windows[one].duration:
                yield (first, second), at
                break


def _openings(window: CronWindow, since: datetime) -> Iterator[datetime]:
    at = window.opens_after(since)
    for _ in range(_MOST_OPENINGS):
        if at is None or at > since + _YEAR:
            return
        yield at
        at = window.opens_after(at)
