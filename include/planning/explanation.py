"""How a plan speaks to people: amounts, brokers, lists."""

from __future__ import annotations

from collections.abc import Sequence

from include.planning.resources import RATES, Resource

UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def bytes_text(size_bytes: float) -> str:
    """A size as people say it, in powers of 1000: ``1.2 GB``."""
    size, unit = float(size_bytes), 0
    while abs(size) >= 999.5 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {UNITS[unit]}" if unit == 0 else f"{size:.3g} {UNITS[unit]}"


def amount_text(resource: Resource, amount: float) -> str:
    """An amount of a resource: ``1.2 GB``, ``3 MB/s``, ``12 replicas``, ``1 leader``."""
    if resource is Resource.BYTES:
        return bytes_text(amount)
    if resource in RATES:
        return f"{bytes_text(amount)}/s"
    one = "replica" if resource is Resource.REPLICAS else "leader"
    return f"{amount:,.0f} {one}{'' if amount == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def brokers_text(brokers: Sequence[int]) -> str:
    """``broker 3`` or ``brokers 3 and 4``."""
    return f"broker{'' if len(brokers) == 1 else 's'} {listed([str(b) for b in brokers])}"
