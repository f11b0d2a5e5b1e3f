"""A whole Airflow with its processes, on the session's brokers."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import make_url

from local.airflow.standalone import RARELY_PARSED, ROOT, AirflowStandalone
from local.kafka.cluster import LocalCluster
from rehome.airflow_settings import AirflowSettings
from rehome.cluster.gateway import ClusterGateway
from rehome.ledger.store import Ledger
from rehome.warehouse import Warehouse
from tests.conftest import impatient_gateway
from tests.e2e.listening import ListeningSockets
from tests.e2e.webhook import Webhook
from tests.ledger.postgresql import PostgreSQL
from tests.metrics.statsd_listener import StatsdListener
from tests.session.needs import Need, needs
from tests.session.spark_session import quick_spark


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test's report ends with what its Airflow and its ledger say."""
    report = yield
    if report.failed:
        values = getattr(item, "funcargs", {}).values()
        worlds = (each for each in values if isinstance(each, World))
        report.sections += [("Airflow and its ledger", _aftermath(each)) for each in worlds]
    return report


USERS = "admin:admin,viewer:viewer,ann:user,bob:user,ops:op"
WINDOW_DAG = "rebalance_in_window"
AFTER_PLANS = "after_plans"
DAGS = ("reassign_partitions", "control_reassignment", WINDOW_DAG)
"""Those that these tests run. Each costs some CPU seconds whenever Airflow is started, and
`sweep_throttles` would run by itself every ten minutes.
"""
BETWEEN_WINDOWS = timedelta(seconds=15)

EVENTS = 40
LINES = 60
WORTH_READING = ("ERROR", "CRITICAL", "Executor reported", "Received executor event", "Traceback")
"""What lines of Airflow's log have in them that say why a task was tried again."""

SWEPT = ("reassign_partitions", "control_reassignment", "sweep_throttles")
IMPATIENT = {
    "REHOME_STALL_ALERT_S": "20",
    "REHOME_STALL_TIMEOUT_S": "60",
    "REHOME_LEASE_S": "20",
}


@dataclass(frozen=True)
class World:
    """Airflow, Rehome's ledger, and where metrics go.

    :param statsd: where its metrics of Rehome go.
    :param listening: TCP sockets of all that runs.
    :param every: time from the opening of a maintenance window to that of the next one.
    """

    airflow: AirflowStandalone
    ledger: Ledger
    webhook: Webhook
    every: timedelta
    warehouse: Warehouse
    statsd: StatsdListener
    listening: ListeningSockets

    def password(self, user: str) -> str:
        """What a user logs in with: Airflow has made that of the viewer."""
        passwords: dict[str, str] = json.loads((self.airflow.home / "passwords.json").read_text())
        return passwords[user]

    def token(self, user: str) -> str:
        """What Airflow gives a user at login."""
        who = {"username": user, "password": self.password(user)}
        answer = httpx.post(f"{self.airflow.url}/auth/token", json=who, timeout=240)
        answer.raise_for_status()
        return str(answer.json()["access_token"])

    @property
    def window(self) -> timedelta:
        """How long a maintenance window is open."""
        return self.every - BETWEEN_WINDOWS


def _minutes_between_openings() -> int:
    """Time enough for a run to start copying, and for its tasks to start on a busy machine."""
    return 2 if os.getloadavg()[0] < 4 * (os.cpu_count() or 1) else 6


