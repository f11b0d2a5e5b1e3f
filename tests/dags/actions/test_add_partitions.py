"""More partitions, on real brokers: placed, tried out, approved, created, proved, reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.kafka import TopicPartition
from rehome.domain.request.partition_counts import AddedPartitions, parse_partition_counts
from rehome.domain.run.event_kind import EventKind
from rehome.errors import InvalidRequestError
from rehome.ledger.store import Ledger
from rehome.operators.add_partitions import (
    NEW_PARTITIONS_FILE,
    ApprovePartitionsOperator,
    CreatePartitionsOperator,
    PlacePartitionsOperator,
    TryPartitionsOperator,
)
from rehome.run.context import RunContext
from tests.conftest import Topics
from tests.dags.approval.answers import Given, answered
from tests.dags.clusters import state_of
from tests.dags.runs import Run

DAG = "add_partitions"
Rehome = Callable[..., Run]


def placed(tmp_path: Path) -> AddedPartitions:
    (found,) = (tmp_path / "warehouse" / "plans").glob("*/new_partitions.json")
    return AddedPartitions.from_json(json.loads(found.read_text()))


def report(tmp_path: Path) -> str:
    (found,) = (tmp_path / "warehouse" / "plans").glob("*/report.html")
    return found.read_text()


def replicas_of(gateway: ClusterGateway, topic: str) -> dict[int, tuple[int, ...]]:
    partitions = gateway.describe_topics([topic])[topic].partitions
    return {number: state.replicas for number, state in sorted(partitions.items())}


def clear_tasks_of(
    plan: AddedPartitions,
    params: dict[str, Any],
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Carry each task of a run that is over out again, as after Airflow's Clear: all succeed."""
    asked = ledger.last_question(plan.plan_id)
    assert asked is not None
    run = SimpleNamespace(
        triggering_user_name=asked.question.askers.plan,
        dag_id=asked.question.dag_id,
        run_id=asked.question.run_id,
    )
    context: Any = {"params": params, "dag_run": run}
    cluster = {"kafka_config_id": "kafka_default"}
    with monkeypatch.context() as patched:
        patched.setattr(RunContext, "plan_id", plan.plan_id)
        for task in (
            PlacePartitionsOperator(task_id="place", **cluster),
            TryPartitionsOperator(task_id="dry_run", **cluster),
            ApprovePartitionsOperator(task_id="approve"),
            CreatePartitionsOperator(task_id="create", **cluster),
        ):
            task.execute(context | {"task": task})


