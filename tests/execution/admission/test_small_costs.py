"""What small moves cost brokers, by the size of their topics."""

from __future__ import annotations

import pytest

from rehome.domain.plan.move import Move
from rehome.domain.run.pace import TOPIC_PARTITIONS
from rehome.execution.admission.small_costs import mean_cost
from tests.ledger.small_plans import move


def empty(topic: str, *numbers: int) -> list[Move]:
    return [move(topic, number, (1, 2), (3, 2), 0) for number in numbers]


def test_moves_of_topics_that_are_not_large_cost_the_same() -> None:
    assert mean_cost(empty("t", *range(TOPIC_PARTITIONS))) == 1
    assert mean_cost(empty("t", 3)) == 1
    assert mean_cost([]) == 1


def test_a_topic_is_as_large_as_its_highest_number_says() -> None:
    few_of_a_large_one = empty("t", 5, 10 * TOPIC_PARTITIONS - 1)
    assert mean_cost(few_of_a_large_one) == 10
    assert mean_cost([*few_of_a_large_one, *empty("u", 0, 1)]) == pytest.approx(5.5)
