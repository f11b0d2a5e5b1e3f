"""What JSON may hold, and how large and how slow a body may be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rehome.api.bounded import (
    DEEPEST_JSON,
    LARGEST_BODY_BYTES,
    MOST_CONTAINERS,
    MOST_VALUES,
    JsonOutOfBoundsError,
    json_of,
    to_be_closed,
)
from tests.plugins.processor_time import in_megabytes_of_json


@pytest.mark.parametrize(
    "text", ["3", '"x"', "[]", '{"a": 1, "a": 2}', "1.5e3", "-12", "null", '{"a": [1, {"b": []}]}']
)
def test_what_is_within_bounds_is_read_as_json_reads_it(text: str) -> None:
    assert json_of(text.encode()) == json.loads(text)
    assert json_of(text.encode("utf-16")) == json.loads(text)


def nested(levels: int, opening: str = "[", closing: str = "]", inner: str = "") -> bytes:
    return (opening * levels + inner + closing * levels).encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "part"),
    [
        (nested(DEEPEST_JSON + 1), "levels"),
        (nested(DEEPEST_JSON + 1, '{"a":', "}", "1"), "levels"),
        (nested(10_000), "levels"),
        (b"[" * LARGEST_BODY_BYTES, "levels"),
        (b"1" * 21, "digits"),
        (b"1" * LARGEST_BODY_BYTES, "digits"),
        (b"-1" + b"0" * 400, "digits"),
        (b"1e999", "floating point"),
        (b"1." + b"0" * 900_000, "floating point"),
        (b"[NaN]", "NaN"),
        (b"[-Infinity]", "-Infinity"),
        (b"[" + b"1," * MOST_VALUES + b"1]", "values"),
        (b"[" + b"[]," * MOST_CONTAINERS + b"1]", "lists and objects"),
    ],
)
def test_what_is_out_of_bounds_is_refused_in_a_moment(text: bytes, part: str) -> None:
    def refused() -> None:
        with pytest.raises(JsonOutOfBoundsError, match=part):
            json_of(text)

    assert in_megabytes_of_json(refused) < 100


def test_depth_and_digits_at_their_bounds_are_read() -> None:
    found: Any = json_of(nested(DEEPEST_JSON))
    assert json_of(b"1" * 20) == 11111111111111111111
    for _ in range(DEEPEST_JSON - 1):
        (found,) = found
    assert found == []


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'{"a"}', b"1 2"])
def test_what_is_no_json_is_said_so(text: bytes) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 of whatever kind json raises
        json_of(text)
    assert not isinstance(error.value, JsonOutOfBoundsError)


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (401, {"content-length": "13000000"}, True),
        (403, {"content-length": "65537"}, True),
        (403, {"transfer-encoding": "chunked"}, True),
        (401, {"content-length": "400"}, False),
        (401, {}, False),
        (413, {"content-length": "13000000"}, False),  # or its client would not see the answer
        (413, {"content-length": "9" * 15}, True),
        (413, {"transfer-encoding": "chunked"}, True),
        (408, {"content-length": "400"}, True),
        (400, {"content-length": "400000"}, False),
    ],
)
def test_a_connection_is_closed_where_the_server_would_read_for_nothing(
    status: int, headers: dict[str, str], expected: bool
) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    assert to_be_closed({"headers": raw}, status) is expected
