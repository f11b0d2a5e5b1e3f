"""Reassignments by the hook: another number of replicas needs leave, on every version of Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from rehome.domain.kafka import BrokerError, TopicPartition
from rehome.execution.direct.wanted_copies import (
    read_targets,
    refuse_other_counts,
    validate_targets,
)
from world.kafka.cluster import KafkaModel
from world.kafka.hooks import SetClock
from world.kafka.port import ModelPort

GROW, MOVE, FLIES, EMPTY = (TopicPartition("t", number) for number in range(4))
GONE = TopicPartition("gone", 0)
VERSIONS = [(4, 0), (4, 4)]


@pytest.fixture(params=VERSIONS, ids=str)
def port(request: pytest.FixtureRequest) -> ModelPort:
    model = KafkaModel(SetClock(), Random(1), 4, request.param)
    model.actions.create_topic("t", [[1, 2]] * 4)
    model.advance_to(1)
    port = model.port()
    model.actions.kill(4)
    model.advance_to(60)
    started = port.alter_reassignments({FLIES: [1, 2, 4]}, allow_replication_factor_change=True)
    assert started == {FLIES: None}
    return port


def codes(verdicts: Mapping[TopicPartition, BrokerError | None]) -> dict[TopicPartition, int]:
    return {part: 0 if said is None else said.code for part, said in verdicts.items()}


def test_another_number_of_replicas_has_the_verdict_of_a_newer_controller(port: ModelPort) -> None:
    targets = {GROW: [1, 2, 3], MOVE: [1, 3], FLIES: [1, 2], EMPTY: [], GONE: [1]}
    said = validate_targets(port, targets)
    refused = refuse_other_counts(port, targets, read_targets(port, targets))
    sent = {part: target for part, target in targets.items() if part not in refused}
    assert {**port.alter_reassignments(sent), **refused} == said
    assert codes(said) == {GROW: 38, MOVE: 0, FLIES: 38, EMPTY: 39, GONE: 3}
    found = port.list_reassignments([GROW, FLIES])
    assert {part: each.target for part, each in found.items()} == {FLIES: (1, 2, 4)}


def test_what_is_cancelled_has_no_number(port: ModelPort) -> None:
    targets = {FLIES: None, MOVE: None}
    assert refuse_other_counts(port, targets, read_targets(port, targets)) == {}
