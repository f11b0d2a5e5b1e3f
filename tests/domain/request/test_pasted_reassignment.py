"""What people paste as a reassignment: Kafka's file, what its tool prints, and the other file."""

from __future__ import annotations

import json

import pytest

from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.pasted_reassignment import TakenFrom, read_reassignment, taken_from
from rehome.domain.request.request import request_to_params
from rehome.errors import InvalidRequestError

CURRENT = {"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}
PROPOSED = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [3, 4]}]}
PRINTED = (
    f"Current partition replica assignment\n{json.dumps(CURRENT)}\n\n"
    f"Proposed partition reassignment configuration\n{json.dumps(PROPOSED)}\n"
)


def refused(text: object) -> str:
    with pytest.raises(InvalidRequestError) as error:
        parse_request({"action": "reassign", "reassignment": text})
    (problem,) = error.value.problems
    return problem


def test_a_file_without_a_version_is_that_of_kafkas_tool() -> None:
    for source in (CURRENT, json.dumps(CURRENT)):
        found = read_reassignment(source)
        assert found == {"version": 1, **CURRENT}
        assert taken_from(found) is None


@pytest.mark.parametrize(
    "text",
    [
        PRINTED,
        PRINTED.replace("\n", "\r\n"),
        f"$ bin/kafka-reassign-partitions.sh --generate\n{PRINTED}\n$ ",
        PRINTED.replace(json.dumps(PROPOSED), json.dumps(PROPOSED, indent=2)),
    ],
    ids=["printed", "of another system", "within a shell", "over lines"],
)
def test_of_what_generate_prints_the_proposed_assignment_is_taken(text: str) -> None:
    request = parse_request({"action": "reassign", "reassignment": text})
    assert request.reassignment is not None
    assert request.reassignment["partitions"] == PROPOSED["partitions"]
    assert taken_from(request.reassignment) is TakenFrom.GENERATED
    again = parse_request(request_to_params(request), recorded=True)
    assert taken_from(again.reassignment) is TakenFrom.GENERATED


def test_what_execute_prints_says_only_where_replicas_were() -> None:
    printed = f"Current partition replica assignment\n\n{json.dumps(CURRENT)}\n\nSave this to use"
    assert "where replicas were" in refused(printed)


def test_two_proposals_are_one_too_many() -> None:
    assert "holds 2 proposed ones" in refused(PRINTED + PRINTED)
    heading = "Proposed partition reassignment configuration\n"
    assert "The proposed reassignment is not valid JSON" in refused(heading + "{")
    assert "must be" in refused(heading + "[1]")


@pytest.mark.parametrize("heading", ["", "Proposed partition reassignment configuration\n"])
def test_what_stands_twice_in_one_object_is_not_lost(heading: str) -> None:
    """JSON's readers keep the last one: the partitions before it would not be moved."""
    one = json.dumps(PROPOSED["partitions"])
    both = f'{heading}{{"version": 1, "partitions": {one}, "partitions": {one}}}'
    assert "reassignment names 'partitions' more than once." in refused(both)
    entry = '{"topic": "t", "partition": 0, "partition": 1, "replicas": [1]}'
    within = f'{heading}{{"version": 1, "partitions": [{entry}]}}'
    assert "reassignment names 'partition' more than once." in refused(within)


def test_a_file_of_topics_to_move_is_explained() -> None:
    file = {"version": 1, "topics": [{"topic": "foo1"}, {"topic": "foo2"}]}
    for source in (file, json.dumps(file)):
        said = refused(source)
        assert "a file of topics to move" in said
        assert "action rebalance with topics=foo1, foo2," in said
    many = {"topics": [{"topic": f"t{number}"} for number in range(12)]}
    assert "t9 and 2 more," in refused(many)
    assert "topics=those topics," in refused({"topics": "foo"})
    assert len(refused({"topics": [{"topic": "t" * 1_000_000}]})) < 500
