"""How single parameters are read: from JSON types, and from the text that forms deliver.

Each function returns the value or raises with a message that continues "name=value …".
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from include.domain.kafka import BrokerId, LogDirName
from include.domain.plan.kafka_json import parse_reassignment
from include.domain.text import rate_in
from include.errors import InvalidRequestError

TOPIC_SPREAD = "topic_spread"
"""The target that each topic is spread evenly over brokers, in addition to those of resources."""

MIN_LEADERS = "min_leaders"
"""The target that brokers lead so many partitions of named topics at least."""

TOLERANCES = (
    *("replicas", "bytes_in", "leaders", "bytes_out"),
    *("potential_bytes_out", "leader_bytes_in"),
    TOPIC_SPREAD,
)
"""What a request may give a tolerance; that of bytes has a parameter of its own."""


def one_of(kind: type[enum.StrEnum]) -> Callable[[Any], enum.StrEnum]:
    """The member of an enumeration that has this value."""

    def parse(value: Any) -> enum.StrEnum:
        try:
            return kind(value)
        except ValueError:
            raise ValueError(f"is not one of {', '.join(kind)}") from None

    return parse


def integer(minimum: int) -> Callable[[Any], int]:
    """A whole number, at least the minimum."""

    def parse(value: Any) -> int:
        number = int_of(value)
        if number is None:
            raise ValueError("is not a whole number")
        if number < minimum:
            raise ValueError(f"is less than {minimum}")
        return number

    return parse


def int_of(value: Any) -> int | None:
    """An int, or text that is one: forms and command lines deliver text."""
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+\s*", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def throttle(value: Any) -> int | str:
    """A number of bytes per second, a rate as people write it (``50 MB/s``), or "auto"."""
    if value == "auto":
        return "auto"
    number = rate_in(value) if isinstance(value, str) else int_of(value)
    if number is None or number <= 0:
        raise ValueError('is neither "auto" nor a rate such as 50 MB/s, or 50000000')
    return number


def fraction(value: Any) -> float:
    """A number from 0 up to, but not including, 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError("is not a number")
    number = float(value)
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


_PLAN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


def plan_id(value: Any) -> str:
    """An id that a plan can have: it is a part of a path, so it holds none of its own."""
    found = text(value)
    if not _PLAN_ID.fullmatch(found) or ".." in found:
        raise ValueError("is no plan id: letters, digits, '.', '_' and '-' only, 200 at most")
    return found


def checked_plan_id(value: Any) -> str:
    """:func:`plan_id` of a parameter that is read by itself.

    :raises InvalidRequestError: no plan can have this id.
    """
    try:
        return plan_id(value)
    except (TypeError, ValueError) as error:
        raise InvalidRequestError([f"plan_id={value!r} {error}."]) from None


def _items(value: Any) -> list[Any]:
    """A list, or text with its items parted by commas or white space."""
    if isinstance(value, str):
        return [item for item in re.split(r"[,\s]+", value) if item]
    if isinstance(value, (list, tuple)):
        return list(value)
    raise ValueError("is not a list")


def texts(value: Any) -> tuple[str, ...]:
    """Names or patterns, each once."""
    items = _items(value)
    if not all(isinstance(item, str) and item for item in items):
        raise ValueError("is not a list of names or patterns")
    return tuple(dict.fromkeys(items))


def broker_ids(value: Any) -> tuple[BrokerId, ...]:
    """Broker ids, ascending, each once."""
    numbers = [int_of(item) for item in _items(value)]
    ids = [number for number in numbers if number is not None and number >= 0]
    if len(ids) != len(numbers):
        raise ValueError("is not a list of broker ids")
    if len(set(ids)) != len(ids):
        raise ValueError("names a broker more than once")
    return tuple(sorted(ids))


def reassignment(value: Any) -> Mapping[str, Any] | None:
    """Kafka's reassignment JSON, parsed; None when empty."""
    if isinstance(value, Mapping) and not value:
        return None
    parse_reassignment(value)
    parsed: Mapping[str, Any] = json.loads(value) if isinstance(value, str) else value
    return parsed


def time(value: Any) -> datetime:
    """An aware time, in UTC."""
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError("is not an ISO 8601 time") from None
    if found.tzinfo is None:
        raise ValueError("has no time zone: write 2030-01-31T04:00:00Z or +01:00")
    return found.astimezone(UTC)


def _mapping(value: Any) -> Mapping[str, Any]:
    parsed = json.loads(value) if isinstance(value, str) else value
    if not isinstance(parsed, Mapping):
        raise TypeError("is not a mapping")
    return parsed


