"""Windows that make no plan of their own, opened by a real scheduler: their DAG is not paused when
it is made, ends at once where no plan waits, and carries out what was handed over to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from include.cluster.gateway import ClusterGateway
from include.domain.request.parse_request import parse_request
from include.domain.run.states import PlanState
from local.airflow.api import ENDED
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from tests.conftest import Topics
from tests.dags.clusters import no_throttles, throttles_become, to
from tests.e2e.conftest import DAGS, WINDOW_DAG, World, _started
from tests.e2e.runs import asked
from tests.ledger.small_plans import make_plan, move
from tests.session.needs import Need, needs

EVERY = timedelta(minutes=2)
SEVERAL_WINDOWS_S = 900.0

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
@needs(Need.AIRFLOW)
def idle_world(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """An Airflow whose windows open every other minute, and make no plan of their own: a setting
    that all of its processes have from their environment.
    """
    home = tmp_path_factory.mktemp("idle")
    env = {
        "REHOME_LEDGER_URL": f"sqlite:///{home}/ledger.db",
        "REHOME_WINDOW_CRON": "*/2 * * * *",
        "REHOME_WINDOW_DURATION_S": str(EVERY.total_seconds() - 15),
        "REHOME_WINDOW_OWN_PLAN": "false",
    }
    ledger_url = env["REHOME_LEDGER_URL"]
    with _started(home, cluster, ledger_url, DAGS, env, every=EVERY) as started:
        yield started


def ended(world: World) -> list[dict[str, Any]]:
    """Runs of windows that have ended."""
    return [run for run in world.airflow.api.runs(WINDOW_DAG) if run["state"] in ENDED]


def test_a_window_takes_up_what_waits_and_else_ends_at_once(
    idle_world: World, topics: Topics, gateway: ClusterGateway, cluster: LocalCluster
) -> None:
    ledger, api = idle_world.ledger, idle_world.airflow.api
    topic = topics.create([[1, 2]])
    before = no_throttles(gateway, [topic])

    def idle(count: int) -> list[dict[str, Any]]:
        wait_until(lambda: len(ended(idle_world)) >= count, "windows", SEVERAL_WINDOWS_S)
        return ended(idle_world)

    for run in idle(2):
        run_id = run["dag_run_id"]
        assert (run["state"], run["run_type"]) == ("success", "scheduled"), run
        states = api.task_states(WINDOW_DAG, run_id)
        assert states.pop("snapshot") == "success"
        assert set(states.values()) == {"skipped"}
        note = api.run_note(WINDOW_DAG, run_id)
        assert note.startswith("Nothing to do: no plan waits for this window."), note
    assert ledger.plans() == []
    assert idle_world.webhook.reported == []

    plan = make_plan("handed", move(topic, 0, (1, 2), (3, 2)), cluster_id=cluster.cluster_id)
    params = {"action": "reassign", "reassignment": to(topic, {0: [3, 2]}), "dry_run": True}
    params |= {"kafka_config_id": "kafka_default", "throttle": 50_000_000}
    directory = idle_world.warehouse.plan("handed")
    directory.save(plan, parse_request(params))
    through = "kafka_default", "reassign_partitions"
    ledger.create_plan(plan, params, directory.uri, "a-dry-run", "admin", *through)
    answer = asked(idle_world, "handed", "next_window")
    assert "The window that opens at" in answer, answer
    wait_until(
        lambda: ledger.plan("handed").state.ended, "a window to carry it out", SEVERAL_WINDOWS_S
    )
    record = ledger.plan("handed")
    assert (record.state, record.dag_id) == (PlanState.DONE, WINDOW_DAG), record.cause
    assert api.wait_for_run(WINDOW_DAG, record.run_id, SEVERAL_WINDOWS_S) == "success"
    assert gateway.describe_topics([topic])[topic].partitions[0].replicas == (3, 2)
    throttles_become(gateway, [topic], before)

    known = len(ended(idle_world))
    assert idle(known + 1)
    assert [each.plan_id for each in ledger.plans()] == ["handed"]
