"""Bodies of requests, read up to bounds: in size and time, and what their JSON may hold.

Whatever is refused here would cost Airflow's event loop more than its answer is worth, or would end
in an error of the server: 10**400 fits no float, NaN no database, depth 10,000 no parser.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope

LARGEST_BODY_BYTES = 1_000_000
LONGEST_BODY_S = 30.0
READ_AHEAD_BYTES = 65_536
"""What uvicorn reads of a body before anybody asks for it."""
DEEPEST_JSON = 64
"""Levels of lists and objects, one in the other."""
MOST_VALUES = 250_000
MOST_CONTAINERS = 60_000
"""Lists and objects: of what a megabyte can hold, they take longest. Airflow parses on its event
loop: 240,000 empty lists hold it for 0.3 s, most of it to look for garbage.
"""
MOST_DIGITS = 20
"""Of a whole number: bytes of all disks of a cluster have fewer."""
LARGEST_DRAINED_BYTES = 32_000_000
"""Of a refused body, what is read for the sake of a client that sends all before it reads."""
LONGEST_FRACTION = 64
"""Characters of a number that is not whole."""


class BodyTooLargeError(Exception):
    """More than it may have."""


class BodyTooSlowError(Exception):
    """It has not come whole within :data:`LONGEST_BODY_S`."""


class ClientGoneError(Exception):
    """Whoever sent the request has closed the connection: nobody waits for an answer."""


class JsonOutOfBoundsError(ValueError):
    """JSON that would break what reads it; the message continues "The body …"."""


async def body_of(scope: Scope, receive: Receive, largest: int = LARGEST_BODY_BYTES) -> bytes:
    """The body of a request, whole.

    :param largest: in bytes.
    :raises BodyTooLargeError: by its Content-Length, before anything is read; or by what came.
    :raises BodyTooSlowError: it did not end in time.
    :raises ClientGoneError: it did not end at all.
    """
    if _content_length(scope) > largest:
        raise BodyTooLargeError
    try:
        async with asyncio.timeout(LONGEST_BODY_S):
            return await _whole(receive, largest)
    except TimeoutError:
        raise BodyTooSlowError from None


def to_be_closed(scope: Scope, status: int) -> bool:
    """Whether the connection is closed after a refusal. On one that stays open, the server reads
    what else is sent, for nothing. But who may send, and has sent too much, would see an error of
    the connection where it is closed, and not the answer: many clients send all, and then read.
    """
    names = {name for name, _ in scope["headers"]}
    size = inf if b"transfer-encoding" in names else _content_length(scope)
    if status == HTTPStatus.REQUEST_TIMEOUT:
        return True
    stranger = status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
    return size > (READ_AHEAD_BYTES if stranger else LARGEST_DRAINED_BYTES)


def _content_length(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            digits = value.strip()
            return int(digits) if digits.isdigit() and len(digits) <= MOST_DIGITS else 0
    return 0


async def _whole(receive: Receive, largest: int) -> bytes:
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        part = message.get("body", b"")
        size += len(part)
        if size > largest:
            raise BodyTooLargeError
        parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts)


def again(body: bytes, receive: Receive) -> Receive:
    """What passes on a body that was read, and then what else comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return left.pop() if left else await receive()

    return replay


def json_of(body: bytes) -> Any:
    """JSON as Airflow will read it: of a key that is there twice, the last counts.

    :raises JsonOutOfBoundsError: depth, number of values, or a number.
    :raises ValueError: it is no JSON.
    """
    try:
        read = json.loads(
            body, parse_int=_whole_number, parse_float=_fraction, parse_constant=_constant
        )
    except RecursionError:
        raise JsonOutOfBoundsError(_TOO_DEEP) from None
    _see_to_shape(read)
    return read


_TOO_DEEP = f"nests lists and objects more than {DEEPEST_JSON} levels deep."


def _whole_number(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise JsonOutOfBoundsError(f"holds a number of more than {MOST_DIGITS} digits.")
    return int(text)


def _fraction(text: str) -> float:
    if len(text) > LONGEST_FRACTION or not isfinite(number := float(text)):
        raise JsonOutOfBoundsError("holds a number that no computer's floating point holds.")
    return number


def _constant(text: str) -> NoReturn:
    raise JsonOutOfBoundsError(f"holds {text}, which is no number of JSON.")


def _see_to_shape(read: Any) -> None:
    """Level by level, so that the depth of what is read costs no depth here."""
    level, values, containers, depth = [read], 0, 0, 0
    while level := [one for one in level if isinstance(one, (dict, list))]:
        depth += 1
        containers += len(level)
        if depth > DEEPEST_JSON:
            raise JsonOutOfBoundsError(_TOO_DEEP)
        level = [
            item for one in level for item in (one.values() if isinstance(one, Mapping) else one)
        ]
        values += len(level)
        if values > MOST_VALUES:
            raise JsonOutOfBoundsError(f"holds more than {MOST_VALUES:,} values.")
        if containers > MOST_CONTAINERS:
            raise JsonOutOfBoundsError(f"holds more than {MOST_CONTAINERS:,} lists and objects.")
