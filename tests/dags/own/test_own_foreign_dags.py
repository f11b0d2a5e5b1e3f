"""DAGs of people's own about what other clients have in flight."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.session.airflow_home import HOME  # noqa: F401 - before Airflow is imported

# isort: split
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, TaskGroup, task
from airflow.sdk.exceptions import ParamValidationError

from rehome.domain.kafka import TopicPartition
from rehome.domain.run.states import MoveState, PlanState
from rehome.errors import InvalidRequestError
from rehome.operators.foreign.adopt import AdoptReassignmentsOperator
from rehome.operators.foreign.approve import ApproveForeignOperator
from rehome.operators.foreign.look import FOREIGN_TASKS, LookAtReassignmentsOperator
from rehome.operators.throttle import ClearThrottleOperator
from rehome.params import fixed_foreign_params
from rehome.sensors.reassignment import ReassignmentSensor
from rehome.task_graph import foreign_reassignments
from rehome.trigger_check import is_ours, problems_of
from tests.dags.approval.answers import Given, answered
from tests.dags.clusters import Throttles, state_of
from tests.dags.conftest import CRAWL, Throttle
from tests.dags.foreign.by_the_tool import crawling, started_by_the_tool
from tests.dags.foreign.once_adopted import once_adopted
from tests.dags.own.how_to import OF_OTHERS, blocks, parsed
from tests.dags.runs import fresh_dag, register
from tests.dags.site import Site

OWN = "foreign_reassignments__own"
NAME_TAKEN = "The DAG has a group or task named foreign_reassignments already"


def own(dag_id: str = OWN, **values: Any) -> DAG:
    """A DAG with the group between two tasks of its author's."""
    with DAG(dag_id, schedule=None) as dag:

        @task
        def before() -> None: ...

        @task
        def after() -> None: ...

        before() >> foreign_reassignments(**values) >> after()
    return dag


def code_for(topic: str) -> str:
    """The DAG file of the how-to, for another topic and with a lower rate."""
    (code,) = blocks(OF_OTHERS)
    changed = code.replace('["orders"]', f'["{topic}"]').replace("50_000_000", "5_000_000")
    assert changed.count(topic) == 1
    return changed


def test_the_how_to_has_a_dag_of_about_twenty_lines(tmp_path: Path) -> None:
    (code,) = blocks(OF_OTHERS)
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    dag = parsed(code, tmp_path)
    assert {each.task_id for each in dag.tasks} == {
        *FOREIGN_TASKS,
        *("announce", "tell", "done"),
    } - {"follow", "cancel"}


@pytest.mark.parametrize(
    ("action", "tasks", "last"),
    [
        ("describe", {"look"}, "look"),
        ("follow", {"look", "follow"}, "follow"),
        ("cancel", {"look", "approve", "cancel"}, "cancel"),
        ("adopt", {*FOREIGN_TASKS, "done"} - {"follow", "cancel"}, "done"),
    ],
)
def test_the_group_has_the_tasks_of_its_action_linked_as_in_rehomes_own_dag(
    action: str, tasks: set[str], last: str
) -> None:
    chosen: dict[str, Any] = {"topics": ["orders"]} if action in ("cancel", "adopt") else {}
    dag, theirs = own(action=action, **chosen), fresh_dag("foreign_reassignments")
    assert {each.task_id for each in dag.tasks} == tasks | {"before", "after"}
    assert dag.get_task("look").upstream_task_ids == {"before"}
    assert dag.get_task("after").upstream_task_ids == {last}
    for name in tasks - {"look", "done"}:
        mine, rehomes = dag.get_task(name), theirs.get_task(name)
        assert mine.upstream_task_ids == rehomes.upstream_task_ids
        assert (mine.is_setup, mine.is_teardown, mine.pool, mine.retries) == (
            *(rehomes.is_setup, rehomes.is_teardown, rehomes.pool, rehomes.retries),
        )


