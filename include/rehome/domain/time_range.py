"""A span of time that is known from its least to its most."""

from __future__ import annotations

from dataclasses import dataclass

from rehome.domain.text import duration_text

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From the least to the most seconds."""

    least_s: float
    most_s: float

    def holds(self, seconds: float) -> bool:
        """Whether it lies in the range."""
        return self.least_s <= seconds <= self.most_s

    def __str__(self) -> str:
        least, most = duration_text(self.least_s), duration_text(self.most_s)
        return least if least == most else f"{least} to {most}"
