"""What a run that watching has started copies, as the judge counts it: at least."""

from __future__ import annotations

import pytest

from rehome.domain.kafka import TopicPartition
from tests.ledger.small_plans import move
from world.history import Alter
from world.rehome.watched_cluster import copied_bytes
from world.script import Topic

TOPICS = {"t": Topic("t", ((1, 2), (1, 2)), 1000)}
MOVES = (move("t", 0, (1, 2), (3, 4)), move("t", 1, (1, 2), (3, 2)))


def asked(number: int, size: float) -> Alter:
    part = TopicPartition("t", number)
    return Alter(1, 10.0, "W", "W:execute", part, (3, 2), size_bytes=size)


@pytest.mark.parametrize(
    ("sent", "copied"),
    [
        ((), 0),
        ((asked(0, 1000.0),), 2000),
        ((asked(0, 1000.0), asked(1, 1000.0)), 3000),
        ((asked(0, 0.0), asked(1, 1000.0)), 1000),  # its leader was wiped before
        ((asked(0, 1000.0), asked(0, 1500.0)), 2000),  # its second step
        ((asked(1, 1500.0),), 1000),  # producers have written since
    ],
)
def test_what_is_copied_is_what_leaders_had_when_it_was_sent(
    sent: tuple[Alter, ...], copied: int
) -> None:
    assert copied_bytes(TOPICS, MOVES, sent) == copied
