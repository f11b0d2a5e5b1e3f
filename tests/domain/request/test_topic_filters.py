"""Which topics and partitions names, globs and regular expressions are of."""

from __future__ import annotations

import pytest

from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.topic_filters import TopicFilter, filters_cover, filters_in
from rehome.errors import InvalidRequestError


@pytest.mark.parametrize(
    ("texts", "topic", "partition", "internal", "covered"),
    [
        ((), "__consumer_offsets", 3, True, True),
        (("a*",), "abc", 0, False, True),
        (("*",), "__consumer_offsets", 0, True, False),
        (("__consumer_offsets",), "__consumer_offsets", 0, True, True),
        (("a",), "abc", 0, False, False),
        (("orders:7",), "orders", 7, False, True),
        (("orders:7",), "orders", 70, False, False),
        (("orders:7",), "orders", None, False, True),
        (("orders:3-9",), "orders", 3, False, True),
        (("orders:3-9",), "orders", 9, False, True),
        (("orders:3-9",), "orders", 10, False, False),
        (("orders:3-9", "orders:12"), "orders", 12, False, True),
        (("log*:0",), "logs", 0, False, True),
        (("log*:0",), "logs", 1, False, False),
        (("__consumer_offsets:4",), "__consumer_offsets", 4, True, True),
        (("re:log-[0-9]+",), "log-12", 0, False, True),
        (("re:log-[0-9]+",), "log-12b", 0, False, False),
        (("re:log-[0-9]+",), "a.log-12", 0, False, False),
        (("re:a|b",), "ab", 0, False, False),
        (("re:(?i)LOGS",), "logs", 0, False, True),
        (("re:.*",), "__consumer_offsets", 0, True, False),
    ],
)
def test_a_filter_is_of_what_it_names(
    texts: tuple[str, ...], topic: str, partition: int | None, internal: bool, covered: bool
) -> None:
    covers = filters_cover(texts, [topic, "other"])
    assert covers(topic, partition, internal) is covered


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("orders:", "after the colon come partitions"),
        ("orders:x", "after the colon come partitions"),
        ("orders:9-3", "after the colon come partitions"),
        ("orders:-1", "after the colon come partitions"),
        ("orders:1:2", "after the colon come partitions"),
        ("orders:9999999999", "after the colon come partitions"),
        (":1", "no topic can have this name"),
        ("re:(", "missing \\)"),
        ("re:)|(", "unexpected \\)"),
        ("re:(a)\\1", "invalid escape sequence"),
        ("re:(?=a)", "invalid perl operator"),
        ("re:" + "a" * 1001, "of 1001 characters; at most"),
        ("or ders", "has characters other than"),
    ],
)
def test_what_is_no_filter_is_refused_with_the_reason(text: str, problem: str) -> None:
    for name in ("topics", "exclude_topics"):
        with pytest.raises(InvalidRequestError, match=problem):
            parse_request({"action": "rebalance", name: [text]})


def test_filters_are_parameters() -> None:
    texts = ["orders:7", "logs-*:3-9", "re:(a|b){1,3}:?"]
    request = parse_request({"action": "rebalance", "topics": texts, "exclude_topics": texts})
    assert request.topics == request.exclude_topics == tuple(texts)


def test_a_text_is_parted_by_commas_and_white_space_but_not_within_an_expression() -> None:
    text = " orders:3-9,logs-*\n re:[ab]{1,3},\tpay, re:a{2,} "
    expected = ("orders:3-9", "logs-*", "re:[ab]{1,3}", "pay", "re:a{2,}")
    assert filters_in(text) == expected
    assert parse_request({"action": "rebalance", "topics": text}).topics == expected


@pytest.mark.timeout(20)  # by going back and forth it would take years
def test_an_expression_takes_time_by_the_length_of_names_alone() -> None:
    slow = TopicFilter.read("re:(a+)+(a|aa)*(.*a){20}b")
    names = ["a" * 249] * 1_000
    assert not any(slow.names(names))