def test_values_are_fixed_but_for_those_of_its_form() -> None:
    dag = own(action="adopt", form=["topics"], throttle=1_000_000)
    for name, other in (("throttle", 99_000_000), ("action", "cancel"), ("all_in_flight", True)):
        with pytest.raises(ParamValidationError):
            dag.params.get_param(name).resolve(other)
    assert dag.params.get_param("topics").resolve(["orders"]) == ["orders"]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"action": "adopt"}, "Action adopt needs topics, brokers, or all_in_flight"),
        ({"action": "take"}, "There is no action take: it is one of describe, follow, cancel"),
        ({"action": "adopt", "topic": ["a"]}, "There is no parameter topic"),
        ({"action": "cancel", "form": ["action"]}, "The action cannot be on the form"),
        ({"action": "cancel", "topics": ["a"], "throttle": 5000}, "throttle is for action adopt"),
    ],
)
def test_wrong_values_are_an_error_of_their_file(values: Any, why: str) -> None:
    with pytest.raises(InvalidRequestError, match=why) as refused:
        own(**values)
    assert "in the DAG's file" in str(refused.value)


def follows() -> None:
    foreign_reassignments(action="follow")


def twice() -> None:
    follows()
    follows()


def beside_a_task_of_its_name() -> None:
    EmptyOperator(task_id="foreign_reassignments")
    follows()


def within_a_group() -> None:
    with TaskGroup("mine"):
        follows()


def beside_a_task_look() -> None:
    LookAtReassignmentsOperator(task_id="look")
    follows()


@pytest.mark.parametrize(
    ("dag_id", "params", "write", "why"),
    [
        ("weekend", {}, follows, "begins with foreign_reassignments__, and this one is weekend"),
        (OWN, {}, twice, NAME_TAKEN),
        (OWN, {}, beside_a_task_of_its_name, NAME_TAKEN),
        (OWN, {}, within_a_group, "within the task group mine: call it in no task group"),
        (OWN, {}, beside_a_task_look, "has tasks of these ids already: look"),
        (OWN, {"topics": []}, follows, "has parameters of these names: topics"),
    ],
)
def test_a_dag_that_cannot_hold_the_group_of_others_is_told_why(
    dag_id: str, params: Any, write: Callable[[], None], why: str
) -> None:
    with pytest.raises(ValueError, match=why), DAG(dag_id, schedule=None, params=params):
        write()


def test_requests_to_it_are_guarded_and_what_its_file_fixes_is_not_asked_for() -> None:
    assert is_ours(OWN)
    assert problems_of(OWN, {"throttle": 5_000_000}) == ()
    assert problems_of("foreign_reassignments", {"throttle": 5_000_000}) != ()