def test_partitions_are_added_where_they_were_placed_and_a_dry_run_only_shows(
    cluster: LocalCluster,
    topics: Topics,
    gateway: ClusterGateway,
    ledger: Ledger,
    rehome: Rehome,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, other = topics.create([[1, 2], [3, 4]]), topics.create([[4]])
    before = state_of(gateway, [topic, other])
    wanted = {"partitions": {topic: 5, other: 2}, "exclude_brokers": [4]}
    dry = rehome(cluster, dag=DAG, dry_run=True, **wanted)
    assert dry.state == "success", dry.log
    assert dry.tasks["create"] == "skipped"
    assert state_of(gateway, [topic, other]) == before
    assert "Nothing was changed yet" in report(tmp_path)
    plan = placed(tmp_path)
    assert plan.totals == {topic: 5, other: 2}
    (tmp_path / "warehouse" / "plans" / plan.plan_id).rename(tmp_path / "dry")

    run = rehome(cluster, dag=DAG, **wanted)
    assert run.state == "success", run.log
    again = placed(tmp_path)
    assert again.assignments == plan.assignments, "the same cluster gives the same placement"
    new = {tp.partition: row for tp, row in again.assignments.items() if tp.topic == topic}
    assert replicas_of(gateway, topic) == {0: (1, 2), 1: (3, 4)} | new
    assert sorted(new) == [2, 3, 4]
    assert all(len(set(row)) == 2 and 4 not in row for row in new.values())
    assert replicas_of(gateway, other)[1] == again.assignments[TopicPartition(other, 1)]
    assert "a fresh read proves it" in report(tmp_path)
    kinds = [event.kind for event in ledger.events(again.plan_id)]
    assert kinds == [EventKind.ADDING_PARTITIONS, EventKind.PARTITIONS_ADDED]

    written = (tmp_path / "warehouse" / "plans" / again.plan_id / NEW_PARTITIONS_FILE).read_bytes()
    clear_tasks_of(again, wanted, ledger, monkeypatch)
    assert (
        tmp_path / "warehouse" / "plans" / again.plan_id / NEW_PARTITIONS_FILE
    ).read_bytes() == written
    assert replicas_of(gateway, topic) == {0: (1, 2), 1: (3, 4)} | new

    late = rehome(cluster, dag=DAG, **wanted)
    assert late.state == late.tasks["place"] == "failed"
    assert f"{topic} has 5 partitions already, and 5 were asked for" in late.log
    assert "This step has changed nothing" in late.log


def test_topics_are_created_by_the_rings_with_their_configs_and_a_bad_one_is_refused_beforehand(
    cluster: LocalCluster, gateway: ClusterGateway, rehome: Rehome, tmp_path: Path
) -> None:
    name = f"made-{tmp_path.name}"
    wanted = {"partitions": 6, "replication_factor": 2, "configs": {"retention.ms": "86400000"}}
    bad = wanted | {"configs": {"retention.ms": "soon"}}
    refused = rehome(cluster, dag=DAG, new_topics={name: bad})
    assert refused.state == refused.tasks["dry_run"] == "failed"
    assert "INVALID_CONFIG" in refused.log
    run = rehome(cluster, dag=DAG, new_topics={name: wanted})
    assert run.state == "success", run.log
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    try:
        found = admin.list_topics(name, timeout=60).topics[name].partitions
        assert sorted(found) == [0, 1, 2, 3, 4, 5]
        assert all(len(set(state.replicas)) == 2 for state in found.values())
        brokers = set(gateway.describe_cluster().brokers)
        assert {state.leader for state in found.values()} == brokers, "each broker leads"
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        (configs,) = [item.result() for item in admin.describe_configs([resource]).values()]
        assert configs["retention.ms"].value == "86400000"
        again = rehome(cluster, dag=DAG, new_topics={name: wanted})
        assert again.state == again.tasks["place"] == "failed"
        assert f"There is a topic '{name}' already" in again.log
    finally:
        admin.delete_topics([name])[name].result()


def test_kafkas_own_striping_goes_round_all_brokers_whatever_their_racks(
    cluster: LocalCluster, gateway: ClusterGateway, rehome: Rehome, tmp_path: Path
) -> None:
    name, brokers = f"striped-{tmp_path.name}", sorted(cluster.racks)
    wanted = {"partitions": 2 * len(brokers), "replication_factor": 2}
    run = rehome(cluster, dag=DAG, new_topics={name: wanted}, force_simple_assignment=True)
    assert run.state == "success", run.log
    try:
        rows = replicas_of(gateway, name)
        first = brokers.index(rows[0][0])
        for number in range(len(rows)):
            assert rows[number][0] == brokers[(first + number) % len(brokers)]
        zones = [{cluster.racks[broker].split("/")[1] for broker in row} for row in rows.values()]
        assert any(len(of) == 1 for of in zones), "rings would use both data centres each time"
    finally:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.delete_topics([name])[name].result()


def test_a_topic_that_changes_after_it_was_placed_is_left_alone(
    cluster: LocalCluster,
    topics: Topics,
    gateway: ClusterGateway,
    rehome: Rehome,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rehome.operators.add_partitions import ApprovePartitionsOperator

    topic = topics.create([[1]])
    really = ApprovePartitionsOperator.execute

    def another_client_is_faster(self: Any, context: Any) -> Any:
        assert gateway.create_partitions({topic: 2}, {topic: [[4]]}) == {topic: None}
        wait_until(lambda: len(replicas_of(gateway, topic)) == 2, "another client's partition")
        return really(self, context)

    monkeypatch.setattr(ApprovePartitionsOperator, "execute", another_client_is_faster)
    run = rehome(cluster, dag=DAG, partitions={topic: 3})
    assert run.state == run.tasks["create"] == "failed"
    assert f"{topic}: has 2 partitions, and had 1 when this was planned" in run.log
    assert replicas_of(gateway, topic) == {0: (1,), 1: (4,)}


@pytest.mark.parametrize(("answer", "partitions"), [("Approve", 2), ("Reject", 1)])
def test_a_person_decides_where_that_is_asked_for(
    answer: str,
    partitions: int,
    cluster: LocalCluster,
    topics: Topics,
    gateway: ClusterGateway,
    rehome: Rehome,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = answered(monkeypatch, lambda _: Given(answer))
    topic = topics.create([[1]])
    run = rehome(cluster, dag=DAG, partitions={topic: 2}, approval=True)
    assert run.state == "success", run.log
    assert run.tasks["create"] == ("success" if answer == "Approve" else "skipped")
    assert len(replicas_of(gateway, topic)) == partitions
    assert f"- {topic}: 2 partitions" in asked.bodies[0]


@pytest.mark.parametrize(
    ("after", "now", "refused_by", "reported"),
    [
        (
            ApprovePartitionsOperator,
            {"caps": {"default": {"replicas": 0}}},
            "create",
            ["and its cap leaves room for 0", "No partition was created. Trigger a new run"],
        ),
        (
            PlacePartitionsOperator,
            {"broker_sets": [{"name": "fast", "topics": ["*"], "brokers": [4]}]},
            "dry_run",
            ["is not of its broker set 'fast'", "No partition and no topic was created."],
        ),
    ],
    ids=["cap", "set"],
)
def test_limits_that_change_refuse_what_was_placed_before(
    after: Any,
    now: dict[str, Any],
    refused_by: str,
    reported: list[str],
    cluster: LocalCluster,
    topics: Topics,
    gateway: ClusterGateway,
    ledger: Ledger,
    rehome: Rehome,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "clusters.yaml"
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))

    def has(**values: Any) -> None:
        path.write_text(json.dumps({"clusters": {"a": {"connection": "kafka_default", **values}}}))

    really = after.execute

    def and_then(self: Any, context: Any) -> Any:
        result = really(self, context)
        has(**now)
        return result

    monkeypatch.setattr(after, "execute", and_then)
    topic = topics.create([[1, 2]])
    has(caps={"default": {"replicas": 9_000}})
    run = rehome(cluster, dag=DAG, partitions={topic: 3}, exclude_brokers=[4])
    assert run.state == run.tasks[refused_by] == "failed"
    assert all(text in run.log for text in reported), run.log
    assert replicas_of(gateway, topic) == {0: (1, 2)}
    assert EventKind.ADDING_PARTITIONS not in {event.kind for event in ledger.events()}
    own: dict[str, Any] = {"caps": {}, "broker_sets": []}
    has()
    run = rehome(cluster, dag=DAG, partitions={topic: 3}, exclude_brokers=[4], **own)
    assert run.state == "success", run.log
    assert len(replicas_of(gateway, topic)) == 3, "what the run states itself counts"


def test_a_placement_is_not_passed_where_no_snapshot_is_left_to_judge_it_by(
    cluster: LocalCluster,
    topics: Topics,
    gateway: ClusterGateway,
    rehome: Rehome,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    really = PlacePartitionsOperator.execute

    def and_then(self: Any, context: Any) -> Any:
        placed = really(self, context)
        monkeypatch.setattr(Ledger, "newest_snapshot", lambda *_: None)
        return placed

    monkeypatch.setattr(PlacePartitionsOperator, "execute", and_then)
    topic = topics.create([[1, 2]])
    run = rehome(cluster, dag=DAG, partitions={topic: 3})
    assert run.state == run.tasks["dry_run"] == "failed"
    assert "The ledger has no snapshot of cluster" in run.log
    assert "No partition was created. Trigger a new run" in run.log
    assert replicas_of(gateway, topic) == {0: (1, 2)}


def test_everything_that_is_wrong_with_a_request_is_reported_at_once() -> None:
    bad = {"partitions": {"a": 0, "b": "many"}, "exclude_brokers": "x", "partition": 1}
    with pytest.raises(InvalidRequestError) as refused:
        parse_partition_counts(bad)
    assert len(refused.value.problems) == 4
    with pytest.raises(InvalidRequestError, match="at least one topic"):
        parse_partition_counts({"partitions": {}})
    new = {"a": {"partitions": 1}, "b": 3, "c": {"partitions": 1, "replication_factor": 1, "x": 2}}
    with pytest.raises(InvalidRequestError) as refused:
        parse_partition_counts({"new_topics": new})
    assert len(refused.value.problems) == 3
    twice = {
        "partitions": {"a": 2},
        "new_topics": {"a": {"partitions": 1, "replication_factor": 1}},
    }
    with pytest.raises(InvalidRequestError, match="a is named in partitions and in new_topics"):
        parse_partition_counts(twice)


@pytest.mark.parametrize("task", ["approve", "dry_run"])
def test_a_task_that_was_set_to_success_by_hand_approves_no_partitions(
    task: str,
    cluster: LocalCluster,
    topics: Topics,
    gateway: ClusterGateway,
    rehome: Rehome,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the XComs that an earlier Rehome took for an approval."""

    def forged(self: Any, context: Any) -> str:
        context["ti"].xcom_push(key="approver", value="bob")
        return "a hash"

    operator, method = {
        "approve": (ApprovePartitionsOperator, "execute"),
        "dry_run": (TryPartitionsOperator, "step"),
    }[task]
    monkeypatch.setattr(operator, method, forged)
    topic = topics.create([[1]])
    policy = {"approval": True, "own_approval": True} if task == "approve" else {}
    kafka = {**cluster.client_settings(), "rehome.policy": policy}
    run = rehome(kafka, dag=DAG, partitions={topic: 2})
    refused_by = "create" if task == "approve" else "approve"
    assert run.state == run.tasks[refused_by] == "failed"
    assert f"the task {task} is not done, whatever its state says" in run.log.replace("The", "the")
    assert f"Clear the task {task}, with what comes after it" in run.log
    assert len(replicas_of(gateway, topic)) == 1


@pytest.mark.parametrize("begun", [False, True])
def test_what_one_person_has_asked_for_is_not_created_by_a_run_of_another(
    begun: bool,
    cluster: LocalCluster,
    topics: Topics,
    gateway: ClusterGateway,
    ledger: Ledger,
    rehome: Rehome,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run that is deleted and triggered again under its id has its plan id, too."""
    really = CreatePartitionsOperator.step

    def by_another(self: Any, context: Any) -> None:
        monkeypatch.setattr(RunContext, "actor", "bob")
        if begun:
            plan_id = context.plan_id
            ledger.add_event(EventKind.ADDING_PARTITIONS, "a test", plan_id=plan_id)
        really(self, context)

    monkeypatch.setattr(CreatePartitionsOperator, "step", by_another)
    topic = topics.create([[1]])
    run = rehome(cluster.client_settings(), dag=DAG, partitions={topic: 2})
    assert run.state == run.tasks["create"] == "failed"
    assert "another person has asked for what was approved" in run.log
    assert len(replicas_of(gateway, topic)) == 1