def tolerances(value: Any) -> dict[str, float | None]:
    """Resource, or topic_spread → fraction, or None for any."""
    read: dict[str, float | None] = {}
    for name, item in _mapping(value).items():
        if name not in TOLERANCES:
            raise ValueError(f"names {name!r}: known are {', '.join(TOLERANCES)}")
        read[name] = None if item is None else fraction(item)
    return read


def weights(value: Any) -> dict[BrokerId, float]:
    """Broker id → relative size, a positive number."""
    read = {}
    for name, item in _mapping(value).items():
        broker = int_of(name)
        if broker is None or isinstance(item, bool) or not isinstance(item, (int, float)):
            raise TypeError("does not map broker ids to numbers")
        if not 0 < item < float("inf"):
            raise ValueError("holds a size that is not positive")
        read[broker] = float(item)
    return read


def min_leaders(value: Any) -> dict[str, int]:
    """Name or pattern of topics → least number of leaders per broker, 1 or more."""
    read = {}
    for name, item in _mapping(value).items():
        number = int_of(item)
        if not str(name).strip() or number is None or number < 1:
            raise ValueError("does not map names or patterns of topics to whole numbers above 0")
        read[str(name).strip()] = number
    return read


def replacements(value: Any) -> dict[BrokerId, BrokerId]:
    """Broker → the one that takes its place; as text also ``3=7, 4=8``."""
    pairs = value
    if isinstance(value, str) and not value.lstrip().startswith("{"):
        pairs = dict(_pair(text) for text in _items(value))
    read = {}
    for name, item in _mapping(pairs).items():
        old, new = int_of(name), int_of(item)
        if old is None or new is None or min(old, new) < 0:
            raise ValueError("does not map broker ids to broker ids")
        read[old] = new
    if len({*read, *read.values()}) < 2 * len(read):
        raise ValueError("names a broker more than once")
    return dict(sorted(read.items()))


def log_dir_names(value: Any) -> tuple[LogDirName, ...]:
    """Log dirs as broker:path, ascending, each once."""
    found = set()
    for text_ in texts(value):
        broker, _, path = text_.partition(":")
        if not (broker.isdecimal() and path):
            raise ValueError("is not a list such as 3:/data/1")
        found.add(LogDirName(int(broker), path))
    return tuple(sorted(found))


def _pair(text: str) -> tuple[str, str]:
    old, sign, new = text.partition("=")
    if not sign:
        raise ValueError("is not a list such as 3=7, 4=8")
    return old, new


def partition_counts(value: Any) -> dict[str, int]:
    """Topic → number of partitions.

    :raises InvalidRequestError: names every topic whose number is none.
    """
    counts = {str(topic).strip(): (n, int_of(n)) for topic, n in _mapping(value).items()}
    wrong = [
        f"partitions of {topic!r}: {written!r} is not a whole number above 0."
        for topic, (written, number) in counts.items()
        if number is None or number < 1
    ]
    if wrong:
        raise InvalidRequestError(wrong)
    return {topic: int(number or 0) for topic, (_, number) in sorted(counts.items())}


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that is to be created."""

    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


def new_topics(value: Any) -> dict[str, NewTopic]:
    """Topic → what it is to have.

    :raises InvalidRequestError: names every topic that is not described well.
    """
    found, wrong = {}, []
    for name, item in _mapping(value).items():
        topic = str(name).strip()
        try:
            found[topic] = _new_topic(item)
        except (TypeError, ValueError) as error:
            wrong.append(f"new_topics of {topic!r}: {error}.")
    if wrong:
        raise InvalidRequestError(wrong)
    return dict(sorted(found.items()))


def _new_topic(value: Any) -> NewTopic:
    content = dict(_mapping(value))
    unknown = content.keys() - {"partitions", "replication_factor", "configs"}
    if unknown:
        raise ValueError(f"unknown {', '.join(sorted(map(str, unknown)))}")
    counts = {name: int_of(content.get(name)) for name in ("partitions", "replication_factor")}
    for name, count in counts.items():
        if count is None or count < 1:
            raise ValueError(f"{name}={content.get(name)!r} is not a whole number above 0")
    configs = {str(key): _config(given) for key, given in (content.get("configs") or {}).items()}
    return NewTopic(counts["partitions"] or 0, counts["replication_factor"] or 0, configs)


def _config(value: Any) -> str:
    """A config's value as Kafka takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
