"""Runs that take the lease of a cluster without a plan of their own are told apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehome import installation
from rehome.domain.run.states import PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.control import controller
from rehome.execution.control.cancel import Cancelled
from rehome.execution.throttle import set_up
from rehome.ledger.base.fencing import LeaseHeldError
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.operators.control import ControlReassignmentOperator
from rehome.operators.sweep import SweepThrottlesOperator
from rehome.run.context import RunContext
from tests.ledger.small_plans import make_plan

NIGHT = "scheduled__2030-01-01T01:00:00+00:00"
CLUSTER = SimpleNamespace(describe_cluster=lambda: SimpleNamespace(cluster_id="c1"))
"""Nothing more is asked of it here."""


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    with installation.open_ledger() as opened:
        yield opened


def run_of(dag_id: str, run_id: str) -> SimpleNamespace:
    return SimpleNamespace(
        dag_id=dag_id, run_id=run_id, triggering_user_name="ann", run_type="manual"
    )


def test_a_sweep_leaves_the_lease_to_another_dags_sweep_of_the_same_schedule(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two connections lead to one cluster: both runs have the same id."""
    swept: list[str] = []
    task = SweepThrottlesOperator(task_id="sweep", kafka_config_id="kafka_default")

    def sweep_by(dag_id: str) -> None:
        task.take_back(RunContext({"dag_run": run_of(dag_id, NIGHT)}), CLUSTER)  # type: ignore[arg-type]

    def sweep(held: Ledger, cluster: OwnCluster, cluster_id: str, *_: Any) -> set_up.Cleared:
        swept.append(cluster_id)
        if len(swept) == 1:
            sweep_by("sweep_throttles__two")
            held.renew_lease()  # as before each write: it fails where another run has taken over
        return set_up.Cleared((), ())

    monkeypatch.setattr(set_up, "sweep", sweep)
    sweep_by("sweep_throttles__one")
    assert swept == ["c1"]


def test_a_cancellation_leaves_the_lease_to_another_one_of_the_same_user(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan("p1")
    ledger.create_plan(plan, {}, "file:///nowhere", "a-run", "ann")
    ledger.approve("p1", plan.plan_hash, "ann")
    for state in (PlanState.RUNNING, PlanState.PAUSED):
        ledger.transition("p1", state, "because")

    def begin(
        record: PlanRecord,
        within: Ledger,
        cluster: OwnCluster,
        cause: str,
        owner: str,
        lease_s: float,
        *,
        actor: str,
    ) -> tuple[Cancelled, set_up.Cleared]:
        """Takes the lease, and is in the middle of it when another request comes."""
        within.acquire_lease(cluster.cluster_id, owner, lease_s)
        return Cancelled(), set_up.Cleared((), ())

    monkeypatch.setattr(controller, "give_up", begin)
    monkeypatch.setattr(RunContext, "gateway", lambda _: nullcontext(CLUSTER))
    task = ControlReassignmentOperator(task_id="request", kafka_config_id="kafka_default")

    def cancel(run_id: str) -> None:
        asked = {"plan_id": "p1", "action": "cancel"}
        run: dict[str, Any] = {"dag_run": run_of("control_reassignment", run_id)}
        task.step(RunContext({**run, "params": asked, "task": task, "ti": None}))

    cancel("first")
    with pytest.raises(LeaseHeldError, match="control_reassignment/first"):
        cancel("second")
    cancel("first")  # a retry of the same run goes on
