"""The plan job: files of a proven plan, or one readable refusal and nothing to carry out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rehome.domain.actions import Action
from rehome.domain.plan.kafka_json import reassignment_json, rollback_json
from rehome.domain.request.parse_request import parse_request
from rehome.packaging import build_job_zip
from rehome.planning.planner import make_plan
from rehome.quality.engine.rules import Expectation, Rule
from rehome.warehouse import Warehouse
from spark_jobs import plan as job
from spark_jobs.session import MANY_REPLICAS, fit_to
from tests.quality.snapshots import Rows
from tests.spark.plan.jobs import DRAIN, TO_CARRY_OUT, Job, must_not_plan
from tests.spark.submit import submit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def plan_job(tmp_path: Path) -> Job:
    return Job(tmp_path)


@pytest.mark.usefixtures("spark")
def test_a_proven_plan_leaves_all_its_files_and_then_its_rollback_does(
    plan_job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """The plan is made in a process of its own while Spark checks, as it is of a large cluster."""
    with monkeypatch.context() as large:
        large.setattr(job, "MANY_REPLICAS", 1)
        large.setattr(job, "make_plan", must_not_plan)
        assert plan_job.run(Rows(), DRAIN) == 0
    plan = plan_job.out.load()
    assert plan.plan_id == "p1"
    assert plan.summary.rate_bytes_per_s == 1_000_000
    assert {broker for move in plan.moves for broker in move.removing} == {4}
    assert plan_job.out.read_json("reassignment.json") == reassignment_json(plan.moves)
    assert plan_job.out.read_json("rollback.json") == rollback_json(plan.moves)
    assert parse_request(plan_job.out.read_json("request.json")).action is Action.DRAIN
    gates = plan_job.out.read_json("gates.json")
    assert [(gate["gate"], gate["passed"]) for gate in gates] == [
        ("snapshot", True),
        ("plan", True),
    ]

    carried_out = Rows()
    targets = {move.partition.partition: move.target for move in plan.moves}
    for row in carried_out.replicas:
        target = targets.get(row["partition"])
        if target:
            row["broker"] = target[row["position"]]
    request.getfixturevalue("passed_snapshot")
    (tmp_path / "back").mkdir()
    back = Job(tmp_path / "back")
    asked = {"action": "rollback", "plan_id": "p1"}
    assert back.run(carried_out, asked, ["--rollback-of", plan_job.out.uri]) == 0
    assert [(move.current, move.target) for move in back.out.load().moves] == [
        (move.target, move.current) for move in plan.moves
    ]


@pytest.mark.usefixtures("spark")
def test_a_poor_snapshot_is_refused_before_planning_and_an_interrupted_plan_is_gone(
    plan_job: Job, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[object] = []
    monkeypatch.setattr("spark_jobs.plan.plan_forward", lambda *a, **_: planned.append(a))
    for name in (*TO_CARRY_OUT[1:], "gates.json"):  # without its summary it was never finished
        plan_job.out.write_text(name, "of an earlier run")
    rows = Rows()
    rows.broker(3).update(answered=False, error="REQUEST_TIMED_OUT (7)")
    rows.replica(1, 1).update(size_bytes=None)
    assert plan_job.run(rows, DRAIN) == 3
    assert not planned
    failure = plan_job.failure()
    assert failure["kind"] == "gate_refused"
    assert failure["details"] == ["every live broker answered", "every replica has a size"]
    assert "broker 3, error REQUEST_TIMED_OUT (7)" in failure["message"]
    assert "remedy: Find out why the broker does not answer" in failure["message"]
    assert [gate["passed"] for gate in plan_job.out.read_json("gates.json")] == [False]
    assert failure["message"] in capsys.readouterr().err


def test_a_finished_plan_is_not_replaced(plan_job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    for name in TO_CARRY_OUT:
        plan_job.out.write_text(name, "of an earlier run")
    assert plan_job.run(Rows(), DRAIN) == 2
    assert {plan_job.out.read_text(name) for name in TO_CARRY_OUT} == {"of an earlier run"}
    assert not plan_job.out.exists("failure.json")
    assert "plans are never replaced" in capsys.readouterr().err


@pytest.mark.usefixtures("spark")
def test_a_crashed_expectation_is_distinguished_from_poor_data(
    plan_job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    weighs = Expectation("expect_column_values_to_not_be_null", '{"column": "weight"}')
    crashing = Rule("weighs something", "brokers", ("broker",), "Weigh it.", (weighs,))
    monkeypatch.setattr("rehome.quality.gates.snapshot_rules", lambda **_: (crashing,))
    assert plan_job.run(Rows(), DRAIN) == 4
    failure = plan_job.failure()
    assert failure["kind"] == "expectation_crashed"
    assert failure["details"] == ["weighs something"]
    assert "the check itself crashed" in failure["message"]


@pytest.mark.usefixtures("spark", "passed_snapshot")
def test_a_plan_that_breaks_a_rule_leaves_nothing_to_carry_out(
    plan_job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_of = make_plan

    def careless(*args: Any, **options: Any) -> Any:
        plan = plan_of(*args, **options)
        moves = (replace(plan.moves[0], target=(4, 4)), *plan.moves[1:])
        return replace(plan, moves=moves)

    monkeypatch.setattr(job, "make_plan", careless)
    assert plan_job.run(Rows(), DRAIN) == 3
    failure = plan_job.failure()
    assert {
        "a target names no broker twice",
        "no target names a drained broker",
        "the plan's hash matches its contents",
    } <= set(failure["details"])
    assert [gate["passed"] for gate in plan_job.out.read_json("gates.json")] == [True, False]


def test_whole_stages_are_compiled_for_many_replicas_only(spark: SparkSession) -> None:
    was = spark.conf.get("spark.sql.codegen.wholeStage")
    try:
        spark.conf.set("spark.sql.codegen.wholeStage", "false")
        fit_to(spark, MANY_REPLICAS - 1)
        assert spark.conf.get("spark.sql.codegen.wholeStage") == "false"
        fit_to(spark, MANY_REPLICAS)
        assert spark.conf.get("spark.sql.codegen.wholeStage") == "true"
    finally:
        spark.conf.set("spark.sql.codegen.wholeStage", was)


@pytest.mark.parametrize(("replicas", "tasks"), [(0, "1"), (1_000_000, "4"), (1_000_001, "5")])
def test_a_job_shuffles_in_as_many_tasks_as_its_replicas_need(
    spark: SparkSession, replicas: int, tasks: str
) -> None:
    names = ("spark.sql.codegen.wholeStage", "spark.sql.shuffle.partitions")
    was = {name: spark.conf.get(name) for name in names}
    try:
        fit_to(spark, replicas)
        assert spark.conf.get("spark.sql.shuffle.partitions") == tasks
    finally:
        for name, value in was.items():
            spark.conf.set(name, str(value))


@pytest.mark.usefixtures("spark", "passed_snapshot")
def test_a_plan_that_no_disk_has_room_for_is_refused(plan_job: Job) -> None:
    rows = Rows()
    for row in rows.log_dirs:
        row["usable_bytes"] = 100
    assert plan_job.run(rows, DRAIN) == 2
    assert "disk space" in plan_job.failure()["message"]


@pytest.mark.parametrize(
    ("request_text", "reported"),
    [
        ("{", "cannot be read"),
        ("[]", "is not a JSON object"),
        ('{"action": "explode"}', "explode"),
        ('{"action": "drain"}', "brokers"),
    ],
)
def test_a_malformed_request_is_refused_before_spark_starts(
    plan_job: Job, monkeypatch: pytest.MonkeyPatch, request_text: str, reported: str
) -> None:
    monkeypatch.setattr(job, "spark_session", _must_not_start)
    assert plan_job.run(Rows(), request_text) == 2
    assert reported in plan_job.failure()["message"]


def test_an_unfinished_snapshot_is_refused_before_spark_starts(
    plan_job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "spark_session", _must_not_start)
    arguments = plan_job.arguments(Rows(), DRAIN)
    Warehouse(arguments[1]).remove("snapshot.json")
    assert job.main(arguments) == 2
    assert "snapshot.json does not exist" in plan_job.failure()["message"]


def _must_not_start(*_: object, **__: object) -> None:
    raise AssertionError("Spark was started")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_spark_submit_runs_the_job_from_its_zip_alone(plan_job: Job, tmp_path: Path) -> None:
    """Away from the checkout: whatever is missing in the zip shows here, and so does the session
    that the job starts by itself. Its request contradicts the cluster, and is refused.
    """
    arguments = plan_job.arguments(Rows(), {"action": "drain", "brokers": [77]})
    run = submit("plan.py", arguments, tmp_path)
    assert run.returncode == 2, run.stderr
    assert plan_job.failure()["kind"] == "invalid_request"
    assert "77" in plan_job.failure()["details"][0]
    assert "Gate on the snapshot: passed" in run.stdout
    # spark-submit puts all that the job prints on its own stdout.
    assert plan_job.failure()["message"] in run.stdout
    assert "Traceback" not in run.stdout + run.stderr


@pytest.mark.slow
def test_the_zip_of_the_same_sources_is_the_same(tmp_path: Path) -> None:
    first, second = (build_job_zip(tmp_path / name) for name in ("a.zip", "b.zip"))
    assert first.read_bytes() == second.read_bytes()


def test_a_crash_leaves_its_cause(plan_job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    said = (
        "An error occurred while calling o52.parquet.\n"
        "\tat org.apache.spark.sql.DataFrameReader.parquet(DataFrameReader.scala)\n"
        "Caused by: java.io.IOException: outer\n"
        "Caused by: java.lang.OutOfMemoryError: Java heap space\n\t... 12 more"
    )

    def crashes(*_: object, **__: object) -> None:
        raise RuntimeError(said)

    monkeypatch.setattr(job, "read_snapshot", crashes)
    with pytest.raises(RuntimeError):
        plan_job.run(Rows(), DRAIN)
    failure = plan_job.failure()
    assert failure["kind"] == "crashed"
    assert failure["message"] == (
        "RuntimeError: An error occurred while calling o52.parquet. "
        "Caused by: java.lang.OutOfMemoryError: Java heap space"
    )
