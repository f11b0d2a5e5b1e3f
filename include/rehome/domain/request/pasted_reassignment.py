"""A reassignment as people have it: Kafka's file, or what Kafka's tool has printed.

Kafka's tool reads a file without ``version`` as version 1, and prints two files under a heading
each when it is asked to ``--generate`` one (org.apache.kafka.tools.reassign
.ReassignPartitionsCommand).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field, OnErrorOmit, ValidationError

from rehome.domain.kafka_limits import LONGEST_TOPIC_NAME
from rehome.domain.reassignment_file import VERSION, parse_reassignment
from rehome.domain.text import JSON_READER, json_fault, json_in
from rehome.errors import InvalidRequestError

TAKEN_FROM = "taken_from"
"""Key of a reassignment for where it was found, beside those of Kafka's file."""


class TakenFrom(enum.StrEnum):
    """What a reassignment was found in, where that was not a file of its own."""

    GENERATED = "generated"  # it stood there as proposed, after the current one


_SHOWN = 10
"""Topics of a file that are named; more are counted."""

_PROPOSED = re.compile(
    r"^[ \t]*Proposed partition reassignment configuration[ \t\r]*$", re.MULTILINE
)
_CURRENT = re.compile(r"^[ \t]*Current partition replica assignment[ \t\r]*$", re.MULTILINE)


class _Topic(BaseModel):
    topic: Annotated[str, Field(min_length=1, max_length=LONGEST_TOPIC_NAME)]


class _TopicsToMove(BaseModel):
    """The other file that Kafka's tool reads, as far as it can be read."""

    topics: list[OnErrorOmit[_Topic]]


def read_reassignment(value: str | Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The reassignment in a file, or in the output of Kafka's tool; None when empty.

    :returns: Kafka's file, parsed; with :data:`TAKEN_FROM` if it was a part of more.
    :raises InvalidRequestError: lists every fault of form; says what a file of topics is.
    """
    if isinstance(value, Mapping) and not value:
        return None
    reassignment = _found_in(value) if isinstance(value, str) else value
    if isinstance(reassignment, Mapping):
        _refuse_topics_to_move(reassignment)
        reassignment = {"version": VERSION, **reassignment}
    parse_reassignment(reassignment)
    return reassignment


def taken_from(reassignment: Mapping[str, Any] | None) -> TakenFrom | None:
    """What a reassignment that :func:`read_reassignment` has read was a part of; None = nothing."""
    origin = (reassignment or {}).get(TAKEN_FROM)
    return TakenFrom.GENERATED if origin == TakenFrom.GENERATED.value else None


def _found_in(text: str) -> Any:
    headings = list(_PROPOSED.finditer(text))
    if not headings:
        return _alone(text)
    if len(headings) > 1:
        raise InvalidRequestError(
            [f"The reassignment holds {len(headings)} proposed ones: paste the one that is meant."]
        )
    start = headings[0].end()
    start += len(text[start:]) - len(text[start:].lstrip())
    try:
        proposal, _ = JSON_READER.raw_decode(text, start)
    except ValueError as error:
        raise InvalidRequestError([f"The proposed reassignment {json_fault(error)}."]) from error
    return (
        {**proposal, TAKEN_FROM: TakenFrom.GENERATED.value}
        if isinstance(proposal, dict)
        else proposal
    )


def _alone(text: str) -> Any:
    if _CURRENT.search(text):
        raise InvalidRequestError(
            [
                "The reassignment is what Kafka's tool has printed without a proposed one: it only "
                "says where replicas were. To go back there, paste the JSON after the heading "
                "alone."
            ]
        )
    try:
        return json_in(text)
    except ValueError as error:
        raise InvalidRequestError([f"The reassignment {json_fault(error)}."]) from error


def _refuse_topics_to_move(file: Mapping[str, Any]) -> None:
    """Explain the other file that Kafka's tool reads: it names topics, and no replicas.

    :raises InvalidRequestError: the file is such a one.
    """
    if "topics" not in file or "partitions" in file:
        return
    try:
        names = [entry.topic for entry in _TopicsToMove.model_validate(file).topics]
    except ValidationError:
        names = []
    topics = ", ".join(names[:_SHOWN]) or "those topics"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    raise InvalidRequestError(
        [
            "The reassignment is a file of topics to move: Kafka's tool makes a reassignment of "
            f"it with --generate. Here, choose the action rebalance with topics={topics}{more}, "
            "and in destinations the ids of --broker-list: then these topics end on those brokers "
            "alone, as with Kafka's tool."
        ]
    )
