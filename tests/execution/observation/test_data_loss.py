"""What counts as lost: a high watermark that falls, of the same topic, at a leader not older."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.kafka import (
    BrokerError,
    HighWatermark,
    PartitionState,
    TopicDescription,
    TopicPartition,
)
from rehome.domain.run.ledger_view import DataSeen
from rehome.execution.observation.data_loss import later
from tests.ledger.small_plans import move

TP = TopicPartition("t", 0)
MOVE = replace(move("t", 0, (1,), (3,)), topic_id="id")
WHOLE = HighWatermark(12_000, 3)


class Asked:
    """Of a port: topics, known to be up to date."""

    def __init__(self, topic_id: str | None = "id") -> None:
        self.topic_id = topic_id
        self.times = 0

    def current_topics(self, names: Any) -> dict[str, TopicDescription]:
        self.times += 1
        if self.topic_id is None:
            raise ClusterError("away")
        state = PartitionState(1, (1,), frozenset({1}))
        return {"t": TopicDescription("t", self.topic_id, False, {0: state})}


def found(
    asked: Asked, now: HighWatermark | BrokerError | None, before: HighWatermark | None = WHOLE
) -> DataSeen | None:
    read = {} if now is None else {TP: now}
    return later(cast(ClusterPort, asked), [MOVE], {TP: DataSeen(before)}, read).get(TP)


def test_nothing_is_asked_as_long_as_nothing_falls() -> None:
    asked = Asked()
    assert found(asked, HighWatermark(12_500, 4)) == DataSeen(HighWatermark(12_500, 4))
    assert found(asked, WHOLE) is None
    assert found(asked, HighWatermark(0, 0), before=None) == DataSeen(HighWatermark(0, 0))
    assert asked.times == 0


@pytest.mark.parametrize("epoch", [3, 5])
def test_a_high_watermark_that_falls_is_a_loss(epoch: int) -> None:
    lost = found(Asked(), HighWatermark(5_000, epoch))
    assert lost == DataSeen(HighWatermark(5_000, epoch), range(5_000, 12_000))


@pytest.mark.parametrize(
    ("asked", "now"),
    [
        (Asked(), HighWatermark(5_000, 2)),  # of a leader that was replaced, and does not know
        (Asked("another"), HighWatermark(0, 0)),
        (Asked("another"), HighWatermark(0, 3)),  # created again under the same name
        (Asked(None), HighWatermark(0, 5)),  # whether it is the same topic cannot be read now
        (Asked(), BrokerError(29, "TOPIC_AUTHORIZATION_FAILED")),
        (Asked(), BrokerError(78, "OFFSET_NOT_AVAILABLE")),
        (Asked(), None),
    ],
)
def test_of_anything_else_nothing_is_concluded(
    asked: Asked, now: HighWatermark | BrokerError | None
) -> None:
    assert found(asked, now) is None
