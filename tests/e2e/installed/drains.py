"""What a company does first with the wheel in an Airflow of its own, up to a drained broker."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local.airflow.api import AirflowApi
from local.airflow.standalone import COMPONENTS, AirflowStandalone, Component, Sources
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.airflow_settings import AirflowSettings
from rehome.domain.run.states import PlanState
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.version import REHOME_VERSION
from tests.e2e.runs import DAG
from tests.plugins.wheel import Installed

DRAINED = 4
SLOW = 50_000
"""The copies then take longer than settings are taken as read: the trigger asks Airflow again."""
ON_A_BUSY_MACHINE_S = 1_500.0
"""So long a run, or a question, is waited for: Spark alone may take minutes to start there."""
NOTED_AFTER_S = 60.0
"""Before Airflow 3.3 the note is written beside the end of its task."""
ASKING = frozenset({"awaiting_input", "deferred"})


def connection_to(cluster: LocalCluster) -> dict[str, Any]:
    """The connection of a cluster without logins, of Rehome's own type."""
    host, _, port = cluster.client_settings()["bootstrap.servers"].split(",")[0].partition(":")
    return {"conn_type": "rehome_kafka", "host": host, "port": int(port)}


def connection_by(settings: Mapping[str, str], user: str, password: str) -> dict[str, Any]:
    """The connection of a cluster with a login; all but this is in *Other settings*."""
    first = settings["bootstrap.servers"].split(",")[0]
    host, _, port = first.partition(":")
    own = ("bootstrap.servers", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret")
    extra = {key: value for key, value in settings.items() if key not in own}
    return {
        "conn_type": "rehome_kafka",
        "host": host,
        "port": int(port),
        "login": user,
        "password": password,
        "extra": json.dumps(extra),
    }


def wheel_sources(installed: Installed, home: Path) -> Sources:
    """Rehome from the wheel alone, its DAG files written to a folder of this home."""
    dags = home / "dags"
    assert installed.run("dags", "install", dags) == 0
    return Sources(
        python=str(installed.python),
        python_path=(),
        dags=dags,
        plugins=home / "plugins",
        command=installed.command,
        env={},
    )


def ledger_in(home: Path) -> str:
    """The URL of the ledger that :func:`airflow_with` has."""
    return f"sqlite:///{home}/ledger.db"


@contextmanager
def airflow_with(
    installed: Installed,
    home: Path,
    connection: Mapping[str, Any],
    env: Mapping[str, str] | None = None,
    *,
    connections: Mapping[str, Any] | None = None,
    before: Sequence[str] = (),
    components: Mapping[str, Component] = COMPONENTS,
) -> Iterator[AirflowStandalone]:
    """An Airflow of defaults that has Rehome from the wheel alone.

    :param connection: to the cluster, as ``kafka_default``.
    :param connections: others, by their ids.
    :param before: as :class:`AirflowStandalone` has it.
    """
    settings = AirflowSettings.read().with_connections(
        {"kafka_default": connection, **(connections or {})}
    )
    places = {
        "REHOME_LEDGER_URL": ledger_in(home),
        "REHOME_WAREHOUSE": (home / "warehouse").as_uri(),
    }
    starting = AirflowStandalone(
        home,
        settings=settings,
        env={**places, **(env or {})},
        dags=(DAG,),
        before=before,
        sources=wheel_sources(installed, home),
        components=components,
    )
    with starting as airflow:
        yield airflow


def loads_all(api: AirflowApi) -> None:
    """See that Airflow has imported every DAG file and the plugin."""
    assert api.ask("GET", "/importErrors")["import_errors"] == []
    assert "rehome" in {each["name"] for each in api.ask("GET", "/plugins")["plugins"]}
    assert api.ask("GET", "/plugins/importErrors")["import_errors"] == []


def connects(api: AirflowApi, connection: Mapping[str, Any]) -> None:
    """Press the connection's *Test* button."""
    asked = {"connection_id": "kafka_default", **connection}
    answer = api.ask("POST", "/connections/test", asked)
    assert answer["status"], answer["message"]


def _has_notes(api: AirflowApi) -> bool:
    """Airflow 3.1 calls no listener with an asset's event, which brings the note."""
    major, minor, *_ = api.ask("GET", "/version")["version"].split(".")
    return (int(major), int(minor)) >= (3, 2)


def drains(airflow: AirflowStandalone, ledger_url: str, topic: str) -> PlanRecord:
    """Drain a broker of a topic: dry run, question, another question, answer, run, page."""
    api = airflow.api
    asked = {
        "action": "drain",
        "brokers": [DRAINED],
        "topics": [topic],
        "throttle": SLOW,
        "approval": True,
    }
    dry = api.trigger(DAG, {**asked, "dry_run": True})
    assert api.wait_for_run(DAG, dry, ON_A_BUSY_MACHINE_S) == "success"
    plan_id = _plan(ledger_url, dry).plan_id
    if _has_notes(api):
        note = wait_until(lambda: api.run_note(DAG, dry), "the note of the dry run", NOTED_AFTER_S)
        assert note.startswith(f"Drain broker {DRAINED}: ")
    run = api.trigger(DAG, {**asked, "plan_id": plan_id})
    first = _asked(airflow, run, attempt=0)
    assert plan_id in api.page(f"plans/{plan_id}")
    _clear(api, run, "approve")
    _asked(airflow, run, attempt=first)
    api.answer(DAG, run, "approve", "Approve")
    assert api.wait_for_run(DAG, run, ON_A_BUSY_MACHINE_S) == "success"
    assert f"Rehome {REHOME_VERSION}" in api.page(f"plans/{plan_id}")
    plan = _plan(ledger_url, run)
    assert plan.state is PlanState.DONE
    assert plan.approved_by == "admin"
    return plan


def _plan(ledger_url: str, run: str) -> PlanRecord:
    with Ledger.open(ledger_url) as ledger:
        (plan,) = (each for each in ledger.plans() if each.run_id == run)
    return plan


def _asked(airflow: AirflowStandalone, run: str, *, attempt: int) -> int:
    """Wait until an attempt after this one waits for a person; returns its number.

    Who answers before the scheduler hears of the worker's end has to answer again.
    """

    def waits() -> int:
        task = airflow.api.task_instance(DAG, run, "approve")
        number = int(task["try_number"])
        asking = task["state"] in ASKING and number > attempt
        return number if asking and _worker_seen_to_end(airflow, run, number) else 0

    return wait_until(waits, f"a question after attempt {attempt}", ON_A_BUSY_MACHINE_S, 2.0)


def _worker_seen_to_end(airflow: AirflowStandalone, run: str, attempt: int) -> bool:
    words = ("executor event with state success", "'approve'", f"'{run}'", f"try_number={attempt},")
    lines = airflow.log_file.read_text(errors="replace").splitlines()
    return any(all(word in line for word in words) for line in lines)


def _clear(api: AirflowApi, run: str, task_id: str) -> None:
    """What a person does who clears a task in the UI, without those after it."""
    asked = {
        "dry_run": False,
        "dag_run_id": run,
        "task_ids": [task_id],
        "only_failed": False,
        "include_downstream": False,
    }
    api.ask("POST", f"/dags/{DAG}/clearTaskInstances", asked)
