"""How a plan speaks to people, in amounts, times, brokers and lists; rates and JSON of theirs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from rehome.domain.kafka import BrokerError, TopicPartition
from rehome.domain.resources import LED, MEASURED_AS, RATES, Resource

V = TypeVar("V", bound=Hashable)
UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
MOST = 2**63 - 1
"""Bytes, and bytes per second, that Kafka and the ledger can hold."""
_DIGITS = 20
RATE_PATTERN = (
    r"\s{0,9}(\d{1,20}(?:\.\d{1,20})?)\s{0,9}([kMGT]?B)?(?:/s)?\s{0,9}"  # bounded, or quadratic
)
"""What people write a rate as: ``50 MB/s``, ``50MB`` or ``50000000``."""
_RATE = re.compile(RATE_PATTERN)
LARGEST_JSON_BYTES = 500_000_000
"""Of a file that is read at once: a reassignment of a million partitions has less than half."""
_NAMED = 5
_LONGEST_NAME = 80


def bytes_text(size_bytes: float) -> str:
    """A size as people say it, in powers of 1000: ``1.2 GB``."""
    size, unit = float(size_bytes), 0
    while abs(size) >= 999.5 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {UNITS[unit]}" if unit == 0 else f"{size:.3g} {UNITS[unit]}"


def rate_in(text: str) -> int | None:
    """Bytes per second of ``50 MB/s``, ``50MB`` or ``50000000``; None = it is no rate."""
    match = _RATE.fullmatch(text)
    if match is None or len(match[1]) > _DIGITS:
        return None
    rate = round(float(match[1]) * 1000 ** UNITS.index(match[2] or "B"))
    return rate if 0 < rate <= MOST else None


class RepeatedNameError(ValueError):
    """A name is given more than once, so that a value would be lost; continues the name of what
    holds it.
    """


def plain_name(name: Any) -> str:
    """A name in a mapping, by which it is known whether two are the same."""
    return str(name).strip()


def each_once(
    pairs: Sequence[tuple[Any, Any]], name_of: Callable[[Any], str] = plain_name
) -> dict[Any, Any]:
    """The pairs as a mapping.

    :param name_of: what names the same gives the same.
    :raises RepeatedNameError: something is named more than once.
    """
    times_of = Counter(name_of(name) for name, _ in pairs)
    if twice := sorted(name for name, times in times_of.items() if times > 1):
        raise RepeatedNameError(f"names {twice[0][:_LONGEST_NAME]!r} more than once")
    return dict(pairs)


def json_in(text: str) -> Any:
    """JSON that people write. Python's own reader keeps the last of what stands twice.

    :raises RepeatedNameError: an object names something more than once.
    :raises ValueError: it is no JSON.
    """
    return JSON_READER.decode(text)


def refuse_large(size_bytes: int) -> None:
    """See that a file of JSON that people write is not larger than what is read at once.

    :raises ValueError: it is.
    """
    if size_bytes > LARGEST_JSON_BYTES:
        most = bytes_text(LARGEST_JSON_BYTES)
        raise ValueError(f"it has {bytes_text(size_bytes)}, and files of up to {most} are read")


def json_fault(error: ValueError) -> str:
    """What is said of a text that :func:`json_in` does not take, after the name of the text."""
    return str(error) if isinstance(error, RepeatedNameError) else f"is not valid JSON: {error}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    return content if len(content) == len(pairs) else each_once(pairs, str)


JSON_READER = json.JSONDecoder(object_pairs_hook=_object)
"""Reads JSON as :func:`json_in` does."""


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


def second_text(at: datetime) -> str:
    """A time to the second: ``2030-01-31 04:00:00 UTC``."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def minute_text(at: datetime) -> str:
    """A time to the minute: ``2030-01-31 04:00 UTC``."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def clock_text(at: datetime) -> str:
    """A time of a day that the reader knows: ``04:00:00 UTC``."""
    return f"{at.astimezone(UTC):%H:%M:%S} UTC"


def count_text(number: int, one: str, many: str = "") -> str:
    """``1 move``, ``12,000 moves``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def amount_text(resource: Resource, amount: float) -> str:
    """An amount of a resource: ``1.2 GB``, ``3 MB/s``, ``12 replicas``, ``1 leader``."""
    if MEASURED_AS[resource] is Resource.BYTES:
        return bytes_text(amount)
    if resource in RATES:
        return f"{bytes_text(amount)}/s"
    one = "leader" if resource in LED else "replica"
    return f"{amount:,.0f} {one}{'' if amount == 1 else 's'}"


def join_names(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def first_names(
    names: Sequence[str], separator: str = ", ", *, count: int | None = None, most: int = _NAMED
) -> str:
    """The first of them, and how many more there are.

    :param count: of all of them; None = the names are all.
    :param most: so many are named.
    """
    shown = names[:most]
    more = (len(names) if count is None else count) - len(shown)
    return separator.join(shown) + (f" and {more:,} more" if more > 0 else "")


def names_by_value(values: Mapping[TopicPartition, V], most: int = 50) -> dict[V, str]:
    """Partitions with the same value, named together; of more than ``most`` the first ones."""
    names: dict[V, list[str]] = {}
    for name, value in values.items():
        names.setdefault(value, []).append(str(name))
    return {value: first_names(each, most=most) for value, each in names.items()}


def brokers_text(brokers: Sequence[int]) -> str:
    """``broker 3`` or ``brokers 3 and 4``."""
    return f"broker{'' if len(brokers) == 1 else 's'} {join_names([str(b) for b in brokers])}"


def brokers_are(brokers: Sequence[int]) -> str:
    """``broker 3 is`` or ``brokers 3 and 4 are``."""
    return f"{brokers_text(brokers)} {'is' if len(brokers) == 1 else 'are'}"


def named_errors(left: Mapping[TopicPartition, BrokerError]) -> str:
    """Partitions and what is the matter with each, as a part of a sentence."""
    return ", ".join(f"{partition}: {error}" for partition, error in sorted(left.items()))


def whole_percent(part: float) -> int:
    """A part of 1 in whole percent; 100 only when nothing is left."""
    return 100 if part >= 1 else min(99, int(100 * part + 1e-6))
