"""However a run is refused or fails: note, page, report and alert name what it was, first.

The real DAGs, operators, triggers and callbacks run in the stand-in for Airflow. One way for each
task and what it may meet there; what brokers or Airflow alone can do is raised where it comes in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rehome import spark_job
from rehome.alerts.kinds import AlertKind
from rehome.cluster.interface.errors import ClusterUnreachableError, MissingRightError, Unreachable
from rehome.clusters.binding import Misled, MisledBy, MisledError
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan_hash import PlanChangedError
from rehome.domain.run.approval_terms import Approval, Terms
from rehome.domain.run.askers import AskerKind
from rehome.domain.run.causes.cause import CauseKind
from rehome.domain.run.states import PlanState
from rehome.execution.access.connection_policy import PolicyError
from rehome.execution.access.policy_refusals import PolicyRefusal, RefusedBy
from rehome.execution.completion.verify import Elsewhere, ElsewhereKind, Verification
from rehome.execution.control.approval import Lapse
from rehome.execution.control.refused import ApprovalLapsedError
from rehome.execution.throttle.configs import ThrottleError
from rehome.executors import UnsharedLedgerError, UnsharedWarehouseError
from rehome.fleet.watch_runs import BrokerAwayError
from rehome.ledger.base.fencing import LeaseLostError
from rehome.run.authority.own_snapshot import SnapshotChangedError
from rehome.run.by_itself import LowersReplicationError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.run_note import LONGEST
from tests.dags.approval.answers import REJECT, Given, answered
from tests.plugins.run.causes.ended_runs import (
    MOVES,
    PLAN,
    START,
    Read,
    play,
    raising,
    readers,
    with_params,
)
from world.airflow.shape import graph_of
from world.script import Do, Plan, Topic, What

Prepare = Callable[[pytest.MonkeyPatch], None]
OPERATORS = "rehome.operators"


@dataclass(frozen=True)
class Way:
    """One way in which a run does not go through.

    :param said: part of the words that name it.
    :param head: how the head of page and report begins; "" = with the cause.
    :param succeeds: Airflow calls the run a success.
    """

    name: str
    task: str
    kind: CauseKind
    said: str
    prepare: Prepare | None = None
    does: tuple[Do, ...] = (START,)
    plan: Plan = PLAN
    head: str = ""
    succeeds: bool = False
    quiet_s: float = 200.0


def params(**values: Any) -> Prepare:
    return lambda patch: with_params(patch, values)


def failure(kind: str, message: str) -> Prepare:
    """The Spark application ends with a reason."""

    def prepare(patch: pytest.MonkeyPatch) -> None:
        import world.stage
        from rehome.run.causes.errors import EndedError

        def job(site: Any, operator: Any, _: Any) -> None:
            args = operator.application_args
            out = site.warehouse.plan_at(args[args.index("--out") + 1])
            out.write_json("failure.json", {"kind": kind, "message": message, "details": []})
            raise EndedError(TaskEnd(TaskReason.JOB_FAILED, said="exit code"))

        patch.setattr(world.stage, "plan_in_process", job)

    return prepare


def without_reason(patch: pytest.MonkeyPatch) -> None:
    """The hook of Spark fails, and nothing says why."""
    from rehome.run.causes.errors import EndedError

    error = EndedError(TaskEnd(TaskReason.JOB_FAILED, place="plan.py", said="killed"))
    raising("world.stage.plan_in_process", error)(patch)


def without_java(patch: pytest.MonkeyPatch) -> None:
    import world.stage

    def job(*_: Any) -> None:
        spark_job.require_java({"PATH": "/nowhere"})

    patch.setattr(world.stage, "plan_in_process", job)


def answers(given: Given) -> Prepare:
    def prepare(patch: pytest.MonkeyPatch) -> None:
        with_params(patch, {"approval": True})
        answered(patch, lambda _: given)

    return prepare


def not_answered(patch: pytest.MonkeyPatch) -> None:
    with_params(patch, {"approval": True})
    late = {"error": "late", "error_type": "timeout"}
    patch.setattr(Given, "event", lambda *_: late)
    answered(patch, lambda _: Given())


def not_verified(patch: pytest.MonkeyPatch) -> None:
    found = Elsewhere(ElsewhereKind.REPLICAS, target=(2,), replicas=(1,))
    differs = Verification("p1", 1, {TopicPartition("t", 0): found})
    patch.setattr(f"{OPERATORS}.completion.verify.prove", lambda *_: differs)


def trigger_that_fails(patch: pytest.MonkeyPatch) -> None:
    raising("rehome.triggers.watch.PlanWatch.poll", ValueError("no such column"))(patch)


def heals_a_broker_that_restarts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("rehome.fleet.watch_runs.heal_by", lambda *_: "a heal")
    patch.setattr("rehome.fleet.watch_runs.refuse_changed_rules", lambda *_: None)
    patch.setattr("rehome.fleet.watch_runs.goes_first", lambda *_: False)
    raising("rehome.fleet.watch_runs.refuse_away", BrokerAwayError(3))(patch)


def started_by_a_task(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("rehome.run.context.RunContext.asked_as", AskerKind.TASK)


def at(seconds: float, what: What, *args: Any, who: str = "A") -> Do:
    return Do(seconds, who, what, args)


AWAY = ClusterUnreachableError("No broker answers at b1:9092", cause=Unreachable.NO_ANSWER)
PASSWORD = ClusterUnreachableError("b1:9092: wrong password", cause=Unreachable.WRONG_PASSWORD)
MISLED = MisledError(Misled(MisledBy.CONNECTION_BOUND_ELSEWHERE, "kafka_default", "model", "other"))
ALTER = MissingRightError("This run", "Cluster Alter")
POLICY = PolicyError("kafka_default", [PolicyRefusal(RefusedBy.ACTION, action="drain")])
UNSHARED = UnsharedLedgerError("The ledger is an SQLite file", next_step="Set up PostgreSQL")
FOLDER = UnsharedWarehouseError("The warehouse is the folder /w", next_step="Name a store")
SLOW = Plan("A", MOVES, rate=100_000)
TRIED = Plan("A", MOVES, tried_out=True)
GATEWAY = "world.airflow.standing_in.Gateway.__enter__"
LOWERS = LowersReplicationError("p1", "t-0 from 2 to 1")
CHANGED = PlanChangedError("The hash of the plan is another one")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
TERMS = Terms("0" * 64, 100_000)
APPROVAL = Approval(TERMS, "ann", True, NOON, NOON + timedelta(hours=24))
LAPSED = ApprovalLapsedError("p1", APPROVAL, TERMS, [Lapse.EXPIRED])
NO_RATE = ThrottleError("Broker 3 refuses the rate: INVALID_CONFIG")
LOST = LeaseLostError("Another run has taken the cluster over")

MADE_FOR_CLUSTERS = {"clusters", "clusters_file"}
EVERY_DAG = {
    path.stem for path in (Path(__file__).parents[4] / "dags").glob("*.py")
} - MADE_FOR_CLUSTERS
"""Each file of a DAG has its id as its name; those that are made for clusters are alike."""

WAYS = (
    Way("an action that there is not", "snapshot", CauseKind.REQUEST, "nonsense",
        params(action="nonsense")),
    Way("a plan for another cluster", "snapshot", CauseKind.REQUEST, "not to elsewhere",
        params(cluster_id="elsewhere")),
    Way("a window that is over", "snapshot", CauseKind.REQUEST, "window",
        params(window_end="2020-01-01T00:00:00+00:00")),
    Way("a plan that there is not", "snapshot", CauseKind.PLAN_STATE, "no plan 'p77'",
        params(plan_id="p77", action=None, reassignment=None)),
    Way("a run of a task that nobody asked for", "snapshot", CauseKind.NOT_ASKED,
        "was started by a task", started_by_a_task),
    Way("a policy", "snapshot", CauseKind.POLICY, "not among the allowed ones",
        raising("rehome.execution.access.connection_policy.ConnectionPolicy.require", POLICY)),
    Way("a cluster that is away", "snapshot", CauseKind.CLUSTER_AWAY, "No broker answers",
        raising(GATEWAY, AWAY)),
    Way("a wrong password", "snapshot", CauseKind.CONNECTION, "wrong password",
        raising(GATEWAY, PASSWORD)),
    Way("a missing right", "snapshot", CauseKind.RIGHTS, "Cluster Alter",
        raising(f"{OPERATORS}.snapshot.SnapshotClusterOperator._role", ALTER)),
    Way("a connection that leads elsewhere", "snapshot", CauseKind.WRONG_CLUSTER,
        "kafka_default", raising("rehome.fleet.bound.require", MISLED)),
    Way("a ledger that workers do not share", "snapshot", CauseKind.LEDGER, "SQLite file",
        raising(f"{OPERATORS}.snapshot.refuse_unshared", UNSHARED)),
    Way("a warehouse that workers do not share", "snapshot", CauseKind.WAREHOUSE, "the folder",
        raising(f"{OPERATORS}.snapshot.refuse_unshared", FOLDER)),
    Way("a disk that is full", "snapshot", CauseKind.FAULT, "No space left",
        raising("rehome.run.authority.own_snapshot.keep", OSError(28, "No space left"))),
    Way("a broker that may be restarting", "snapshot", CauseKind.NOT_HEALED, "Broker 3",
        heals_a_broker_that_restarts),
    Way("a gate", "plan", CauseKind.GATE, "Broker 4 did not answer",
        failure("gate_refused", "Broker 4 did not answer.")),
    Way("a gate that crashes", "plan", CauseKind.GATE_CRASHED, "column missing",
        failure("expectation_crashed", "column missing")),
    Way("the planner", "plan", CauseKind.PLANNER, "Unknown broker 77",
        failure("invalid_request", "Unknown broker 77.")),
    Way("a Spark application without a reason", "plan", CauseKind.SPARK, "plan.py has failed",
        without_reason),
    Way("no Java", "plan", CauseKind.NO_JAVA, "There is no Java", without_java),
    Way("a snapshot that was changed", "plan", CauseKind.SNAPSHOT, "have changed",
        raising("rehome.run.authority.own_snapshot.uri_of",
                SnapshotChangedError(
                    TaskEnd(TaskReason.SNAPSHOT_CHANGED, names=("s1",))))),
    Way("replicas that nobody wants less of", "plan", CauseKind.NOT_ASKED, "takes replicas away",
        raising("rehome.run.by_itself.refuse_lowering", LOWERS)),
    Way("a dry run", "dry_run", CauseKind.DRY_RUN, "t-0", None,
        (START, at(7.0, What.DELETE_TOPIC, "t", who="fate")), TRIED),
    Way("files of the plan that were changed", "approve", CauseKind.CHANGED_FILES, "another one",
        raising("rehome.run.recorded_plans.refuse_changed_files", CHANGED)),
    Way("a person who rejects it", "approve", CauseKind.REJECTED, "rejected by ann",
        answers(Given(REJECT)), head="The plan was rejected by ann.", succeeds=True),
    Way("a question without an answer", "approve", CauseKind.NO_ANSWER, "no person has answered",
        not_answered),
    Way("an approval that has lapsed", "execute", CauseKind.NOT_APPROVED, "it expired at",
        raising("rehome.run.approval_terms.refuse_unapproved", LAPSED)),
    Way("a broker that takes no rate", "throttle", CauseKind.CLUSTER, "INVALID_CONFIG",
        raising("rehome.execution.throttle.set_up.set_up_throttle", NO_RATE)),
    Way("another run that has the cluster", "execute", CauseKind.BUSY, "taken the cluster",
        raising(f"{OPERATORS}.execute.StartReassignmentOperator.step", LOST)),
    Way("an error that nobody foresaw", "execute", CauseKind.FAULT, "KeyError: 'broker'",
        raising(f"{OPERATORS}.execute.StartReassignmentOperator.step", KeyError("broker"))),
    Way("a person who cancels it", "progress", CauseKind.CANCELLED, "alice", None,
        (START, at(30.0, What.CANCEL)), head="The plan was cancelled by alice"),
    Way("a plan of which nothing moves", "progress", CauseKind.PLAN_FAILED, "is failed", None,
        (START, *(at(22.0, What.BROKER_LOST, each, who="fate") for each in (3, 4))),
        head="The plan failed: nothing has moved for ", quiet_s=2000.0),
    Way("a trigger that fails", "progress", CauseKind.TRIGGER, "no such column",
        trigger_that_fails, plan=SLOW),
    Way("a task that a person marks as failed", "progress", CauseKind.SILENT, "left no reason",
        None, (START, at(30.0, What.MARK, "failed"))),
    Way("a proof that differs", "verify", CauseKind.NOT_VERIFIED, "replicas are [1]",
        not_verified),
    Way("a cluster that is away at the end", "verify", CauseKind.CLUSTER_AWAY,
        "No broker answers", raising(f"{OPERATORS}.completion.verify.prove", AWAY)),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])
def test_note_page_report_and_alert_name_it_first(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = readers(monkeypatch)
    if way.prepare is not None:
        way.prepare(monkeypatch)
    play((way.plan,), *way.does, quiet_s=way.quiet_s)
    read = next(each for each in heard.read if each.run_id == "run-1-A")
    assert read.cause is not None
    assert (read.cause.kind, read.cause.task_id) == (way.kind, way.task)
    assert read.failed is not way.succeeds
    assert way.said in read.cause.text
    _same(read, way)


@pytest.mark.slow
def test_a_plan_that_a_person_has_paused_is_not_called_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard = readers(monkeypatch)
    many = Topic("t", ((1, 2),) * 8, 40_000_000)
    plan = Plan("A", tuple(("t", number, (3, 2)) for number in range(8)), rate=2_000_000)
    play((plan,), START, at(30.0, What.PAUSE), topic=many)
    read = next(each for each in heard.read if each.run_id == "run-1-A")
    assert read.alert.kind is AlertKind.PAUSED
    assert read.alert.state == PlanState.PAUSED.value
    assert read.label == "Paused"


@pytest.mark.slow
def test_nobody_is_named_who_has_approved_a_plan_that_needed_no_approval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard = readers(monkeypatch)
    play((PLAN,), START)
    read = next(each for each in heard.read if each.run_id == "run-1-A")
    assert (read.approved_by, read.asked_for.count("approved")) == (None, 0)
    with_params(monkeypatch, {"approval": True})
    answered(monkeypatch, lambda _: Given())
    play((PLAN,), START)
    read = heard.read[-1]
    assert read.approved_by is not None
    assert f"{read.approved_by} approved it" in read.asked_for


def _same(read: Read, way: Way) -> None:
    cause = read.cause
    assert cause is not None
    ended = "failed" if read.failed else "succeeded"
    assert read.alert.text.startswith(f"Run {read.run_id} of reassign_partitions {ended}: ")
    assert way.said in read.alert.text.partition("Plan ")[0] or read.alert.text.find(way.said) < 400
    assert "task_failure" not in read.alert.text
    assert read.note.startswith(cause.text[:LONGEST])
    for head in filter(None, (read.page, read.report)):
        assert head.startswith(way.head or cause.short)
    assert read.page or not way.head
    assert "ended before the plan" not in read.page + read.alert.text


def test_there_are_ways_of_most_kinds() -> None:
    assert len({way.kind for way in WAYS}) >= 25


@pytest.mark.parametrize("dag_id", sorted(EVERY_DAG))
def test_every_task_of_every_dag_records_what_ends_it(dag_id: str) -> None:
    from rehome.run.causes.operator import RecordedOperator

    for name in graph_of(dag_id).order:
        operator: Any = graph_of(dag_id).task(name)
        made = getattr(operator, "operator_class", type(operator))
        assert made.execute is RecordedOperator.execute, name
        assert made.resume_execution is RecordedOperator.resume_execution, name
