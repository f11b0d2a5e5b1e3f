"""A large cluster is planned while Spark starts and checks: the gate's word comes first all the
same, and nothing is left of a plan that it does not let pass. With its gates on Spark, a plan is
made ahead in test_plan_job.py.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import psutil
import pytest

from rehome.domain.plan import kafka_json
from rehome.errors import InvalidRequestError
from rehome.planning.planner import make_plan
from rehome.quality.engine.results import ExpectationOutcome, GateResult, Status
from rehome.quality.gates import Evidence
from spark_jobs import gated_plan
from spark_jobs import plan as job
from spark_jobs.background_process import in_background
from tests.quality.snapshots import Rows
from tests.spark.plan.jobs import DRAIN, TO_CARRY_OUT, Job, must_not_plan

NO_SUCH_BROKER = {"action": "drain", "brokers": [77]}


@pytest.fixture
def ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job that takes every cluster for a large one, and cannot plan in its own process."""
    monkeypatch.setattr(job, "MANY_REPLICAS", 1)
    monkeypatch.setattr(job, "make_plan", must_not_plan)
    return Job(tmp_path)


@pytest.fixture
def gates(monkeypatch: pytest.MonkeyPatch) -> dict[str, GateResult]:
    """What the gates say, by name: they pass, without Spark, unless a test changes that."""
    said = {name: GateResult(name, ()) for name in ("snapshot", "plan")}
    monkeypatch.setattr(job, "spark_session", lambda *_, **__: nullcontext())
    monkeypatch.setattr(job, "fit_to", lambda *_: None)
    monkeypatch.setattr(gated_plan, "check_snapshot", lambda *_, **__: said["snapshot"])
    monkeypatch.setattr(gated_plan, "check_evidence", lambda *_: said["plan"])
    return said