@pytest.fixture(scope="session")
@needs(Need.AIRFLOW)
def world(
    cluster: LocalCluster, postgresql: PostgreSQL, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Airflow standalone, once for the session: its start costs more than a run.

    Its ledger is on PostgreSQL, by the connection that names it.
    """
    minutes = _minutes_between_openings()
    every = timedelta(minutes=minutes)
    env = {
        # The DAG is paused until a test wants its windows.
        "REHOME_WINDOW_CRON": f"*/{minutes} * * * *",
        "REHOME_WINDOW_DURATION_S": str((every - BETWEEN_WINDOWS).total_seconds()),
        "REHOME_BROKER_CAPACITY_BYTES_PER_S": "2500000",
    }
    home, ledger_url = tmp_path_factory.mktemp("airflow"), postgresql.new_database()
    named = {"rehome_ledger": _as_connection(ledger_url)}
    dags = (*DAGS, AFTER_PLANS)
    with started_airflow(home, cluster, ledger_url, dags, env, named, every) as started:
        yield started


@pytest.fixture(scope="module")
@needs(Need.AIRFLOW)
def idle_world(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """An Airflow whose windows open every other minute, and make no plan of their own: all of its
    processes have that from their environment. For tests that are long.
    """
    home, every = tmp_path_factory.mktemp("idle"), timedelta(minutes=2)
    ledger_url = f"sqlite:///{home}/ledger.db"
    env = {
        "REHOME_LEDGER_URL": ledger_url,
        "REHOME_WINDOW_CRON": "*/2 * * * *",
        "REHOME_WINDOW_DURATION_S": str((every - BETWEEN_WINDOWS).total_seconds()),
        "REHOME_WINDOW_OWN_PLAN": "false",
    }
    with started_airflow(home, cluster, ledger_url, DAGS, env, every=every) as started:
        yield started


@pytest.fixture(scope="session")
@needs(Need.AIRFLOW)
def impatient_world(
    mortal_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """An Airflow whose brokers tests may kill: it gives up and takes over within a minute, and
    sweeps. For tests that are long.
    """
    with _impatient(tmp_path_factory.mktemp("impatient"), mortal_cluster, SWEPT) as started:
        yield started


@pytest.fixture(scope="session")
@needs(Need.AIRFLOW)
def second_world(
    mortal_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Another installation on the same brokers: its own Airflow, its own ledger."""
    with _impatient(tmp_path_factory.mktemp("second"), mortal_cluster, SWEPT[:2]) as started:
        yield started


@pytest.fixture
def mortal_gateway(mortal: LocalCluster) -> Iterator[ClusterGateway]:
    """A gateway on the brokers that a test may kill."""
    with impatient_gateway(mortal) as opened:
        yield opened


@contextmanager
def _impatient(home: Path, cluster: LocalCluster, dags: tuple[str, ...]) -> Iterator[World]:
    ledger_url = f"sqlite:///{home}/ledger.db"
    env = {**IMPATIENT, "REHOME_LEDGER_URL": ledger_url}
    with started_airflow(home, cluster, ledger_url, dags, env) as started:
        yield started


@contextmanager
def started_airflow(
    home: Path,
    cluster: LocalCluster,
    ledger_url: str,
    dags: tuple[str, ...],
    env: Mapping[str, str],
    connections: Mapping[str, Mapping[str, object]] | None = None,
    every: timedelta = timedelta(0),
) -> Iterator[World]:
    """An Airflow with these DAGs on a cluster."""
    warehouse = (home / "warehouse").as_uri()
    with Webhook() as webhook, Ledger.open(ledger_url) as ledger, StatsdListener() as statsd:
        settings = AirflowSettings.read().with_connections(
            {
                "kafka_default": {
                    "conn_type": "kafka",
                    "extra": json.dumps(cluster.client_settings()),
                },
                **(connections or {}),
                "rehome_webhook": {"conn_type": "http", "host": webhook.url},
            }
        )
        whole_env = {
            "AIRFLOW__CORE__DAGS_FOLDER": str(_dags_folder(home / "dags", dags)),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": USERS,
            "REHOME_WAREHOUSE": warehouse,
            "REHOME_POLL_INTERVAL_S": "2",
            "SPARK_SUBMIT_OPTS": quick_spark(),
            # A triggerer that was killed is taken for alive for 30 s by default, and a dead
            # scheduler's tasks are looked for every five minutes only.
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "15",
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
            # The button that tests a connection: Airflow has it off by default.
            "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
            **RARELY_PARSED,
            **env,
            **statsd.env(),
        }
        with (
            ListeningSockets() as listening,
            AirflowStandalone(home, settings=settings, env=whole_env, dags=dags) as airflow,
        ):
            yield World(airflow, ledger, webhook, every, Warehouse(warehouse), statsd, listening)


def _dags_folder(directory: Path, dags: Collection[str]) -> Path:
    directory.mkdir()
    for name in dags:
        folder = Path(__file__).parent if name == AFTER_PLANS else ROOT / "dags"
        shutil.copy(folder / f"{name}.py", directory)
    return directory


def _as_connection(ledger_url: str) -> dict[str, object]:
    """The database of this URL as an Airflow connection."""
    url = make_url(ledger_url)
    query = {name: str(value) for name, value in url.query.items()}
    return {
        "conn_type": "postgres",
        "login": url.username,
        "schema": url.database,
        "extra": json.dumps(query),
    }


def _aftermath(world: World) -> str:
    """The newest events of the ledger, tries of the newest runs' tasks, lines of Airflow's log."""
    parts = (_events, _tries, _log_lines)
    return "\n".join(line for part in parts for line in _or_why_not(part, world))


def _or_why_not(part: Callable[[World], Iterable[str]], world: World) -> list[str]:
    """What is asked for, or why it is not there: the test may have broken any of it."""
    try:
        return list(part(world))
    except Exception as error:  # noqa: BLE001 - reported instead, beside the test's own failure
        return [f"{part.__name__}: {error!r}"]


def _events(world: World) -> Iterator[str]:
    for event in world.ledger.events()[-EVENTS:]:
        yield f"{event.at:%H:%M:%S} {event.plan_id} {event.kind} {event.actor}: {event.detail}"


def _tries(world: World) -> Iterator[str]:
    api = world.airflow.api
    for run in api.runs("reassign_partitions")[:3]:
        name = run["dag_run_id"]
        for task in api.task_instances("reassign_partitions", name):
            yield f"{name} {task['task_id']}: {task['state']}, try {task['try_number']}"


def _log_lines(world: World) -> list[str]:
    lines = world.airflow.log_file.read_text(errors="replace").splitlines()
    return [line for line in lines if any(part in line for part in WORTH_READING)][-LINES:]
