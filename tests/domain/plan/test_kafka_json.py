from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from rehome.domain.actions import Action
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.kafka_json import (
    KafkaFiles,
    reassignment_json,
    refuse_other_files,
    rollback_json,
)
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.plan_hash import PlanChangedError
from rehome.domain.reassignment_file import Assignment, parse_reassignment
from rehome.domain.request.request import ReassignmentRequest
from rehome.errors import InvalidRequestError
from rehome.warehouse import Warehouse
from tests.ledger.small_plans import make_plan

T0 = TopicPartition("t", 0)


def entry(**changes: Any) -> dict[str, Any]:
    return {"topic": "t", "partition": 0, "replicas": [1, 2]} | changes


def file(*entries: dict[str, Any] | str, version: int | str | None = 1) -> dict[str, Any]:
    return {"version": version, "partitions": list(entries)}


def test_both_files_have_exactly_kafkas_fields() -> None:
    move = Move(T0, (1, 2), (2, 3), 10, MoveReason.DRAIN, (), ("/a", "any"), ())
    assert reassignment_json([move]) == file(
        entry(replicas=[2, 3], log_dirs=["any", "any"]),
    )
    assert rollback_json([move]) == file(entry(replicas=[1, 2], log_dirs=["/a", "any"]))


def test_log_dirs_that_are_asked_for_are_written() -> None:
    move = Move(T0, (1, 2), (2, 1), 10, MoveReason.LOG_DIR, target_log_dirs=("/b", "any"))
    assert reassignment_json([move])["partitions"][0]["log_dirs"] == ["/b", "any"]
    assert rollback_json([move])["partitions"][0]["log_dirs"] == ["any", "any"]


def test_what_is_written_can_be_read() -> None:
    moves = [Move(T0, (1, 2), (2, 3), 10, MoveReason.DRAIN, (), ("/a", "/b"))]
    text = json.dumps(rollback_json(moves))
    assert parse_reassignment(text) == {T0: Assignment((1, 2), ("/a", "/b"))}


def test_log_dirs_may_be_left_out() -> None:
    assert parse_reassignment(file(entry())) == {T0: Assignment((1, 2), ("any", "any"))}


def test_a_file_without_a_version_is_of_the_first() -> None:
    assert parse_reassignment({"partitions": [entry()]}) == parse_reassignment(file(entry()))


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("", "not valid JSON"),
        ("[]", '{"version":1,'),
        ('{"version":2,"partitions":[],"version":1}', "names 'version' more than once"),
        ({}, "non-empty list"),
        (file(entry(), version=None), "version None"),
        (file(entry(), version=2), "version 2"),
        (file(entry(), version=True), "version True"),
        (file(entry(), version="1"), "version '1'"),
        (file(), "non-empty list"),
        ({"version": 1, "partitions": {"topic": "t"}}, "non-empty list"),
        (file("t-0"), "Entry 0 of 'partitions' is not an object"),
        (file({"partition": 0, "replicas": [1]}), "needs a topic and a partition number"),
        (file(entry(partition="0")), "needs a topic and a partition number"),
        (file(entry(partition=-1)), "needs a topic and a partition number"),
        (file(entry(replicas="1,2")), "list of broker ids"),
        (file(entry(replicas=[1, -2])), "list of broker ids"),
        (file(entry(replicas=[1, True])), "list of broker ids"),
        (file(entry(replicas=[])), "replica list is empty"),
        (file(entry(replicas=[1, 2, 1])), "broker 1 is listed more than once"),
        (file(entry(log_dirs=["any"])), "1 log_dirs for 2 replicas"),
        (file(entry(log_dirs="any")), "must be a list of paths"),
        (file(entry(log_dirs=["any", "data"])), "neither an absolute path nor 'any'"),
        (file(entry(), entry(replicas=[3])), "t-0 is listed more than once"),
    ],
)
def test_a_bad_file_is_refused_with_the_reason(source: dict[str, Any] | str, problem: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        parse_reassignment(source)
    assert len(refused.value.problems) == 1
    assert problem in refused.value.problems[0]


def test_every_bad_entry_is_named() -> None:
    bad = file(entry(replicas=[]), entry(partition=1, replicas=[2, 2]), entry(topic=""))
    with pytest.raises(InvalidRequestError) as refused:
        parse_reassignment(bad)
    assert len(refused.value.problems) == 3


def test_the_files_that_are_written_are_the_text_that_was_checked(tmp_path: Path) -> None:
    """Whatever a second rendering would have come to."""
    plan = make_plan("p")
    files = KafkaFiles.of(plan.moves)
    checked = KafkaFiles(files.reassignment + " ", files.rollback)
    directory = Warehouse(tmp_path.as_uri()).plan("p")
    directory.save(
        checked.with_digests(plan), ReassignmentRequest(Action.DRAIN, brokers=(1,)), checked
    )
    for name, text in checked.texts.items():
        there = (tmp_path / "plans" / "p" / name).read_bytes()
        assert there == text.encode()
        assert checked.digests()[name] == hashlib.sha256(there).hexdigest()
    assert directory.file_digests() == checked.digests() == directory.load().summary.files
    refuse_other_files("p", directory.file_digests(), checked.digests())
    for name in checked.texts:
        other = checked.digests() | {name: "another"}
        with pytest.raises(PlanChangedError, match=f"{name} of plan p are not the bytes"):
            refuse_other_files("p", directory.file_digests(), other)
