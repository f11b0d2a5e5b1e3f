"""Sentences for people: why a move is in a plan."""

from __future__ import annotations

from collections.abc import Sequence

UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def bytes_text(size_bytes: float) -> str:
    """A size as people say it, in powers of 1000: ``1.2 GB``."""
    size, unit = float(size_bytes), 0
    while abs(size) >= 999.5 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {UNITS[unit]}" if unit == 0 else f"{size:.3g} {UNITS[unit]}"


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def brokers_text(brokers: Sequence[int]) -> str:
    """``broker 3`` or ``brokers 3 and 4``."""
    return f"broker{'' if len(brokers) == 1 else 's'} {listed([str(b) for b in brokers])}"
