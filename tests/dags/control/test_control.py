"""Pause, resume, another throttle, cancel: requested for a running plan by its id."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.flows import RateReason
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.governor.control_loop import first_rate
from rehome.execution.throttle.keys import FOLLOWER_RATE, LEADER_RATE
from rehome.ledger.store import Ledger
from rehome.run.context import RunContext
from rehome.warehouse import PlanDirectory
from tests.dags.clusters import no_throttles, state_of, throttles_become, throttles_of, to
from tests.dags.runs import Run
from tests.dags.site import Site

CRAWL = 10_000
"""Bytes per second at which a copy of 5 MB outlasts any test."""
FAST = 20_000_000

Rehome = Callable[..., Run]


@pytest.fixture
def in_mid_run(
    monkeypatch: pytest.MonkeyPatch, ledger: Ledger, gateway: ClusterGateway
) -> Callable[[Callable[[str], None]], list[int | None]]:
    """Has a function called with the plan's id, once, when a poll has found it in flight.

    Returns the rates that each later poll finds on the cluster.
    """
    from rehome.triggers.watch import PlanWatch, PollOutcome

    def arrange(ask: Callable[[str], None]) -> list[int | None]:
        real, rates = PlanWatch.poll, list[int | None]()
        asked: list[str] = []

        def poll(watch: PlanWatch) -> PollOutcome:
            if asked:
                rate = throttles_of(gateway, [])["broker "].get(LEADER_RATE)
                rates.append(None if rate is None else int(rate))
            found = real(watch)
            if not asked and gateway.list_reassignments():
                (plan,) = ledger.plans()  # later there may be its rollback, too
                asked.append(plan.plan_id)
                ask(plan.plan_id)
            return found

        monkeypatch.setattr(PlanWatch, "poll", poll)
        return rates

    return arrange


def request(plan_id: str, action: str, **params: Any) -> None:
    """What the task of `control_reassignment` does; `dag.test()` cannot run inside of another."""
    from rehome.operators.control import ControlReassignmentOperator

    task = ControlReassignmentOperator(task_id="request", kafka_config_id="kafka_default")
    run = SimpleNamespace(
        dag_id="control_reassignment",
        run_id=f"manual__{uuid4()}",
        triggering_user_name="ann",
        run_type="manual",
    )
    asked = {"plan_id": plan_id, "action": action, **params}
    task.step(RunContext({"params": asked, "dag_run": run, "task": task, "ti": None}))


def replicas_of(site: Site, topic: str) -> tuple[int, ...]:
    return site.gateway.describe_topics([topic])[topic].partitions[0].replicas


def started_run(plan_id: str) -> dict[str, Any]:
    """The parameters of the run that `control_reassignment` has started for a plan."""
    from airflow.models import DagRun
    from airflow.utils.session import create_session

    with create_session() as session:
        runs = (
            session.query(DagRun)
            .filter(DagRun.dag_id == "reassign_partitions", DagRun.run_id.like("control__%"))
            .all()
        )
        (conf,) = (dict(run.conf) for run in runs if run.conf["plan_id"] == plan_id)
        return conf


def test_a_throttle_changes_within_one_poll_and_a_paused_plan_is_resumed_by_a_run(
    in_mid_run: Callable[..., list[int | None]], site: Site
) -> None:
    topic = site.topics.create([[1, 2], [1, 2]])
    site.topics.fill(topic, 500, size_bytes=10_000)
    before = no_throttles(site.gateway, [topic])

    def ask(plan_id: str) -> None:
        request(plan_id, "change_throttle", throttle=FAST // 2)
        request(plan_id, "pause")

    rates = in_mid_run(ask)
    run = site.run(
        action="reassign",
        reassignment=to(topic, {0: [3, 2], 1: [3, 2]}),
        throttle=CRAWL,
        max_moves_per_broker=1,
    )
    assert rates[:1] == [first_rate(CRAWL)]
    faster = pytest.approx(first_rate(FAST // 2), rel=1e-3)
    assert rates[1:] == [faster] * len(rates[1:]), "the first poll after the request passes it on"
    assert run.state == "success", run.log
    (plan,) = site.ledger.plans()
    assert (plan.state, plan.pause_requested) == (PlanState.PAUSED, True)
    moves = site.ledger.moves(plan.plan_id).values()
    assert sorted(move.state for move in moves) == [MoveState.DONE, MoveState.PENDING]
    assert [
        (change.target_bytes_per_s, change.cause)
        for change in site.ledger.rate_changes(plan.plan_id)
        if change.reason is RateReason.REQUESTED
    ] == [(FAST // 2, "requested")]
    throttles_become(site.gateway, [topic], before)

    asked = {"action": "change_throttle", "throttle": FAST}
    changed = site.run(dag="control_reassignment", plan_id=plan.plan_id, **asked)
    assert (changed.state, changed.tasks["start"]) == ("success", "skipped"), changed.log
    resumed = site.run(dag="control_reassignment", plan_id=plan.plan_id, action="resume")
    assert (resumed.state, resumed.tasks["start"]) == ("success", "success"), resumed.log
    conf = started_run(plan.plan_id)
    assert (conf["plan_id"], conf["throttle"]) == (plan.plan_id, FAST)
    rest = site.run(**conf)
    assert rest.state == "success", rest.log
    assert [(p.plan_id, p.state) for p in site.ledger.plans()] == [(plan.plan_id, PlanState.DONE)]
    partitions = site.gateway.describe_topics([topic])[topic].partitions
    assert [partitions[n].replicas for n in (0, 1)] == [(3, 2), (3, 2)]
    assert len(site.ledger.reassignments(plan.plan_id)) == 2, "nothing is moved twice"
    throttles_become(site.gateway, [topic], before)


def test_a_cancelled_plan_leaves_nothing_in_flight_and_no_throttle_and_is_taken_back(
    in_mid_run: Callable[..., list[int | None]], site: Site
) -> None:
    topic = site.topics.create([[1, 2], [2, 1]])
    site.topics.fill(topic, 1_000, size_bytes=10_000)
    small = site.topics.create([[3, 1]])  # no other copy leaves its leader, or enters broker 2
    before = state_of(site.gateway, [topic])

    def ask(plan_id: str) -> None:
        wait_until(lambda: replicas_of(site, small) == (3, 2), "the small partition to move")
        request(plan_id, "cancel")

    in_mid_run(ask)
    wanted = to(topic, {0: [3, 2], 1: [3, 1]})
    wanted["partitions"] += to(small, {0: [3, 2]})["partitions"]
    run = site.run(action="reassign", reassignment=wanted, throttle=CRAWL)
    assert run.state == run.tasks["verdict"] == "failed", run.log
    assert run.tasks["clear_throttle"] == "success", run.log
    (plan,) = site.ledger.plans()
    assert (plan.state, plan.cause) == (PlanState.CANCELLED, "cancel requested")
    states = [record.state for record in site.ledger.moves(plan.plan_id).values()]
    assert sorted(states) == [MoveState.CANCELLED, MoveState.CANCELLED, MoveState.DONE]
    assert not site.ledger.throttles(open_only=True)
    wait_until(lambda: state_of(site.gateway, [topic]) == before, "the cluster as it was")
    late = site.run(dag="control_reassignment", plan_id=plan.plan_id, action="pause")
    assert late.state == "failed"
    assert f"Plan {plan.plan_id} is cancelled and has ended" in late.log
    assert "This step has changed nothing" in late.log

    asked = site.run(
        dag="control_reassignment", plan_id=plan.plan_id, action="roll_back", throttle=FAST
    )
    assert (asked.state, asked.tasks["start"]) == ("success", "success"), asked.log
    conf = started_run(plan.plan_id)
    assert (conf["action"], conf["throttle"]) == ("rollback", FAST)
    back = site.run(**conf)
    assert back.state == "success", back.log
    rollback, taken_back = site.ledger.plans()
    assert list(site.ledger.moves(rollback.plan_id)) == [(small, 0)]
    assert FOLLOWER_RATE in {entry.key for entry in site.ledger.throttles(rollback.plan_id)}
    assert replicas_of(site, small) == (3, 1)
    assert taken_back.state is PlanState.ROLLED_BACK
    again = site.run(dag="control_reassignment", plan_id=plan.plan_id, action="roll_back")
    assert again.state == "failed"
    assert "The plan has been taken back already" in again.log


def test_an_unknown_plan_is_named(site: Site) -> None:
    run = site.run(dag="control_reassignment", plan_id="no-such-plan", action="cancel")
    assert (run.state, run.tasks["start"]) == ("failed", "upstream_failed")
    assert "The ledger knows no plan 'no-such-plan'" in run.log
    assert not site.ledger.plans()


def test_the_plan_that_a_dry_run_has_made_is_run_as_it_is(site: Site) -> None:
    """Only once, and also when other partitions of the cluster have changed since."""
    topic = site.topics.create([[4, 1], [4, 2], [1, 2]])
    asked = {"action": "drain", "brokers": [4], "topics": [topic], "throttle": FAST}
    tried = site.run(**asked, dry_run=True)
    assert tried.state == "success", tried.log
    (plan,) = site.ledger.plans()
    directory = PlanDirectory(plan.plan_dir)
    kept = {name: directory.read_text(name) for name in ("reassignment.json", "summary.json")}
    site.topics.create([[1, 2]])
    started = site.run(dag="control_reassignment", plan_id=plan.plan_id, action="run")
    assert (started.state, started.tasks["start"]) == ("success", "success"), started.log
    run = site.run(**started_run(plan.plan_id))
    assert run.state == "success", run.log
    (done,) = site.ledger.plans()
    assert (done.plan_id, done.state, done.plan_hash) == (
        plan.plan_id,
        PlanState.DONE,
        plan.plan_hash,
    )
    assert done.run_id != plan.run_id
    assert {name: directory.read_text(name) for name in kept} == kept
    partitions = site.gateway.describe_topics([topic])[topic].partitions.values()
    assert not [state for state in partitions if 4 in state.replicas]
    assert run.tasks["drained"] == "success", "a drain stays one, with all that belongs to it"
    again = site.run(dag="control_reassignment", plan_id=plan.plan_id, action="run")
    assert again.state == "failed"
    assert "is done and has ended" in again.log


def test_a_plan_that_a_dry_run_has_made_is_not_run_once_a_partition_has_moved(site: Site) -> None:
    topic = site.topics.create([[4, 1]])
    asked = {"action": "drain", "brokers": [4], "topics": [topic], "throttle": FAST}
    assert site.run(**asked, dry_run=True).state == "success"
    (plan,) = site.ledger.plans()
    assert not any(site.gateway.alter_reassignments({TopicPartition(topic, 0): [2, 1]}).values())
    wait_until(lambda: replicas_of(site, topic) == (2, 1), "another client's move to end")
    elsewhere = site.run(**asked, plan_id=plan.plan_id, cluster_id="another")
    assert elsewhere.tasks["snapshot"] == "failed"
    assert "not to another" in elsewhere.log
    run = site.run(**asked, plan_id=plan.plan_id)
    assert run.state == run.tasks["snapshot"] == "failed"
    assert f"{topic}-0" in run.log
    assert site.ledger.plan(plan.plan_id).state is PlanState.PLANNED
    assert replicas_of(site, topic) == (2, 1)
