"""DAGs of people's own, with the task group, the hook or single operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.session.airflow_home import HOME  # noqa: F401 - before Airflow is imported

# isort: split
from airflow.sdk import DAG, TaskGroup, task
from airflow.sdk.exceptions import ParamValidationError

from local.process.waiting import wait_until
from rehome.domain.run.causes.cause import CauseKind
from rehome.domain.run.states import PlanState
from rehome.errors import InvalidRequestError
from rehome.operators.approval.approve import ApprovePlanOperator
from rehome.operators.completion.verify import VerifyReassignmentOperator
from rehome.operators.dry_run import DryRunOperator
from rehome.operators.execute import StartReassignmentOperator
from rehome.operators.plan import PlanReassignmentOperator
from rehome.operators.snapshot import SnapshotClusterOperator
from rehome.operators.throttle import ClearThrottleOperator, SetThrottleOperator
from rehome.params import FORM_DEFAULTS, fixed_params
from rehome.run.steps import OPERATORS, ChainStep
from rehome.sensors.reassignment import ReassignmentSensor
from rehome.task_graph import TASKS, reassign
from rehome.trigger_check import is_ours, problems_of
from tests.dags.approval.answers import REQUESTER, answered_by
from tests.dags.clusters import to
from tests.dags.own.how_to import blocks, parsed
from tests.dags.runs import register
from tests.dags.site import Site
from tests.execution.throttle.on_brokers import throttle_settings

OWN = "reassign_partitions__own"
DRAIN: Mapping[str, Any] = {"action": "drain", "brokers": [4]}


def upstream(dag: DAG) -> Mapping[str, set[str]]:
    return {each.task_id: set(each.upstream_task_ids) for each in dag.tasks}


def test_the_how_to_has_a_dag_of_about_twenty_lines_with_the_whole_chain(tmp_path: Path) -> None:
    code = blocks()[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    dag = parsed(code, tmp_path)
    before = upstream(dag)
    assert {*TASKS, "announce", "switch_off"} <= before.keys()
    assert before["snapshot"] == {"announce"}
    assert before["switch_off"] == {"done"}
    values = {name: dag.params[name] for name in FORM_DEFAULTS}
    assert values == {**FORM_DEFAULTS, "action": "drain", "brokers": [4], "throttle": "50 MB/s"}


@pytest.fixture
def own() -> Callable[..., DAG]:
    """Makes a DAG with the task group between two tasks of its author's, who has a parameter."""

    def make(dag_id: str = OWN, **values: Any) -> DAG:
        with DAG(dag_id, schedule=None, params={"greeting": "hello"}) as dag:

            @task
            def before() -> None: ...

            @task
            def after() -> None: ...

            before() >> reassign(**values) >> after()
        return dag

    return make


def test_the_group_is_linked_and_what_comes_after_it_waits_for_its_end(
    own: Callable[..., DAG],
) -> None:
    dag = own(action="drain", brokers=[4])
    links = upstream(dag)
    assert links["snapshot"] == {"before"}
    assert links["after"] == {"done"}
    assert links["done"] == {"drained", "follow_up.drained"}
    assert [each.task_id for each in dag.tasks if each.is_teardown and "." not in each.task_id] == [
        *("clear_throttle", "report", "verdict")
    ]


def test_values_are_fixed_but_for_those_of_the_form(own: Callable[..., DAG]) -> None:
    dag = own(form=["brokers"], action="drain", brokers=[4], throttle=1_000_000)
    for name, other in (("throttle", 99_000_000), ("action", "rebalance"), ("approval", True)):
        with pytest.raises(ParamValidationError):
            dag.params.get_param(name).resolve(other)
    assert dag.params.get_param("brokers").resolve([3]) == [3]
    assert dag.params.get_param("greeting").resolve("hi") == "hi"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"action": "drain"}, "Action drain needs brokers"),
        ({"action": "drain", "broker": [4]}, "There is no parameter broker"),
        ({"action": "drain", "brokers": [4], "form": ["what"]}, "There is no parameter what"),
        ({"action": "drain", "brokers": [4], "throttle": "fast"}, "throttle='fast'"),
    ],
)
def test_wrong_values_are_an_error_of_the_file(
    own: Callable[..., DAG], values: Any, why: str
) -> None:
    with pytest.raises(InvalidRequestError, match=why) as refused:
        own(**values)
    assert "in the DAG's file" in str(refused.value)


