"""Numbers and times as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rehome.domain.plan.figures import LeaderMinimums
from rehome.domain.text import bytes_text, count_text, duration_text

__all__ = [
    "bytes_text",
    "count_text",
    "duration_text",
    "leader_minimums",
    "rate_text",
    "signed_percent_text",
    "time_text",
]


def rate_text(bytes_per_s: float | None) -> str:
    """A rate: ``50 MB/s``; "unknown" for None."""
    return "unknown" if bytes_per_s is None else f"{bytes_text(bytes_per_s)}/s"


def signed_percent_text(part: float) -> str:
    """A deviation: ``+4 %``, ``−12 %``, ``0 %``."""
    percent = round(100 * part)
    return f"{'+' if percent > 0 else '−' if percent < 0 else ''}{abs(percent)} %"


def time_text(at: datetime | None, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """A time in UTC; empty for None."""
    return "" if at is None else at.astimezone(UTC).strftime(form)


def brokers_list(brokers: Sequence[int]) -> str:
    """Replicas in their order: ``1, 4``."""
    return ", ".join(str(broker) for broker in brokers)


def leader_minimums(figures: LeaderMinimums) -> str:
    """What a minimum of leaders for each broker came to, and what was copied for it."""
    copied = (
        f"{count_text(figures.replicas_copied, 'replica')} "
        f"({bytes_text(figures.bytes_copied)}) copied for it"
        if figures.replicas_copied
        else "nothing is copied for it"
    )
    return (
        f"A minimum of leaders on each broker is asked for of "
        f"{count_text(figures.topics, 'topic')}: brokers lack "
        f"{count_text(figures.lacking_before, 'leader')} before, {figures.lacking_after:,} after; "
        f"{copied}."
    )
