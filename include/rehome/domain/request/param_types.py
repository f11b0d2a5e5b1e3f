"""How single parameters are read: from JSON types, and from the text that forms deliver.

Each function returns the value or raises with a message that continues "name=value …".
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from rehome.domain.kafka import BrokerId, LogDirName
from rehome.domain.kafka_limits import (
    LARGEST_BROKER_ID,
    LARGEST_RATE,
    LEAST_RATE,
)
from rehome.domain.request.topic_filters import TopicFilter, filters_in
from rehome.domain.request.validation import value_text
from rehome.domain.resources import Resource
from rehome.domain.text import each_once, json_in, plain_name, rate_in
from rehome.errors import InvalidRequestError

TOPIC_SPREAD = "topic_spread"
"""The target that each topic is spread evenly over brokers, in addition to those of resources."""

MIN_LEADERS = "min_leaders"
"""The target that brokers lead so many partitions of named topics at least."""

TOLERANCES = (*(r.value for r in Resource if r is not Resource.BYTES), TOPIC_SPREAD)
"""What a request may give a tolerance; that of bytes has a parameter of its own."""


_DIGITS = 30
"""Of a number in a text: more than any number has that is of use, few enough to be read at once."""


def one_of(kind: type[enum.StrEnum]) -> Callable[[Any], enum.StrEnum]:
    """The member of an enumeration that has this value."""

    def parse(value: Any) -> enum.StrEnum:
        try:
            return kind(value)
        except ValueError:
            raise ValueError(f"is not one of {', '.join(kind)}") from None

    return parse


def integer(minimum: int, maximum: int = LARGEST_RATE) -> Callable[[Any], int]:
    """A whole number, at least the minimum and at most the maximum."""

    def parse(value: Any) -> int:
        number = int_of(value)
        if number is None:
            raise ValueError("is not a whole number")
        if number < minimum:
            raise ValueError(f"is less than {minimum}")
        if number > maximum:
            raise ValueError(f"is more than {maximum}")
        return number

    return parse


def int_of(value: Any) -> int | None:
    """An int, or text that is one: forms and command lines deliver text."""
    if isinstance(value, str) and re.fullmatch(rf"\s*[+-]?\d{{1,{_DIGITS}}}\s*", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def throttle(value: Any) -> int | str:
    """A number of bytes per second, a rate as people write it (``50 MB/s``), or "auto"."""
    if value == "auto":
        return "auto"
    return rate(value, 'is neither "auto" nor a rate such as 50 MB/s, or 50000000')


def rate(value: Any, no_rate: str = "is no rate such as 50 MB/s, or 50000000") -> int:
    """A number of bytes per second, or a rate as people write it (``50 MB/s``). Whether copies
    get on at it, :func:`slow_rates` says.

    :param no_rate: what is said of what is neither; continues "name=value …".
    """
    number = rate_in(value) if isinstance(value, str) else int_of(value)
    if number is None or number <= 0:
        raise ValueError(no_rate)
    if number > LARGEST_RATE:
        raise ValueError(f"is more than {LARGEST_RATE}")
    return number


def slow_rates(rates: Mapping[str, int | str | None]) -> list[str]:
    """A sentence for each rate at which brokers would copy nothing.

    :param rates: name of the parameter → bytes per second; what is no number is left out.
    """
    return [
        f"{name}={rate} is less than {LEAST_RATE} bytes per second, the least that is allowed."
        for name, rate in rates.items()
        if isinstance(rate, int) and rate < LEAST_RATE
    ]


def fraction(value: Any) -> float:
    """A number from 0 up to, but not including, 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError("is not a number")
    try:
        number = float(value)
    except (OverflowError, ValueError):
        raise ValueError("is not a number from 0 to 1") from None
    if not 0 <= number < 1:
        raise ValueError("is not a fraction from 0 up to, but not including, 1")
    return number


def boolean(value: Any) -> bool:
    """True or false, and nothing else that Python takes for it."""
    if not isinstance(value, bool):
        raise TypeError("is neither true nor false")
    return value