def twice() -> None:
    reassign(**DRAIN)
    reassign(**DRAIN)


def within_a_group() -> None:
    with TaskGroup("mine"):
        reassign(**DRAIN)


def beside_a_task_plan() -> None:
    PlanReassignmentOperator(task_id="plan")
    reassign(**DRAIN)


def once() -> None:
    reassign(**DRAIN)


@pytest.mark.parametrize(
    ("dag_id", "params", "write", "why"),
    [
        ("weekend", {}, once, "begins with reassign_partitions__, and this one is weekend"),
        ("reassign_partitions__", {}, once, "begins with reassign_partitions__"),
        (OWN, {}, twice, "The DAG has a group or task named reassign already"),
        (OWN, {}, within_a_group, "within the task group mine: call it in no task group"),
        (OWN, {}, beside_a_task_plan, "has tasks of these ids already: plan"),
        (OWN, {"brokers": [1]}, once, "has parameters of these names: brokers"),
    ],
)
def test_a_dag_that_cannot_hold_the_group_is_told_why(
    dag_id: str, params: Any, write: Callable[[], None], why: str
) -> None:
    with pytest.raises(ValueError, match=why), DAG(dag_id, schedule=None, params=params):
        write()


def test_requests_to_such_a_dag_are_guarded_and_its_fixed_values_are_not_asked_for() -> None:
    assert is_ours(OWN)
    assert problems_of(OWN, {}) == ()
    assert problems_of("reassign_partitions", {}) != ()


def test_each_operator_that_an_error_names_is_one_that_there_is() -> None:
    named = {
        ChainStep.SNAPSHOT: SnapshotClusterOperator,
        ChainStep.PLAN: PlanReassignmentOperator,
        ChainStep.DRY_RUN: DryRunOperator,
        ChainStep.APPROVE: ApprovePlanOperator,
        ChainStep.THROTTLE: SetThrottleOperator,
        ChainStep.PROGRESS: ReassignmentSensor,
    }
    assert OPERATORS.keys() == named.keys() == set(ChainStep)
    for step, operator in named.items():
        assert OPERATORS[step].startswith(f'{operator.__name__}(task_id="{step}"')


CHAIN: Mapping[str, Callable[[], Any]] = {
    "snapshot": lambda: SnapshotClusterOperator(task_id="snapshot", for_request=True),
    "plan": lambda: PlanReassignmentOperator(task_id="plan"),
    "dry_run": lambda: DryRunOperator(task_id="dry_run"),
    "approve": lambda: ApprovePlanOperator(task_id="approve"),
    "throttle": lambda: SetThrottleOperator(task_id="throttle"),
    "execute": lambda: StartReassignmentOperator(task_id="execute"),
    "progress": lambda: ReassignmentSensor(task_id="progress"),
    "verify": lambda: VerifyReassignmentOperator(task_id="verify"),
}
ALONE = (
    ("plan", (), "snapshot"),
    ("dry_run", (), "plan"),
    ("approve", (), "plan"),
    ("approve", ("snapshot", "plan"), "dry_run"),
    ("throttle", (), "plan"),
    ("throttle", ("snapshot", "plan"), "dry_run"),
    ("throttle", ("snapshot", "plan", "dry_run"), "approve"),
    ("execute", (), "plan"),
    ("execute", ("snapshot", "plan", "dry_run", "approve"), "throttle"),
    ("progress", (), "plan"),
    ("progress", ("snapshot", "plan", "dry_run", "approve"), "throttle"),
    ("verify", ("snapshot", "plan", "dry_run", "approve"), "progress"),
)


