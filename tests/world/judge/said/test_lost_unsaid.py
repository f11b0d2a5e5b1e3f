"""A plan that is done says what is gone of what it has read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rehome.domain.claims import Placed
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.states import PlanState
from world.judge.flights import Span
from world.judge.lost_unsaid import lost_unsaid
from world.judge.placement import Partitions
from world.judge.plan_seen import PlanSeen
from world.judge.statements import Statement
from world.kafka.metadata import MetadataLog, Partition, PartitionKey, Table

PART, KEY = TopicPartition("t", 0), PartitionKey("id-of-t", 0)
PROVEN = Statement("A", "p", "verify", (Placed({PART: (2,)}),), since=55.0, at=56.0)


@pytest.mark.parametrize(
    ("state", "wiped_at", "said", "statements", "found"),
    [
        (PlanState.DONE, 40.0, frozenset(), (PROVEN,), [("t-0", 7.0)]),
        (PlanState.DONE, 57.0, frozenset(), (PROVEN,), []),
        (PlanState.DONE, 57.0, frozenset(), (), [("t-0", 7.0)]),
        (PlanState.DONE, 61.0, frozenset(), (), []),
        (PlanState.DONE, 40.0, frozenset({"t-0"}), (PROVEN,), []),
        (PlanState.FAILED, 40.0, frozenset(), (PROVEN,), []),
    ],
)
def test_what_was_gone_when_it_was_proven_is_said(
    state: PlanState,
    wiped_at: float,
    said: frozenset[str],
    statements: tuple[Statement, ...],
    found: list[tuple[str, float]],
) -> None:
    log = MetadataLog()
    topic = [Table("topics", "t", KEY.topic_id), Table("names", KEY.topic_id, "t")]
    log.append(0.0, [*topic, Table("partitions", KEY, Partition((2,), (2,), 2))])
    record: Any = SimpleNamespace(state=state)
    plan = PlanSeen(
        plan_id="p",
        by="A",
        moves={PART: (KEY.topic_id, (2,))},
        record=record,
        log_dirs=frozenset(),
        admitted=frozenset(),
        able=[Span(10.0, 60.0)],
        throttled=False,
        said_lost=said,
    )
    lost, wiped = {KEY: 7.0}, {KEY: wiped_at}
    assert [*lost_unsaid(Partitions.of(log), plan, statements, lost, wiped)] == found
