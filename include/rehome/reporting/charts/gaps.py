"""Where nothing has polled, nothing is known: a line of a chart ends there, and begins anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from rehome.domain.run.progress import PACE_WINDOW

T = TypeVar("T")


def stretches(points: Sequence[T], at: Callable[[T], datetime]) -> list[list[T]]:
    """The points between which there is no gap.

    :param points: oldest first.
    """
    runs: list[list[T]] = []
    for point in points:
        if runs and at(point) - at(runs[-1][-1]) <= PACE_WINDOW:
            runs[-1].append(point)
        else:
            runs.append([point])
    return runs


def thin_out(points: list[list[T]], most: int) -> list[list[T]]:
    """At most about so many, evenly spaced, the last one of each stretch among them."""
    step = -(-sum(map(len, points)) // most) or 1
    return [stretch[::-1][::step][::-1] for stretch in points]
