"""A plan whose copy takes longer than any window, in a whole Airflow with scheduled windows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.alerts.kinds import AlertKind
from rehome.domain.run.findings import Severity
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.fleet.paused_plan import is_stuck
from tests.conftest import Topics
from tests.dags.clusters import to
from tests.e2e.conftest import WINDOW_DAG, World, started_airflow
from tests.e2e.healing.watched import COLLECT, RUNS_S, WATCH, collected, kill
from tests.e2e.runs import CONTROL, DAG, asked, record_planned
from tests.ledger.small_plans import move
from tests.session.needs import Need, needs

OPEN = timedelta(minutes=30)
CRAWL, FAST = 10_000, 50_000_000
MESSAGES, MESSAGE_BYTES = 3000, 10_000
"""Of what is to be copied: at the slower throttle, longer than the window is open."""
RULES = {"grace_s": 0, "policies": {"dead_broker": "heal"}, "largest_throttle": FAST}

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture
def four(private_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    return private_cluster(brokers=4)


@pytest.fixture
@needs(Need.AIRFLOW)
def nightly(four: LocalCluster, tmp_path: Path) -> Iterator[World]:
    """An Airflow that watches it, and heals dead brokers in windows. One is open from the start,
    and takes up what waits when its DAG is unpaused.
    """
    home, file, opened = tmp_path / "airflow", tmp_path / "clusters.yaml", datetime.now(UTC)
    home.mkdir()
    entry = {
        "connection": "kafka_default",
        "windows": [
            {
                "cron": f"{opened.minute} {opened.hour} * * *",
                "hours": OPEN.total_seconds() / 3600,
            }
        ],
        "watch": RULES,
    }
    file.write_text(json.dumps({"clusters": {"main": entry}}))
    ledger_url = f"sqlite:///{home}/ledger.db"
    env = {"REHOME_LEDGER_URL": ledger_url, "REHOME_CLUSTERS_FILE": str(file)}
    dags = (COLLECT, WATCH, WINDOW_DAG, DAG, CONTROL)
    with started_airflow(home, four, ledger_url, dags, env) as world:
        for dag in (COLLECT, WATCH, DAG, CONTROL):
            world.airflow.api.set_paused(dag, paused=False)
        yield world


def test_a_plan_that_fits_into_no_window_is_named_and_keeps_nothing_else_waiting(
    nightly: World, four: LocalCluster
) -> None:
    ledger, api, topics = nightly.ledger, nightly.airflow.api, Topics(four)
    large, small = topics.create([[1, 2]]), topics.create([[4, 2], [1, 2]])
    topics.fill(large, MESSAGES, MESSAGE_BYTES)
    topics.fill(small, 50)

    size = MESSAGES * MESSAGE_BYTES
    moves = move(large, 0, (1, 2), (3, 2), size)
    given = {"reassignment": to(large, {0: [3, 2]}), "throttle": CRAWL}
    record_planned(nightly, four.cluster_id, "never", moves, **given)
    answer = asked(nightly, "never", "next_window")
    assert "rebalance_in_window is paused in Airflow" in answer, answer
    api.set_paused(WINDOW_DAG, paused=False)
    answer = asked(nightly, "never", "next_window")
    assert "starts no move of it" in answer or ledger.plan("never").state.active, answer

    wait_until(
        lambda: ledger.plan("never").state is PlanState.PAUSED, "the window to give it up", RUNS_S
    )
    (scheduled,) = api.runs(WINDOW_DAG)
    assert scheduled["run_type"] == "scheduled", scheduled
    assert api.wait_for_run(WINDOW_DAG, scheduled["dag_run_id"], RUNS_S) == "success"
    never = ledger.plan("never")
    assert is_stuck(ledger, never)
    assert not ledger.reassignments("never")
    tried = nightly.warehouse.plan("never").read_json("dry_run.json")
    named = [each for each in tried["findings"] if each["check"] == "window"]
    assert (f"{large}-0", Severity.WARNING) in [(e["subject"], e["severity"]) for e in named]
    note = api.run_note(WINDOW_DAG, scheduled["dag_run_id"])
    assert "No move of it could end in that window" in note, note
    wait_until(lambda: _told(nightly, AlertKind.PAUSED_AT_WINDOW_END), "the alert", RUNS_S)
    (told,) = _told(nightly, AlertKind.PAUSED_AT_WINDOW_END)
    assert told["plan_id"] == "never"
    assert "Raise the plan's throttle" in told["next_step"], told
    assert "by itself" not in told["text"] + told["next_step"], told

    tried_out = {"action": "reassign", "reassignment": to(small, {1: [3, 2]}), "throttle": FAST}
    run = api.trigger(DAG, {**tried_out, "kafka_config_id": "kafka_default", "dry_run": True})
    assert api.wait_for_run(DAG, run, RUNS_S) == "success"
    (looked_at,) = (plan for plan in ledger.plans() if plan.run_id == run)
    assert looked_at.state is PlanState.PLANNED
    assert ledger.plan("never").state is PlanState.PAUSED

    collected(nightly, 1)
    kill(four, 4)
    collected(nightly, 2)
    assert (FindingKind.DEAD_BROKER, "broker 4") in {
        each.key for each in ledger.open_findings(four.cluster_id)
    }
    (heal,) = (each for each in api.runs(WINDOW_DAG) if each["run_type"] != "scheduled")
    assert api.wait_for_run(WINDOW_DAG, heal["dag_run_id"], RUNS_S) == "success"
    never = ledger.plan("never")
    assert (never.state, never.started_at is not None) == (PlanState.CANCELLED, True)
    (healed,) = (plan for plan in ledger.plans() if plan.run_id == heal["dag_run_id"])
    assert (healed.state, healed.request["brokers"]) == (PlanState.DONE, [4])
    assert ledger.plan(looked_at.plan_id).state is PlanState.PLANNED


def _told(world: World, kind: AlertKind) -> list[dict[str, str]]:
    return [each for each in world.webhook.reported if each["kind"] == kind]
