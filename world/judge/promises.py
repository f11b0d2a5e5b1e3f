"""Whether a window that was named as the one that takes a plan up was there then."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from world.judge.flights import Span
from world.judge.violations import Kind, Violation

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class TakenUp:
    """A window takes a plan up, whatever happens to its DAG.

    :param opens_s: when it opens.
    """

    opens_s: float


@dataclass(frozen=True, slots=True)
class Promise:
    """It was said: from what was read since then, at this time."""

    said: TakenUp
    where: str
    span: Span


@dataclass(frozen=True)
class Promises:
    """What an installation has said.

    :param opens: when windows of the cluster open, in seconds of each day; ``paused``: when their
        DAG was paused.
    """

    made: Sequence[Promise] = ()
    opens: Collection[float] = ()
    paused: Sequence[Span] = ()


NO_PROMISES = Promises()


def false_promises(by: str, seen: Promises) -> Iterator[Violation]:
    """Windows that there are not, and those whose DAG was paused all the time."""
    for each in seen.made:
        if wrong := _wrong(each, seen):
            text = f"{by} {each.where}: {wrong}"
            yield Violation(Kind.FALSE_CLAIM, f"{each.where} TakenUp", text, each.span.until)


def _wrong(promise: Promise, of: Promises) -> str:
    opens_s, span = promise.said.opens_s, promise.span
    if opens_s % DAY_S not in of.opens:
        return f"a window opens at {opens_s:.0f} s; there is none"
    if any(each.since <= span.since and span.until <= each.until for each in of.paused):
        return f"a window takes it up at {opens_s:.0f} s; its DAG is paused"
    return ""
