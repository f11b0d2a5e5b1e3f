"""Times of a plan in words."""

from __future__ import annotations

from rehome.account.known import Fact, Known
from rehome.account.times import Elapsed, EndRange, Predicted
from rehome.account.words.unknown_words import WHY_UNKNOWN
from rehome.domain.text import count_text, duration_text


def end_of(ends: Fact[EndRange]) -> tuple[EndRange | None, str]:
    """When the last copy is complete; or None, and why that is not known."""
    if isinstance(ends, Known):
        return ends.value, ""
    return None, WHY_UNKNOWN[ends.why]


def predicted_text(predicted: Fact[Predicted]) -> str:
    """``1 min 2 s to 2 min 23 s``; "" = it is not known."""
    if not isinstance(predicted, Known):
        return ""
    part = " for what was left when it went on" if predicted.value.a_part else ""
    return f"{predicted.value.time}{part}"


def elapsed_text(elapsed: Elapsed | None) -> str:
    """``4 min 13 s, 1 min 2 s of it paused``; "–" before the start."""
    if elapsed is None:
        return "–"
    text = duration_text(elapsed.total.total_seconds())
    if not elapsed.pauses:
        return text
    paused = duration_text(elapsed.paused.total_seconds())
    times = "" if elapsed.pauses == 1 else f" in {count_text(elapsed.pauses, 'pause')}"
    return f"{text}, {paused} of it paused{times}"