@pytest.mark.parametrize(("alone", "before", "needs"), ALONE, ids=str)
def test_an_operator_without_what_it_needs_names_it_and_how_to_add_it(
    site: Site, alone: str, before: tuple[str, ...], needs: str
) -> None:
    topic = site.topics.create([[1, 2]])
    wanted = to(topic, {0: [3, 2]})
    params = fixed_params(action="reassign", reassignment=wanted, throttle=20_000_000)
    with DAG(OWN, schedule=None, params=params) as dag:
        last = None
        for name in (*before, alone):
            made = CHAIN[name]()
            if last is not None:
                last >> made
            last = made
        if alone == "throttle" and needs == "dry_run":
            last >> CHAIN["dry_run"]()  # it is there, and in another place
    run = site.run(dag=register(dag))
    assert run.tasks[alone] == "failed", run.log
    assert f"The task {alone} needs what the task {needs} writes" in run.log
    if needs in dag.task_ids:
        assert f"write {needs} >> {alone}" in run.log
    else:
        assert f"Put {OPERATORS[ChainStep(needs)]} before it" in run.log
    cause = site.ledger.cause_of(OWN, run.run_id)
    assert cause is not None
    assert (cause.kind, cause.task_id) == (CauseKind.NOT_DONE, alone)
    assert site.gateway.list_reassignments() == {}
    assert throttle_settings(site.gateway, topic) == {}


def test_what_takes_back_may_stand_alone_for_there_is_nothing_to_take_back(site: Site) -> None:
    with DAG(OWN, schedule=None) as dag:
        ClearThrottleOperator(task_id="clear_throttle")
    run = site.run(dag=register(dag))
    assert run.state == "success", run.log
    assert "No plan was recorded" in run.log


def test_the_group_of_the_how_to_empties_a_broker_between_the_tasks_of_its_author(
    site: Site, tmp_path: Path
) -> None:
    topic = site.topics.create([[4, 2], [1, 2]])
    site.topics.fill(topic, 100)
    dag = register(parsed(blocks()[0], tmp_path))
    run = site.run(dag=dag)
    assert run.state == "success", run.log
    (plan,) = site.ledger.plans()
    assert (plan.state, plan.dag_id) == (PlanState.DONE, dag.dag_id)
    assert "Broker 4 is empty, and can be switched off" in run.log
    found = site.gateway.describe_topics([topic])[topic].partitions
    assert all(4 not in state.replicas for state in found.values())
    assert throttle_settings(site.gateway, topic) == {}


@pytest.mark.parametrize("by", [REQUESTER, "bob"])
def test_a_policy_that_asks_for_a_person_holds_in_a_dag_of_peoples_own(
    site: Site, own: Callable[..., DAG], monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """Nor may who has asked for it approve it, whatever the DAG's file has as ``approval``."""
    topic = site.topics.create([[1, 2]])
    wanted = to(topic, {0: [3, 2]})
    answered_by(monkeypatch, by)
    dag = register(own(action="reassign", reassignment=wanted, throttle="20 MB/s", approval=False))
    settings = {**site.cluster.client_settings(), "rehome.policy": {"approval": True}}
    run = site.rehome(settings, dag=dag)
    (plan,) = site.ledger.plans()
    if by == REQUESTER:
        assert (run.tasks["approve"], run.tasks["throttle"]) == ("failed", "upstream_failed")
        assert "another person has to approve it" in run.log
        assert run.tasks["after"] == "upstream_failed"
        assert site.gateway.describe_topics([topic])[topic].partitions[0].replicas == (1, 2)
    else:
        assert run.state == "success", run.log
        assert (plan.state, plan.approved_by) == (PlanState.DONE, "bob")
        assert run.tasks["after"] == "success"


def test_what_comes_after_a_dry_run_is_skipped(site: Site, own: Callable[..., DAG]) -> None:
    topic = site.topics.create([[1, 2]])
    wanted = to(topic, {0: [3, 2]})
    run = site.run(
        dag=register(own(action="reassign", reassignment=wanted, throttle="20 MB/s", dry_run=True))
    )
    assert run.tasks["dry_run"] == "success", run.log
    assert run.tasks["after"] == "skipped"
    assert site.gateway.describe_topics([topic])[topic].partitions[0].replicas == (1, 2)


def test_the_hook_of_the_how_to_moves_a_partition_and_leaves_no_throttle(
    site: Site, tmp_path: Path
) -> None:
    topic = site.topics.create([[1, 2]])
    site.topics.fill(topic, 100)
    code = blocks()[1].replace('"orders"', f'"{topic}"')
    assert topic in code
    run = site.run(dag=register(parsed(code, tmp_path)))
    assert run.state == "success", run.log
    wait_until(
        lambda: site.gateway.describe_topics([topic])[topic].partitions[0].replicas == (3, 2),
        "the new replicas in every broker's metadata",
    )
    assert throttle_settings(site.gateway, topic) == {}
