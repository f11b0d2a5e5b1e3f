"""Which topics and partitions a request is about: names, globs and regular expressions.

``orders`` is a topic, ``logs-*`` a glob, ``re:logs-[0-9]+`` a regular expression of the whole name.
After a colon, which is in no topic's name, come partitions: ``orders:7``, ``logs-*:3-9``.

Expressions are matched by RE2, in time that grows with the length of the name alone, whatever the
expression is. So it knows neither back references nor look-around.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from rehome.domain.kafka_limits import LARGEST_PARTITION, refuse_topic_name

REGULAR = "re:"
"""What a regular expression begins with."""

_LONGEST_EXPRESSION = 1_000
_BETWEEN = re.compile(r"\s+|,(?!\d*\})")
_PARTITIONS = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?")


def filters_in(text: str) -> tuple[str, ...]:
    """The filters that a person has written in one text, parted by commas or white space. A comma
    of ``re:[ab]{1,3}`` parts nothing.
    """
    return tuple(filter(None, _BETWEEN.split(text)))


class FilterKind(enum.StrEnum):
    """How names are compared with a filter."""

    NAME = "name"
    GLOB = "glob"
    REGULAR = "regular"


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """One entry of a request's topics.

    :param text: as it was written; ``pattern``: without what stands around it.
    :param first, last: partitions; None = all.
    """

    text: str
    kind: FilterKind
    pattern: str
    first: int | None = None
    last: int | None = None

    @classmethod
    def read(cls, text: str) -> TopicFilter:
        """The filter that a text is.

        :raises ValueError: it is none; says why, for people.
        """
        if text.startswith(REGULAR):
            pattern = text.removeprefix(REGULAR)
            _refuse_expression(text, pattern)
            return cls(text, FilterKind.REGULAR, pattern)
        pattern, colon, numbers = text.partition(":")
        refuse_topic_name(pattern, pattern=True)
        kind = FilterKind.GLOB if any(c in pattern for c in "*?[") else FilterKind.NAME
        if not colon:
            return cls(text, kind, pattern)
        match = _PARTITIONS.fullmatch(numbers)
        first, last = (match[1], match[2] or match[1]) if match else ("1", "0")
        if int(first) > int(last) or int(last) > LARGEST_PARTITION:
            raise ValueError(
                f"names {text[:80]!r}: after the colon come partitions, such as orders:7 or "
                "orders:3-9"
            )
        return cls(text, kind, pattern, int(first), int(last))

    @property
    def is_pattern(self) -> bool:
        """Whether it may be of several topics: then it reaches no internal one."""
        return self.kind is not FilterKind.NAME

    def names(self, topics: Sequence[str]) -> list[bool]:
        """Which of these names it is of, whether they are internal or not."""
        if self.kind is FilterKind.NAME:
            return [topic == self.pattern for topic in topics]
        if self.kind is FilterKind.GLOB:
            return [fnmatchcase(topic, self.pattern) for topic in topics]
        return _matches(topics, _whole(self.pattern))

    def has(self, partition: int) -> bool:
        """Whether it is of the partition with this number, of a topic that it is of."""
        return self.first is None or self.last is None or self.first <= partition <= self.last


def filters_cover(
    texts: Iterable[str], topics: Collection[str]
) -> Callable[[str, int | None, bool], bool]:
    """Whether topic, partition and internal or not are what one of the filters is of; a partition
    of None asks for the topic alone. Without filters everything is.

    :param topics: names of all that is asked for: each filter is read once for all of them.
    """
    filters, names = [TopicFilter.read(text) for text in texts], list(topics)
    filters_of: dict[str, list[TopicFilter]] = {name: [] for name in names}
    for item in filters:
        for name, hit in zip(names, item.names(names), strict=True):
            if hit:
                filters_of[name].append(item)

    def covers(topic: str, partition: int | None, internal: bool) -> bool:
        return not filters or any(
            not (internal and item.is_pattern) and (partition is None or item.has(partition))
            for item in filters_of[topic]
        )

    return covers


def _matches(texts: Sequence[str], expression: str) -> list[bool]:
    """Which texts hold what the expression is of.

    :raises ValueError: RE2 does not read the expression.
    """
    # Arrow is heavy, and every DAG that has a form imports this module.
    import pyarrow as pa
    import pyarrow.compute as pc

    return list(pc.match_substring_regex(pa.array(texts, pa.string()), expression).to_pylist())


def _whole(pattern: str) -> str:
    return rf"\A(?:{pattern})\z"


def _refuse_expression(text: str, pattern: str) -> None:
    if len(pattern) > _LONGEST_EXPRESSION:
        raise ValueError(
            f"holds a regular expression of {len(pattern)} characters; at most "
            f"{_LONGEST_EXPRESSION} are allowed"
        )
    try:
        for expression in (pattern, _whole(pattern)):
            _matches([""], expression)
    except ValueError as error:  # of Arrow, and what is no text at all
        raise ValueError(f"Topics {text[:80]!r}: {error}") from None
