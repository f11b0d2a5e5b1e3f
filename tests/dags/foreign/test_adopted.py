"""What Kafka's own tool has started becomes a plan, as a person approves: `dag.test()`."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import MoveState, PlanState
from tests.dags.approval.answers import Given, answered
from tests.dags.clusters import Throttles, state_of
from tests.dags.conftest import Throttle
from tests.dags.foreign.by_the_tool import DAG, crawling, started_by_the_tool
from tests.dags.foreign.once_adopted import kinds, once_adopted
from tests.dags.site import Site


def test_it_goes_on_as_a_plan_to_its_end_beside_the_throttle_of_others(
    another_clients_throttle: Throttle,
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, _ = crawling(site, tmp_path, another_clients_throttle, 4)
    theirs: list[Throttles] = []
    asked = answered(monkeypatch, lambda _: Given())
    with once_adopted(site, lambda: theirs.append(another_clients_throttle(topic, 5_000_000))):
        run = site.run(dag=DAG, action="adopt", topics=[topic], throttle=5_000_000)
    assert run.state == "success", run.log
    assert {run.tasks[task] for task in ("follow", "cancel")} == {"skipped"}
    assert {run.tasks[task] for task in ("adopt", "progress", "clear_throttle", "verify")} == {
        "success"
    }
    (body,) = asked.bodies
    assert "**Adopt** 4 reassignments of other clients" in body
    assert "they become a plan of Rehome, at 5 MB/s" in body
    (plan,) = site.ledger.plans()
    assert (plan.state, plan.approver, plan.dag_id) == (PlanState.DONE, "ann", DAG)
    moves = site.ledger.moves(plan.plan_id)
    assert {move.state for move in moves.values()} == {MoveState.DONE}
    assert kinds(site).index(EventKind.ADOPTED) < kinds(site).index(EventKind.THROTTLE)
    state = state_of(site.gateway, [topic])
    assert state["replicas"] == {(topic, n): (3 + n % 2, 2) for n in range(4)}
    assert state["throttles"] == theirs[0]
    assert f"Plan {plan.plan_id} is done and verified" in run.log


def test_it_is_not_adopted_where_a_person_rejects_it(
    another_clients_throttle: Throttle,
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = site.topics.create([[1, 2]])
    site.topics.fill(topic, 300, size_bytes=10_000)
    theirs = another_clients_throttle(topic, 10_000)
    started_by_the_tool(site, tmp_path, topic, 1)
    answered(monkeypatch, lambda _: Given("Reject"))
    run = site.run(dag=DAG, action="adopt", topics=[topic])
    assert run.tasks["adopt"] == "skipped"
    assert run.state == "success", run.log
    assert not site.ledger.plans()
    (flying,) = site.gateway.list_reassignments()
    assert state_of(site.gateway, [topic])["throttles"] == theirs
    site.gateway.alter_reassignments({flying: None})