@pytest.mark.slow
@pytest.mark.usefixtures("gates")
def test_a_plan_made_ahead_is_the_plan_that_is_made_afterwards(
    ahead: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ahead.run(Rows(), DRAIN) == 0
    made_ahead = ahead.out.load()
    monkeypatch.setattr(job, "MANY_REPLICAS", 1_000_000)
    monkeypatch.setattr(job, "make_plan", make_plan)
    ahead.out.discard()  # a plan's files are written once
    assert ahead.run(Rows(), DRAIN) == 0
    afterwards = ahead.out.load()
    assert made_ahead.plan_hash == afterwards.plan_hash
    assert made_ahead.moves == afterwards.moves


@pytest.mark.slow
@pytest.mark.parametrize("dies", [False, True], ids=["refuses", "dies"])
def test_the_gates_refusal_comes_before_what_becomes_of_the_planner(
    dies: bool, ahead: Job, gates: dict[str, GateResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    if dies:
        monkeypatch.setattr(job, "plan_request", _die)
    refused = ExpectationOutcome("all is well", "brokers", Status.FAILED, "Make it well.", 1)
    gates["snapshot"] = GateResult("snapshot", (refused,))
    assert ahead.run(Rows(), NO_SUCH_BROKER) == 3
    assert ahead.failure()["details"] == ["all is well"]
    assert not _planners()


@pytest.mark.slow
def test_a_crash_of_the_gate_comes_before_the_planners_refusal(
    ahead: Job, gates: dict[str, GateResult]
) -> None:
    crashed = ExpectationOutcome("is asked", "brokers", Status.CRASHED, "", exception="no memory")
    gates["snapshot"] = GateResult("snapshot", (crashed,))
    assert ahead.run(Rows(), NO_SUCH_BROKER) == 4
    assert ahead.failure()["details"] == ["is asked"]


@pytest.mark.slow
@pytest.mark.usefixtures("gates")
def test_a_refusal_of_the_planner_is_reported_once_the_gate_has_passed(ahead: Job) -> None:
    assert ahead.run(Rows(), NO_SUCH_BROKER) == 2
    failure = ahead.failure()
    assert failure["kind"] == "invalid_request"
    assert "77" in failure["details"][0]


@pytest.mark.slow
@pytest.mark.usefixtures("gates")
def test_a_planner_that_dies_leaves_nothing_to_carry_out(
    ahead: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "plan_request", _die)
    with pytest.raises(RuntimeError, match="ended with -9"):
        ahead.run(Rows(), DRAIN)
    assert not [name for name in TO_CARRY_OUT if ahead.out.exists(name)]


@pytest.mark.slow
def test_a_plan_that_is_ready_before_the_gate_has_passed_is_not_written(
    ahead: Job, gates: dict[str, GateResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[list[str]] = []

    @contextmanager
    def planned_at_once(work: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
        with in_background(work) as wait:
            answer = wait()
        written.append(_names(tmp_path))
        yield lambda: answer

    monkeypatch.setattr(job, "in_background", planned_at_once)
    refused = ExpectationOutcome("all is well", "brokers", Status.FAILED, "Make it well.", 1)
    gates["snapshot"] = GateResult("snapshot", (refused,))
    assert ahead.run(Rows(), DRAIN) == 3
    assert written == [["request.json"]]
    assert _names(tmp_path) == ["data_docs", "failure.json", "gates.json", "request.json"]


@pytest.mark.slow
def test_a_refusal_keeps_its_problems_on_its_way() -> None:
    with in_background(_refuse) as wait, pytest.raises(InvalidRequestError) as refused:
        wait()
    assert refused.value.problems == ("one", "two")
    assert str(refused.value) == str(InvalidRequestError(["one", "two"]))


@pytest.mark.slow
def test_an_error_names_where_it_was_raised() -> None:
    with in_background(_fail) as wait, pytest.raises(ZeroDivisionError) as failed:
        wait()
    assert "_fail" in failed.value.__notes__[0]


def test_a_process_that_is_not_waited_for_ends_with_the_context() -> None:
    with in_background(signal.pause):
        (planner,) = _planners()
    assert not planner.is_running()


def test_a_process_ends_with_the_job_however_that_ends() -> None:
    script = (
        "import os, signal\n"
        "from multiprocessing import active_children\n"
        "from spark_jobs.background_process import in_background\n"
        "with in_background(signal.pause):\n"
        "    print(active_children()[0].pid, flush=True)\n"
        "    input()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as killed:
        assert killed.stdin is not None
        assert killed.stdout is not None
        planner = psutil.Process(int(killed.stdout.readline()))
        assert planner.is_running()
        killed.communicate("\n")
    planner.wait(timeout=300)


def _planners() -> list[psutil.Process]:
    return [psutil.Process(child.pid) for child in multiprocessing.active_children()]


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / "plans/p1").iterdir())


def _die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _refuse() -> None:
    raise InvalidRequestError(["one", "two"])


def _fail() -> float:
    return 1 / 0


@pytest.mark.slow
def test_the_bytes_that_the_gate_checks_are_those_that_are_written(
    tmp_path: Path, gates: dict[str, GateResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where Kafka's files come out differently each time that they are made."""
    made = itertools.count()
    rendered = kafka_json.reassignment_text
    monkeypatch.setattr(
        kafka_json,
        "reassignment_text",
        lambda moves: itertools.chain(rendered(moves), " " * next(made), "\n"),
    )
    seen: list[Evidence] = []

    def check_evidence(_: object, evidence: Evidence) -> GateResult:
        seen.append(evidence)
        return gates["plan"]

    monkeypatch.setattr(gated_plan, "check_evidence", check_evidence)
    one = Job(tmp_path)
    assert one.run(Rows(), DRAIN) == 0
    (row,) = seen[0].tables["plan"].to_pylist()
    assert json.loads(row["files_checked"]) == one.out.file_digests()
    assert row["files_stated"] == row["files_checked"]
    assert one.out.load().summary.files == one.out.file_digests()
