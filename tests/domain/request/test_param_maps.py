from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rehome.domain.request.param_maps import (
    given_replicas,
    min_leaders,
    new_topics,
    partition_counts,
    rates_by_broker,
    replacements,
    tolerances,
    weights,
)
from rehome.domain.request.validation import read_params
from rehome.errors import InvalidRequestError
from rehome.execution.access.policy_keys import PolicyKeys


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"a": {"partitions": 2**31, "replication_factor": 3}}, "from 1 to 2147483647"),
        ({"a": {"partitions": 1, "replication_factor": 2**15}}, "from 1 to 32767"),
        ({"a/b": {"partitions": 1, "replication_factor": 1}}, "has characters other than"),
        ({"t" * 250: {"partitions": 1, "replication_factor": 1}}, "250 characters"),
    ],
)
def test_a_topic_that_kafka_could_not_create_is_refused(given: Any, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem) as refused:
        new_topics(given)
    assert len(refused.value.problems) == 1


def test_every_topic_with_too_many_partitions_is_named() -> None:
    with pytest.raises(InvalidRequestError) as refused:
        partition_counts({"a": 2**31, "b": 3, "c": 10**400})
    assert [("'a'" in text, "'c'" in text) for text in refused.value.problems] == [
        (True, False),
        (False, True),
    ]
    assert all(len(text) < 200 for text in refused.value.problems)


@pytest.mark.parametrize(
    "given", ['{"a": 4, "b": 3, "a": 2}', '{"a": 4, " a ": 2}', {"a": 4, "a ": 2}]
)
def test_a_topic_is_in_a_request_once(given: Any) -> None:
    with pytest.raises(ValueError, match="names 'a' more than once"):
        partition_counts(given)


@pytest.mark.parametrize(
    ("read", "given"),
    [
        (replacements, "3=7,3=8"),
        (replacements, "3=7, 03=8"),
        (replacements, {"3": 7, " 03": 8}),
        (weights, {"3": 1.0, "03": 2.0}),
        (weights, '{"+3": 1.0, "3": 2.0}'),
        (rates_by_broker, {"3": 5000, "03": 6000}),
    ],
)
def test_a_broker_is_named_once_however_its_id_is_written(
    read: Callable[[Any], object], given: Any
) -> None:
    with pytest.raises(ValueError, match="names '3' more than once"):
        read(given)


def test_topics_of_digits_are_other_topics_where_their_names_differ() -> None:
    assert partition_counts({"3": 4, "03": 5}) == {"03": 5, "3": 4}


def test_each_direction_of_a_broker_is_named_once() -> None:
    with pytest.raises(ValueError, match="names 'leader' more than once"):
        rates_by_broker('{"1": {"leader": 5000, "leader": 6000}}')


@pytest.mark.parametrize("broker", [2**31, -1, "x"])
def test_a_broker_that_there_cannot_be_is_named(broker: object) -> None:
    with pytest.raises(InvalidRequestError, match=f"names broker {broker!r}"):
        replacements({"1": broker})
    with pytest.raises(InvalidRequestError, match="names broker"):
        weights({str(broker): 1.0})


def test_replicas_are_a_list_of_brokers_for_each_new_partition() -> None:
    read = given_replicas('{"b": [[3, 1]], "a": [["1", 2], [2, 3]]}')
    assert read == {"a": ((1, 2), (2, 3)), "b": ((3, 1),)}


@pytest.mark.parametrize(
    ("lists", "problem"),
    [
        ([1, 2], "1 is no list"),
        ([[1], []], "is no list"),
        ([], "is no list"),
        ("[[1]]", "is no list"),
        ([[1, 2, 1]], r"\[1, 2, 1\] names broker 1 more than once"),
        ([[1, -1]], "names broker -1"),
    ],
)
def test_replicas_in_another_form_are_refused_by_the_topics_name(lists: Any, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem) as refused:
        given_replicas({"orders": lists, "fine": [[1]]})
    assert ["'orders'" in text for text in refused.value.problems] == [True]


def test_rates_of_brokers_are_of_one_direction_or_of_both() -> None:
    given = {"1": {"leader": "5 MB/s", "follower": 2_000_000}, "4": "1 MB/s", "5": {"leader": 1000}}
    read = rates_by_broker(given)
    assert read.leader == {1: 5_000_000, 4: 1_000_000, 5: 1000}
    assert read.follower == {1: 2_000_000, 4: 1_000_000}


