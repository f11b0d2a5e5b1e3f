"""Which rates would hold while a plan runs, from what brokers have set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from include.domain import clock
from include.domain.configs import ConfigResource
from include.execution.admission.slots import Direction, Slot
from include.execution.dry_run.cluster_state import read_cluster
from include.execution.dry_run.rates_found import find_rates
from include.execution.throttle.keys import FOLLOWER_RATE
from tests.execution.throttle.ownership.box import DEFAULT, Box
from tests.ledger.small_plans import move

RATE = 5_000_000


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    made = Box(tmp_path)
    made.model.actions.create_topic("a", [(1, 2)])
    with clock.replaced_by(made):
        made.sleep(1)
        yield made
    made.close()


def into(broker: int) -> Slot:
    return Slot(Direction.IN, broker)


def test_a_brokers_own_rate_goes_before_their_default_and_the_lower_one_holds(box: Box) -> None:
    plan = box.approved("a", "plan", move("a", 0, (1, 2), (3, 2)))

    def held() -> dict[Slot, int]:
        return dict(find_rates(plan, box.own, read_cluster(plan, box.own), RATE).held)

    assert held() == {}
    box.set(ConfigResource.broker(3), FOLLOWER_RATE, "1000")
    assert held() == {into(3): 1000}
    box.set(DEFAULT, FOLLOWER_RATE, "70")
    assert held() == {into(1): 70, into(2): 70, into(3): 1000}
    box.set(DEFAULT, FOLLOWER_RATE, str(2 * RATE))
    assert held() == {into(3): 1000}
    box.set(ConfigResource.broker(3), FOLLOWER_RATE, str(2 * RATE))
    assert held() == {}
