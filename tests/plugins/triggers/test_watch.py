"""The trigger's side of a plan, on a cluster in memory: what it stops without a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from rehome import installation
from rehome.domain.clock import utc_now
from rehome.domain.plan.plan import Plan
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import advance
from rehome.execution.throttle.set_up import set_up_throttle
from rehome.ledger.store import Ledger
from rehome.triggers.watch import PlanWatch
from tests.execution.simulated_cluster import SimulatedCluster
from tests.ledger.small_plans import make_plan, move

MOVES = move("t", 0, (1, 2), (3, 2)), move("t", 1, (1, 2), (3, 2))

TARGET = [{"topic": "t", "partition": n, "replicas": [3, 2]} for n in (0, 1)]
REASSIGN = {"action": "reassign", "reassignment": {"version": 1, "partitions": TARGET}}


class Gateway(SimulatedCluster):
    """What the trigger opens."""

    def close(self) -> None:
        pass


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    url = f"sqlite:///{tmp_path}/ledger.db"
    monkeypatch.setenv("REHOME_LEDGER_URL", url)
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    with Ledger.open(url) as ledger:
        yield ledger


@pytest.fixture
def flying(ledger: Ledger) -> Callable[..., tuple[Plan, Gateway]]:
    """A plan of which one move is in flight and one waits; its run lives."""

    def fly(**params: Any) -> tuple[Plan, Gateway]:
        plan, request = make_plan("p1", *MOVES, cluster_id="sim"), {**REASSIGN, **params}
        directory = installation.warehouse().plan("p1")
        directory.save(plan, parse_request(request, recorded=True))
        ledger.create_plan(plan, request, directory.uri, "run-1", "ann")
        ledger.approve("p1", plan.plan_hash, "ann")
        ledger.claim("p1")
        ledger.acquire_lease("sim", "run-1", 60.0)
        gateway = Gateway([1, 2, 3], plan.moves)
        cluster = OwnCluster.itself(cast(Any, gateway))
        set_up_throttle(plan, ledger, cluster, 1000)
        one = Policy(1000, max_partitions_in_flight=1)
        assert len(advance(plan, ledger, cluster, one).admitted) == 1
        return plan, gateway

    return fly


@pytest.mark.slow
@pytest.mark.parametrize("by", ["the window's end", "a cancel"])
def test_a_stop_waits_for_no_worker(
    by: str, ledger: Ledger, flying: Callable[..., tuple[Plan, Gateway]]
) -> None:
    closed = (utc_now() - timedelta(seconds=1)).isoformat()
    _, gateway = flying(**({"window_end": closed} if by == "the window's end" else {}))
    if by == "a cancel":
        ledger.request_cancel("p1", "ann")
    outcome = PlanWatch(cast(Any, gateway), "p1", installation.settings()).poll()
    record = ledger.plan("p1")
    paused = by == "the window's end"
    assert record.state is (PlanState.PAUSED if paused else PlanState.CANCELLED)
    assert outcome.reason == f"the plan is {record.state}"
    assert "1 move in flight was taken back, then its throttles" in outcome.text
    assert (gateway.targets, gateway.configs) == ({}, {})
    assert ledger.holder("sim") is None
    assert MoveState.ADMITTED not in ledger.view("p1").moves.values()


@pytest.mark.slow
def test_what_is_to_start_waits_for_a_worker(
    ledger: Ledger, flying: Callable[..., tuple[Plan, Gateway]]
) -> None:
    _, gateway = flying()
    started = dict(gateway.targets)
    watch = PlanWatch(cast(Any, gateway), "p1", installation.settings())
    assert watch.poll().reason == "there is something to do"
    assert gateway.targets == started
    assert list(ledger.view("p1").moves.values()).count(MoveState.PENDING) == 1


def test_a_lease_that_another_run_holds_wakes_the_worker_and_stops_nothing(
    ledger: Ledger, flying: Callable[..., tuple[Plan, Gateway]]
) -> None:
    _, gateway = flying()
    ledger.request_cancel("p1", "ann")
    ledger.acquire_lease("sim", "run-1", 0.0)
    ledger.acquire_lease("sim", "another", 60.0)
    outcome = PlanWatch(cast(Any, gateway), "p1", installation.settings()).poll()
    assert outcome.reason == "another run has taken the lease over"
    assert len(gateway.targets) == 1