@pytest.mark.parametrize(
    ("rates", "problem"),
    [
        (999, "holds 999, which is less than the least rate, 1000 bytes per second"),
        ({"leader": 999}, "holds 999, which is less than the least rate, 1000 bytes per second"),
        ({"sender": 5000}, "which is neither a rate nor rates of leader and follower"),
        ({}, "which is neither a rate nor rates of leader and follower"),
        ("fast", "is no rate such as"),
        (True, "is no rate such as"),
    ],
)
def test_a_brokers_rate_that_is_none_is_refused_by_its_id(rates: Any, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem) as refused:
        rates_by_broker({"3": rates, "4": 5000})
    assert ["'3'" in text for text in refused.value.problems] == [True]
    with pytest.raises(InvalidRequestError, match="names broker 'x'"):
        rates_by_broker({"x": 5000})


def test_each_name_with_a_wrong_value_is_named() -> None:
    for read, given in (
        (weights, {"1": True, "2": 1, "3": 0}),
        (tolerances, {"leaders": True, "replicas": None, "bytes_in": 1}),
        (min_leaders, {"a": 1.5, "b": "2", "c": 0}),
    ):
        with pytest.raises(InvalidRequestError) as refused:
            read(given)
        names = [repr(name) for name in given]
        assert [sum(name in text for name in names) for text in refused.value.problems] == [1, 1]


@pytest.mark.parametrize(
    ("described", "problem"),
    [
        ({"partitions": 1}, "replication_factor=None: it is needed"),
        ({"partitions": 1, "replication_factor": 1, "owner": "x"}, "unknown owner"),
        ({"partitions": 1, "replication_factor": 1, "configs": ["a"]}, r"configs=\['a'\] is not"),
        (
            {"partitions": 1, "replication_factor": 1, "configs": {"a": None}},
            "configs.a=None is neither text nor a number, true or false",
        ),
        (7, "7 is not a mapping"),
    ],
)
def test_what_is_wrong_with_a_new_topic_is_said_by_its_key(described: Any, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"new_topics of 'orders': {problem}"):
        new_topics({"orders": described})


def test_configs_of_a_new_topic_are_text_as_kafka_takes_it() -> None:
    configs = {"preallocate": True, "retention.ms": 5, "cleanup.policy": "compact"}
    read = new_topics({"t": {"partitions": 1, "replication_factor": "2", "configs": configs}})
    assert read["t"].configs == {
        "preallocate": "true",
        "retention.ms": "5",
        "cleanup.policy": "compact",
    }


def test_a_policys_rates_are_named_as_the_policy_has_them() -> None:
    problems = read_params(PolicyKeys, {"largest_throttle_by_broker": {"3": 5}}).problems
    assert [text.startswith("largest_throttle_by_broker of '3':") for text in problems] == [True]


@pytest.mark.parametrize(
    ("read", "given", "problem"),
    [
        (weights, {"[key]": 1}, r"weights of '\[key\]': "),
        (tolerances, {"[key]": 0.1}, r"tolerances of '\[key\]': names '\[key\]'"),
        (partition_counts, {"[key]": 0}, r"partitions of '\[key\]': 0 is not a whole number"),
        (
            new_topics,
            {"t": {"partitions": 1, "replication_factor": 1, "[key]": 1}},
            r"new_topics of 't': unknown \[key\]",
        ),
        (
            new_topics,
            {"t": {"partitions": 1, "replication_factor": 1, "configs": {"[key]": None}}},
            r"new_topics of 't': configs\.\[key\]=None is neither",
        ),
        (
            new_topics,
            {"t": {"partitions": 1, "replication_factor": 1, "configs": "x"}},
            r"new_topics of 't': configs='x' ",
        ),
        (weights, {"1": "2"}, "weights of '1': '2' is no weight"),
        (weights, {"1": float("inf")}, "weights of '1': inf is no weight"),
        (weights, {"1": True}, "weights of '1': True is no weight"),
    ],
)
def test_what_is_wrong_is_named_as_it_was_given(read: Any, given: Any, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        read(given)
