"""A plan from a shell, in a real Airflow: run, approved, slowed, paused, resumed, cancelled."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.process.waiting import wait_until
from rehome.cli.main import main
from rehome.cli.output import ExitCode
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.run.states import PlanState
from rehome.ledger.base.audit_entry import Decided
from tests.conftest import Topics
from tests.dags.clusters import no_throttles, throttles_become, to
from tests.e2e.conftest import World
from tests.e2e.runs import TIMEOUT_S, record_planned, wait_for_question
from tests.ledger.audit_rows import audit_of
from tests.ledger.small_plans import move

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


class Shell:
    """A user at a terminal who has named Airflow, and themselves, in the environment."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str, code: ExitCode = ExitCode.DONE) -> str:
        """Run it; what it has printed, to either stream."""
        self._capsys.readouterr()
        found, said = main(words), self._capsys.readouterr()
        assert found == code, said.out + said.err
        return said.err if code else said.out

    def json(self, *words: str) -> Any:
        """What it prints for programs."""
        return json.loads(self(*words, "--json"))


def test_a_plan_is_run_approved_slowed_paused_resumed_and_cancelled_from_a_shell(
    world: World,
    topics: Topics,
    gateway: ClusterGateway,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = topics.create([[1, 2]])
    topics.fill(topic, 2_500, size_bytes=10_000)
    before = no_throttles(gateway, [topic])
    plan_id, shell = f"shell-{topic}", Shell(capsys)
    planned = move(topic, 0, (1, 2), (3, 2), 25_000_000)
    conf = {"reassignment": to(topic, {0: [3, 2]}), "throttle": 50_000, "approval": True}
    record_planned(world, topics.cluster.cluster_id, plan_id, planned, **conf)
    monkeypatch.setenv("REHOME_AIRFLOW_URL", world.airflow.url)
    monkeypatch.setenv("REHOME_USER", "viewer")
    monkeypatch.setenv("REHOME_PASSWORD", world.password("viewer"))
    assert plan_id in shell("status")
    assert "403" in shell("run", plan_id, "--yes", code=ExitCode.NOT_ALLOWED)
    monkeypatch.setenv("REHOME_USER", "admin")
    assert "401" in shell("status", code=ExitCode.NOT_ALLOWED)
    monkeypatch.setenv("REHOME_PASSWORD", world.password("admin"))
    assert "Action drain needs brokers" in shell("plan", "drain", code=ExitCode.REFUSED)

    assert "A person approves it first." in shell("run", plan_id, "--yes")
    wait_until(lambda: shell.json("status", plan_id)["asking"], "the question", TIMEOUT_S)
    wait_for_question(world, shell.json("status", plan_id)["run_id"])
    options = shell.json("approve", plan_id, "--show")["options"]
    code = next(each.split()[-1] for each in options if each.startswith("Approve"))
    shell("approve", plan_id, "--code", code)
    wait_until(lambda: shell.json("status", plan_id)["moves"]["in_flight"], "a copy", TIMEOUT_S)
    shell("throttle", plan_id, "40kB/s", "--yes")
    shell("pause", plan_id, "--yes")
    assert shell.json("status", plan_id)["pause_requested"]
    shell("resume", plan_id, "--yes")
    running = shell.json("status", plan_id)
    assert (running["state"], running["pause_requested"]) == ("running", False)
    assert running["throttle"]["bytes_per_s"] == 40_000
    shell("cancel", plan_id, "--yes")
    shell("watch", plan_id, code=ExitCode.FAILED)
    assert world.ledger.plan(plan_id).state is PlanState.CANCELLED
    throttles_become(gateway, [topic], before)
    assert not gateway.list_reassignments()
    entries = [each for each in audit_of(world.ledger) if each.plan_id == plan_id]
    asked = {each.decision for each in entries if each.user_name == "admin"}
    assert asked >= {Decided.RUN, Decided.THROTTLE, Decided.PAUSE, Decided.RESUME, Decided.CANCEL}