def text(value: Any) -> str:
    """Text without the white space around it."""
    if not isinstance(value, str):
        raise TypeError("is not text")
    return value.strip()


_PLAN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,199}")


def plan_id(value: Any) -> str:
    """An id that a plan can have: it is a part of a path, so it holds none of its own."""
    plan_name = text(value)
    if not _PLAN_ID.fullmatch(plan_name) or ".." in plan_name:
        raise ValueError(
            "is no plan id, which has at most 200 characters: letters, digits, '.', '_', '~' and "
            "'-'"
        )
    return plan_name


def checked_plan_id(value: Any) -> str:
    """:func:`plan_id` of a parameter that is read by itself.

    :raises InvalidRequestError: no plan can have this id.
    """
    try:
        return plan_id(value)
    except (TypeError, ValueError) as error:
        raise InvalidRequestError([f"plan_id={value!r} {error}."]) from None


def items(value: Any) -> list[Any]:
    """A list, or text with its items parted by commas or white space."""
    if isinstance(value, str):
        return [item for item in re.split(r"[,\s]+", value) if item]
    if isinstance(value, (list, tuple)):
        return list(value)
    raise ValueError("is not a list")


def topics(value: Any) -> tuple[str, ...]:
    """Names, patterns or partitions of topics, each once: see ``topic_filters``.

    :raises InvalidRequestError: names each that no topic can have.
    """
    names, wrong = texts(filters_in(value) if isinstance(value, str) else value), []
    for name in names:
        try:
            TopicFilter.read(name)
        except ValueError as error:
            wrong.append(f"{error}.")
    if wrong:
        raise InvalidRequestError(wrong)
    return names


def texts(value: Any) -> tuple[str, ...]:
    """Names or patterns, each once."""
    names = items(value)
    if not all(isinstance(item, str) and item for item in names):
        raise ValueError("is not a list of names or patterns")
    return tuple(dict.fromkeys(names))


def broker_ids(value: Any) -> tuple[BrokerId, ...]:
    """Broker ids, ascending, each once."""
    ids = [broker_id(item) for item in items(value)]
    if len(set(ids)) != len(ids):
        raise ValueError("names a broker more than once")
    return tuple(sorted(ids))


def broker_id(value: Any) -> BrokerId:
    """A number that a broker can have."""
    number = int_of(value)
    if number is None or not 0 <= number <= LARGEST_BROKER_ID:
        raise ValueError(
            f"names broker {value_text(value)}: ids are whole numbers from 0 to {LARGEST_BROKER_ID}"
        )
    return number


def time(value: Any) -> datetime:
    """An aware time, in UTC."""
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError("is not an ISO 8601 time") from None
    if moment.tzinfo is None:
        raise ValueError(
            "has no time zone: write Z for UTC, as in 2030-01-31T04:00:00Z, or +01:00 in its place"
        )
    return moment.astimezone(UTC)


def broker_name(name: Any) -> str:
    """A broker's id as the name in a mapping: ``3`` and ``03`` are the same."""
    number = int_of(name)
    return plain_name(name) if number is None else str(number)


def mapping(value: Any, name_of: Callable[[Any], str] = plain_name) -> Mapping[str, Any]:
    """A mapping, or JSON text of one.

    :param name_of: what names the same gives the same.
    :raises ValueError: it names something more than once.
    """
    parsed = json_in(value) if isinstance(value, str) else value
    if not isinstance(parsed, Mapping):
        raise TypeError("is not a mapping")
    each_once(tuple(parsed.items()), name_of)
    return parsed


def log_dir_names(value: Any) -> tuple[LogDirName, ...]:
    """Log dirs as broker:path, ascending, each once."""
    log_dirs = set()
    for text_ in texts(value):
        broker, _, path = text_.partition(":")
        if not (broker.isdecimal() and path):
            raise ValueError("is no list of broker:log dir, such as 3:/data/1, 4:/data/2")
        log_dirs.add(LogDirName(broker_id(broker), path))
    return tuple(sorted(log_dirs))
