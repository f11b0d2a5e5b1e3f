"""An Airflow on several machines, as far as this one can show it.

Each process has a home, a folder of DAGs and a place for temporary files of its own, and finds
nothing of the others there. What they share is reached by its address: PostgreSQL, Redis, and an
object store.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from local.airflow.standalone import COMPONENTS, RARELY_PARSED, AirflowStandalone, Component
from local.kafka.cluster import LocalCluster
from rehome.airflow_settings import AirflowSettings
from rehome.ledger.store import Ledger
from rehome.warehouse import Warehouse
from tests.e2e.conftest import DAGS, World
from tests.e2e.installed.drains import connection_to, wheel_sources
from tests.e2e.listening import ListeningSockets
from tests.e2e.webhook import Webhook
from tests.metrics.statsd_listener import StatsdListener
from tests.plugins.wheel import Installed
from tests.session.s3_server import S3
from tests.session.spark_session import quick_spark

WORKERS = ("worker-1", "worker-2")
SCHEDULERS = ("scheduler", "scheduler-2")
TRIGGERERS = ("triggerer", "triggerer-2")
HEARTBEAT_TIMEOUT_S = 60
"""Recommended with remote workers (docs/howto/several-machines.md). Airflow's default is 300."""
_WORDS = {
    **{name: each.words for name, each in COMPONENTS.items()},
    **dict.fromkeys(SCHEDULERS, COMPONENTS["scheduler"].words),
    **dict.fromkeys(TRIGGERERS, COMPONENTS["triggerer"].words),
    **{
        # Its log server would listen on all addresses.
        name: ("celery", "worker", "--celery-hostname", name, "-c", "4", "--skip-serve-logs")
        for name in WORKERS
    },
}


@dataclass(frozen=True)
class Shared:
    """What all machines reach.

    :param metadata: the URL of Airflow's database.
    :param ledger: the URL of Rehome's.
    :param redis: the URL of Celery's queue.
    :param warehouse: a URI in the object store.
    """

    metadata: str
    ledger: str
    redis: str
    warehouse: str
    s3: S3

    def connections(self) -> dict[str, Any]:
        """Airflow's connections to the ledger and to the store."""
        url = make_url(self.ledger)
        query = {name: str(value) for name, value in url.query.items()}
        ledger = {"conn_type": "postgres", "login": url.username, "schema": url.database}
        return {
            "rehome_ledger": {**ledger, "extra": json.dumps(query)},
            "rehome_s3": json.loads(self.s3.airflow_connection()),
        }

    def rehome_env(self) -> dict[str, str]:
        """Where Rehome keeps what it keeps; the ledger is named by a connection."""
        return {
            "REHOME_WAREHOUSE": self.warehouse,
            "REHOME_WAREHOUSE_CONNECTION": "rehome_s3",
            "SPARK_SUBMIT_OPTS": quick_spark(),
        }

    def celery_env(self) -> dict[str, str]:
        """What makes it an Airflow with remote workers."""
        scheme, rest = self.metadata.split("://", 1)
        return {
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"{scheme}+psycopg2://{rest}",
            "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
            "AIRFLOW__CELERY__BROKER_URL": self.redis,
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(HEARTBEAT_TIMEOUT_S),
        }


class Machines:
    """A folder for each process of an Airflow, with DAGs of its own.

    :param within: where these folders are.
    """

    def __init__(self, within: Path, installed: Installed) -> None:
        self._within = within
        self._installed = installed

    def components(self) -> dict[str, Component]:
        """The processes of an Airflow with two of all but one kind."""
        return {name: Component(words, self._env(name)) for name, words in _WORDS.items()}

    def home(self, name: str) -> Path:
        """A machine's AIRFLOW_HOME."""
        return self._within / name

    def lose_disk(self, name: str) -> None:
        """A machine that is gone has its files with it; a new one has none."""
        shutil.rmtree(self.home(name))
        self._env(name)

    def holder_of_trigger(self) -> str:
        """The triggerer that has written to a trigger's log last: each logs at home."""

        def written(name: str) -> float:
            logs = (self.home(name) / "logs").rglob("*.trigger.*.log")
            return max((log.stat().st_mtime for log in logs), default=0.0)

        return max(TRIGGERERS, key=written)

    def _env(self, name: str) -> Mapping[str, str]:
        home = self.home(name)
        (home / "tmp").mkdir(parents=True)
        assert self._installed.run("dags", "install", home / "dags") == 0
        return {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins"),
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
            "TMPDIR": str(home / "tmp"),
        }


@dataclass(frozen=True)
class Spread:
    """An Airflow on several machines.

    :param world: as other tests have it.
    """

    world: World
    machines: Machines
    shared: Shared
    installed: Installed


@contextmanager
def spread_airflow(
    directory: Path, installed: Installed, cluster: LocalCluster, shared: Shared
) -> Iterator[Spread]:
    """Two workers, two schedulers, two triggerers, with Rehome from the wheel alone."""
    machines, home = Machines(directory / "machines", installed), directory / "home"
    home.mkdir(parents=True)
    with (
        Webhook() as webhook,
        Ledger.open(shared.ledger) as ledger,
        StatsdListener() as statsd,
        shared.s3.logged_in(),
        ListeningSockets() as listening,
    ):
        settings = AirflowSettings.read().with_connections(
            {
                "kafka_default": connection_to(cluster),
                "rehome_webhook": {"conn_type": "http", "host": webhook.url},
                **shared.connections(),
            }
        )
        env = {**shared.rehome_env(), **shared.celery_env(), **RARELY_PARSED}
        starting = AirflowStandalone(
            home,
            settings=settings,
            env=env,
            dags=DAGS,
            sources=wheel_sources(installed, home),
            components=machines.components(),
        )
        with starting as airflow:
            warehouse = Warehouse(shared.warehouse)
            world = World(airflow, ledger, webhook, timedelta(0), warehouse, statsd, listening)
            yield Spread(world, machines, shared, installed)
