"""Facts that know when and by what they are known, or why they are not."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Source(enum.StrEnum):
    """What a fact is known by."""

    LEDGER = "ledger"
    """By what was recorded of moves and of the plan: it holds until the next record."""
    POLL = "poll"
    """By the newest poll of the cluster."""
    DRY_RUN = "dry_run"
    """By a dry run of the plan."""
    SNAPSHOT = "snapshot"
    """By the newest snapshot of the cluster."""


class NotKnown(enum.StrEnum):
    """Why a fact is not known."""

    NOT_RECORDED = "not_recorded"
    """It was not recorded when it was to be seen: by an earlier version of Rehome, or because no
    poll had read it.
    """
    NOT_POLLED = "not_polled"
    """Something is in flight, and no poll has seen it."""
    NOT_TRIED = "not_tried"
    """No dry run has tried the plan out."""
    NEVER_ENDS = "never_ends"
    """Producers write more than the throttle lets through."""
    BROKER_DEAD = "broker_dead"
    """Moves wait for a broker that is not alive."""
    LEADERLESS = "leaderless"
    """Moves wait for partitions that have no leader."""
    OUTPACED = "outpaced"
    """Producers write more than the throttle lets through."""
    HELD = "held"
    """Something holds the plan back, and nothing starts meanwhile."""
    NOT_RUNNING = "not_running"
    """The plan does not run."""
    ONE_POLL = "one_poll"
    """There was one poll within a minute, and nothing to compare it with."""
    OLD_POLL = "old_poll"
    """The newest poll is more than a minute old."""
    NOTHING_COMES = "nothing_comes"
    """Nothing has come through of late, or producers write more than the throttle lets through."""
    AFTER_WINDOW = "after_window"
    """Not before the window closes: what is in flight then is taken back."""
    PAST = "past"
    """The predicted time has passed, and no poll has come since."""
    BROKER_SILENT = "broker_silent"
    """A broker did not answer the newest poll."""
    NO_SNAPSHOT = "no_snapshot"
    """There is no snapshot of the cluster."""
    NOT_JUDGED = "not_judged"
    """Watching has judged no snapshot of the cluster."""
    SIZES_UNREAD = "sizes_unread"
    """A live broker has not said what its log dirs hold, or how large they are."""


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """A fact.

    :param at: as of when it is true; aware UTC.
    """

    value: T
    at: datetime
    source: Source

    def as_(self, of: Callable[[T], U]) -> Known[U]:
        """What follows from it, known in the same way."""
        return Known(of(self.value), self.at, self.source)


@dataclass(frozen=True, slots=True)
class Unknown:
    """No fact, and why."""

    why: NotKnown


Fact = Known[T] | Unknown
