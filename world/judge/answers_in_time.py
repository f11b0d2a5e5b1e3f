"""No window waits for an answer to an earlier one, and an alert says what nobody has answered."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from world.judge.flights import Span
from world.judge.promises import NO_PROMISES, Promises, false_promises
from world.judge.violations import Kind, Violation

LAPSES_IN_S = 30.0
"""So long after its window's end, at most, a question is open."""
BLOCKED_S = 60.0
"""So long after it was due, at most, the run of a window waits for an answer to another one."""
TOLD_IN_S = 300.0
"""An alert about the end of a run comes so long after its question has lapsed, at the latest."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a run.

    :param subject: of an alert about the run's end; ``window_s``: when its window closes.
    """

    run: str
    subject: str
    open: Span
    lapsed: bool
    window_s: float | None


@dataclass(frozen=True, slots=True)
class WindowRun:
    """The run of a window: when it was due, and when it was queued no more; None = never."""

    run: str
    due_s: float
    started_s: float | None


@dataclass(frozen=True)
class WindowsSeen:
    """Of one installation whose ledger was never replaced, and whose clock was never wrong.

    :param told: subjects of alerts about the ends of runs; ``promises``: windows that were named.
    """

    by: str
    asked: Sequence[Asked]
    runs: Sequence[WindowRun]
    told: Collection[str]
    promises: Promises = NO_PROMISES


def wrong_in_windows(seen: Sequence[WindowsSeen], ended_at: float) -> Iterator[Violation]:
    """What should not have been, of each."""
    for each in seen:
        yield from false_promises(each.by, each.promises)
        for asked in each.asked:
            late = asked.window_s is not None and asked.window_s + LAPSES_IN_S
            if late and asked.open.until > late and ended_at > late:
                text = f"{asked.run} asks still when its window has closed"
                yield Violation(Kind.ASKS_PAST_WINDOW, each.by, text, late)
            untold = asked.lapsed and asked.subject not in each.told
            if untold and asked.open.until + TOLD_IN_S < ended_at:
                text = f"nobody has answered {asked.run}, and no alert says so"
                yield Violation(Kind.LAPSED_UNTOLD, each.by, text, asked.open.until)
        for run in each.runs:
            started = ended_at if run.started_s is None else run.started_s
            when = run.due_s + BLOCKED_S
            behind = [a.run for a in each.asked if a.run != run.run and a.open.since < run.due_s]
            open_then = [a.run for a in each.asked if a.open.until > when and a.run in behind]
            if started > when and open_then:
                text = f"{run.run} waits until people have answered {open_then[0]}"
                yield Violation(Kind.WINDOW_BLOCKED, each.by, text, when)
