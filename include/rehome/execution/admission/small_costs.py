"""What small moves cost brokers, which is hardly ever the bytes that they copy.

Each changes the metadata of its partition a few times, and at each change every broker makes a new
table of its topic's partitions: so a move costs the more, the larger its topic is
(docs/decisions/155).
"""

from __future__ import annotations

from collections.abc import Collection

from rehome.domain.plan.move import Move
from rehome.domain.run.pace import SMALL_MOVE_S, TOPIC_PARTITIONS


def mean_cost(moves: Collection[Move]) -> float:
    """Of a move on average; 1 = that of a topic of up to ``TOPIC_PARTITIONS``. A topic has at least
    as many partitions as the highest number of one that moves says.

    :param moves: the small ones of a plan; 1 where there are none.
    """
    if not moves:
        return 1.0
    highest: dict[str, int] = {}
    for topic, number in (move.partition for move in moves):
        highest[topic] = max(number, highest.get(topic, 0))
    costs = {t: max(1.0, (number + 1) / TOPIC_PARTITIONS) for t, number in highest.items()}
    return sum(costs[move.partition.topic] for move in moves) / len(moves)


def takes_s(moves: Collection[Move]) -> float:
    """Seconds that brokers may take for these small moves, one after the other."""
    return SMALL_MOVE_S * mean_cost(moves) * len(moves)