def test_the_dag_of_the_how_to_adopts_what_kafkas_tool_has_started(
    another_clients_throttle: Throttle,
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, _ = crawling(site, tmp_path, another_clients_throttle, 2)
    theirs: list[Throttles] = []
    asked = answered(monkeypatch, lambda _: Given())
    dag = register(parsed(code_for(topic), tmp_path))
    with once_adopted(site, lambda: theirs.append(another_clients_throttle(topic, 5_000_000))):
        run = site.run(dag=dag)
    assert run.state == "success", run.log
    (body,) = asked.bodies
    assert f"- {topic}-0: adds [3], removes [1], leads to [3, 2]" in body
    (plan,) = site.ledger.plans()
    assert (plan.state, plan.approver, plan.dag_id) == (PlanState.DONE, "ann", dag.dag_id)
    states = {move.state for move in site.ledger.moves(plan.plan_id).values()}
    assert states == {MoveState.DONE}
    assert f"Plan {plan.plan_id} is done\n" in run.log
    state = state_of(site.gateway, [topic])
    assert state["replicas"] == {(topic, n): (3 + n % 2, 2) for n in range(2)}
    assert state["throttles"] == theirs[0]


def test_operators_one_by_one_adopt_it_and_return_the_digest_and_the_plan(
    another_clients_throttle: Throttle,
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, _ = crawling(site, tmp_path, another_clients_throttle, 1)
    asked = answered(monkeypatch, lambda _: Given())
    params = fixed_foreign_params("adopt", topics=[topic], throttle=5_000_000)
    with DAG(OWN, schedule=None, params=params) as dag:
        look = LookAtReassignmentsOperator(task_id="look")
        approve = ApproveForeignOperator(task_id="approve")
        adopt = AdoptReassignmentsOperator(task_id="adopt")
        progress = ReassignmentSensor(task_id="progress")
        clear = ClearThrottleOperator(task_id="clear_throttle")

        @task
        def tell(digest: str, plan_id: str) -> None:
            print(f"approved was {digest}, adopted as {plan_id}.")

        look >> approve >> adopt >> progress >> clear.as_teardown(setups=adopt)
        progress >> tell(look.output, adopt.output)
    with once_adopted(site, lambda: another_clients_throttle(topic, 5_000_000)):
        run = site.run(dag=register(dag))
    assert run.state == "success", run.log
    (plan,), (body,) = site.ledger.plans(), asked.bodies
    digest = body.partition("digest `")[2][:64]
    assert f"approved was {digest}, adopted as {plan.plan_id}." in run.log
    assert plan.state is PlanState.DONE


def test_without_a_persons_answer_to_the_run_nothing_is_adopted(
    another_clients_throttle: Throttle, site: Site, tmp_path: Path
) -> None:
    topic, theirs = crawling(site, tmp_path, another_clients_throttle, 1)
    params = fixed_foreign_params("adopt", topics=[topic], throttle=5_000_000)
    with DAG(OWN, schedule=None, params=params) as dag:
        look = LookAtReassignmentsOperator(task_id="look")
        look >> AdoptReassignmentsOperator(task_id="adopt")
    run = site.run(dag=register(dag))
    assert (run.tasks["look"], run.tasks["adopt"]) == ("success", "failed")
    assert "are not approved: no person has answered the question of the run." in run.log
    assert not site.ledger.plans()
    assert state_of(site.gateway, [topic])["throttles"] == theirs
    site.gateway.alter_reassignments({TopicPartition(topic, 0): None})


def test_nothing_after_the_group_runs_where_a_person_rejects_it_or_nothing_is_in_flight(
    another_clients_throttle: Throttle,
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = site.topics.create([[1, 2]])
    site.topics.fill(topic, 300, size_bytes=10_000)
    dag = register(parsed(code_for(topic), tmp_path))
    asked = answered(monkeypatch, lambda _: Given("Reject"))
    idle = site.run(dag=dag)
    assert (idle.tasks["look"], idle.tasks["done"], idle.tasks["tell"]) == (
        *("success", "skipped", "skipped"),
    ), idle.log
    assert asked.bodies == []
    theirs = another_clients_throttle(topic, CRAWL)
    started_by_the_tool(site, tmp_path, topic, 1)
    run = site.run(dag=dag)
    assert (run.tasks["adopt"], run.tasks["tell"]) == ("skipped", "skipped"), run.log
    assert len(asked.bodies) == 1
    assert not site.ledger.plans()
    assert set(site.gateway.list_reassignments()) == {TopicPartition(topic, 0)}
    assert state_of(site.gateway, [topic])["throttles"] == theirs
    site.gateway.alter_reassignments({TopicPartition(topic, 0): None})


def test_a_task_of_the_author_runs_whatever_its_id_is(site: Site) -> None:
    """Only an adoption has a task ``report`` of Rehome's: where it is not, the id is free."""
    with DAG(OWN, schedule=None) as dag:

        @task
        def report() -> None: ...

        foreign_reassignments(action="describe") >> report()
    run = site.run(dag=register(dag))
    assert (run.tasks["look"], run.tasks["report"]) == ("success", "success"), run.log


@pytest.mark.parametrize("action", ["describe", "follow"])
def test_what_comes_after_reading_runs_where_nothing_is_in_flight(action: str, site: Site) -> None:
    run = site.run(dag=register(own(action=action)))
    assert run.tasks["after"] == "success", run.log
