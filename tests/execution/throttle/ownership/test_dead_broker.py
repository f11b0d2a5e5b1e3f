"""A rate of a broker that dies, and had one of others: it is put back when the broker returns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehome.domain import clock
from rehome.domain.configs import ConfigResource
from rehome.domain.run.states import PlanState
from rehome.execution.throttle.clear import clear_throttle, sweep
from rehome.execution.throttle.keys import FOLLOWER_RATE
from rehome.execution.throttle.set_up import set_up_throttle
from tests.execution.throttle.ownership.box import Box
from tests.ledger.small_plans import move

THEIRS = "90000000"
BROKER = ConfigResource.broker(3)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    made = Box(tmp_path)
    made.model.actions.create_topic("t", [(1, 2)])
    with clock.replaced_by(made):
        made.sleep(1)
        yield made
    made.close()


def test_the_mark_of_a_rate_stays_until_the_rate_is_taken_back(box: Box) -> None:
    box.set(BROKER, FOLLOWER_RATE, THEIRS)
    plan, ledger = box.approved("a", "one", move("t", 0, (1, 2), (3, 2))), box.ledger("a")
    set_up_throttle(plan, ledger, box.own, 5_000_000)
    box.sleep(1)
    assert box.holds(BROKER, FOLLOWER_RATE) == "5000000"
    ledger.transition("one", PlanState.CANCELLED, "enough")
    box.model.actions.kill(3)
    box.sleep(15)
    owed = clear_throttle("one", ledger, box.own).owed
    assert {(entry.resource, entry.key) for entry in owed} == {(BROKER, FOLLOWER_RATE)}
    box.model.actions.start(3)
    box.sleep(15)
    assert sweep(ledger, box.own).owed == ()
    assert box.holds(BROKER, FOLLOWER_RATE) == THEIRS
    assert box.marks == set()
