"""A sweep while a plan starts."""

from __future__ import annotations

from typing import Any, cast

from rehome.domain.configs import ConfigResource
from rehome.domain.plan.plan import Plan
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.throttle.keys import LEADER_RATE
from rehome.execution.throttle.set_up import Cleared, sweep
from rehome.ledger.base.records import ThrottleEntry
from rehome.ledger.store import Ledger
from tests.execution.simulated_cluster import SimulatedCluster
from tests.ledger.small_plans import move


class _StartsInBetween:
    """The ledger; after the first reading from it another process starts the plan."""

    def __init__(self, ledger: Ledger, plan: Plan) -> None:
        self._ledger, self._plan, self._started = ledger, plan, False

    def __getattr__(self, name: str) -> Any:
        def read(*args: Any, **options: Any) -> Any:
            found = getattr(self._ledger, name)(*args, **options)
            if not self._started:
                self._started = True
                self._start()
            return found

        return read

    def _start(self) -> None:
        self._ledger.claim(self._plan.plan_id)
        where = (self._plan.plan_id, self._plan.cluster_id, ConfigResource.cluster_default())
        entry = ThrottleEntry(*where, LEADER_RATE, ("1000",), None, "NOT_SET")
        self._ledger.journal_throttles([entry])


def test_a_sweep_leaves_the_throttle_of_a_plan_that_starts_during_the_sweep(
    ledger: Ledger, approved: Any
) -> None:
    plan = approved(move("t", 0, (1, 2), (3, 2)), cluster_id="sim")
    cluster = cast(OwnCluster, SimulatedCluster([1, 2, 3], plan.moves))
    racing = _StartsInBetween(ledger, plan)
    assert sweep(cast(Ledger, racing), cluster) == Cleared()
    (entry,) = ledger.throttles(plan.plan_id)
    assert entry.state.value != "owed"
