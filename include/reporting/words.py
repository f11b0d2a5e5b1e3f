"""Numbers and times as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from include.planning.explanation import bytes_text

__all__ = [
    "bytes_text",
    "count_text",
    "duration_text",
    "percent_text",
    "rate_text",
    "signed_percent_text",
    "time_text",
]


def duration_text(seconds: float | None) -> str:
    """A duration: ``8.9 s``, ``4 min 10 s``, ``2 h 5 min``; "unknown" for None."""
    if seconds is None:
        return "unknown"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"


def rate_text(bytes_per_s: float | None) -> str:
    """A rate: ``50 MB/s``; "unknown" for None."""
    return "unknown" if bytes_per_s is None else f"{bytes_text(bytes_per_s)}/s"


def percent_text(part: float, whole: float) -> str:
    """A share: ``37 %``; of nothing, everything is done."""
    return f"{100 * part / whole:.0f} %" if whole else "100 %"


def signed_percent_text(part: float) -> str:
    """A deviation: ``+4 %``, ``−12 %``, ``0 %``."""
    percent = round(100 * part)
    return f"{'+' if percent > 0 else '−' if percent < 0 else ''}{abs(percent)} %"


def count_text(number: int, one: str, many: str = "") -> str:
    """``1 move``, ``12,000 moves``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def time_text(at: datetime | None, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """A time in UTC; empty for None."""
    return "" if at is None else at.astimezone(UTC).strftime(form)


def brokers_list(brokers: Sequence[int]) -> str:
    """Replicas in their order: ``1, 4``."""
    return ", ".join(str(broker) for broker in brokers)
