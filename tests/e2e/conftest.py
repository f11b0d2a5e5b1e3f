"""A whole Airflow with its processes, on the session's brokers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from include.ledger.store import Ledger
from local.airflow_settings import AirflowSettings
from local.airflow_standalone import AirflowStandalone
from local.kafka_cluster import LocalCluster
from tests.e2e.webhook import Webhook
from tests.spark_session import quick_spark


@dataclass(frozen=True)
class World:
    """Airflow, what it remembers, and whom it tells."""

    airflow: AirflowStandalone
    ledger: Ledger
    webhook: Webhook


@pytest.fixture(scope="session")
def world(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Airflow standalone, once for the session: its start costs more than a run."""
    home = tmp_path_factory.mktemp("airflow")
    ledger_url = f"sqlite:///{home}/ledger.db"
    with Webhook() as webhook, Ledger.open(ledger_url) as ledger:
        settings = AirflowSettings.read().with_connections(
            {
                "kafka_default": {
                    "conn_type": "kafka",
                    "extra": json.dumps(cluster.client_settings()),
                },
                "rehome_webhook": {"conn_type": "http", "host": webhook.url},
            }
        )
        env = {
            "REHOME_LEDGER_URL": ledger_url,
            "REHOME_WAREHOUSE": (home / "warehouse").as_uri(),
            "REHOME_POLL_INTERVAL_S": "1",
            "SPARK_CONF_DIR": quick_spark(home / "spark-conf"),
        }
        with AirflowStandalone(Path(home), settings=settings, env=env) as airflow:
            yield World(airflow, ledger, webhook)
