"""A step that begins a plan gives the lease back where the plan does not begin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.run.states import PlanState
from rehome.execution.access.lease import hold
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.observation.drift import DriftError
from rehome.ledger.base.database import LedgerUnavailableError
from rehome.ledger.base.records import PlanRecord, driver_name
from rehome.ledger.store import Ledger
from tests.ledger.small_plans import make_plan, move

CLUSTER = SimpleNamespace(describe_cluster=lambda: SimpleNamespace(cluster_id="c1"))
"""Nothing more is asked of it here."""
OWNER = driver_name("reassign_partitions", "run-1")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as opened:
        plan = make_plan("p1", move("t", 0, (1, 2), (3, 2), 1), cluster_id="c1")
        opened.create_plan(plan, {}, "file:///nowhere", "run-1", "ann", None, "reassign_partitions")
        opened.approve("p1", plan.plan_hash, "ann")
        yield opened


@pytest.mark.parametrize("ends", [None, PlanState.FAILED])
def test_the_lease_of_a_plan_that_does_not_begin_is_free_at_once(
    ledger: Ledger, ends: PlanState | None
) -> None:
    own = OwnCluster.of_plan(cast(ClusterPort, CLUSTER), ledger.plan("p1"))

    def begin() -> None:
        with hold(ledger, own, OWNER, 60.0, plan_id="p1", begins=True) as held:
            if ends is not None:
                held.ledger.transition("p1", ends, "the cluster has changed")
            raise DriftError("the cluster has changed")

    with pytest.raises(DriftError):
        begin()
    assert ledger.holder("c1") is None


def test_the_lease_of_a_plan_that_has_begun_is_kept_for_its_next_step(ledger: Ledger) -> None:
    own = OwnCluster.of_plan(cast(ClusterPort, CLUSTER), ledger.plan("p1"))
    with hold(ledger, own, OWNER, 60.0, plan_id="p1", begins=True) as held:
        held.ledger.claim("p1")
    holder = ledger.holder("c1")
    assert holder is not None
    assert holder.owner == OWNER


def test_a_ledger_that_is_away_by_then_hides_no_refusal(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = OwnCluster.of_plan(cast(ClusterPort, CLUSTER), ledger.plan("p1"))

    def away(plan_id: str) -> PlanRecord:
        raise LedgerUnavailableError("the ledger is away", state_left="", next_step="")

    def begin() -> None:
        with hold(ledger, own, OWNER, 60.0, plan_id="p1", begins=True):
            monkeypatch.setattr(ledger, "plan", away)
            raise DriftError("the cluster has changed")

    with pytest.raises(DriftError):
        begin()
    assert ledger.holder("c1") is not None, "it runs out by itself"
