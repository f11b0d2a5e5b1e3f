"""Where a soak runs: brokers, PostgreSQL, and a clean Airflow that has Rehome from the wheel."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.cimpl import NewTopic

from local.airflow.standalone import RARELY_PARSED, AirflowStandalone
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from local.workload import Workload
from tests.e2e.installed.drains import airflow_with, connection_to, loads_all
from tests.e2e.soak.outside import Outside
from tests.e2e.soak.rows import DatabaseSize, LedgerRows
from tests.ledger.postgresql import PostgreSQL
from tests.plugins.wheel import Installed, Release, installed_with
from tests.session.spark_session import quick_spark

RELEASE = Release("3.3.2", "2026-10-15", more=("psycopg2-binary", "asyncpg"), kind="postgresql")
"""The newest Airflow that is supported, with what it needs for a database on PostgreSQL."""
SHOWN = ("apache-airflow", "pyspark", "great-expectations", "confluent-kafka", "SQLAlchemy")
RACKS = ("a", "b", "c", "a", "b", "c")
TOPICS = {"orders": (6, 3), "payments": (4, 3), "clicks": (6, 2), "logs": (4, 2)}
"""Partitions and replication factor of each that producers write to all the time."""
FILL_BYTES = 80_000_000
LATE_DEAD = {"broker.session.timeout.ms": "20000"}
"""On a busy machine a broker that lives is late by more than the nine seconds of the default."""
SCHEDULED = ("collect_snapshots", "watch_clusters", "rebalance_in_window", "remove_old_data")
"""DAGs that a person unpauses."""
WINDOWS_EVERY_MIN, WINDOWS_LAST_S = 30, 480
WATCHED = {"policies": {"leader_skew": "heal", "rack_violation": "heal"}, "snapshots_to_open": 1}


@dataclass
class Ground:
    """All that a soak runs on, and the readers of it that know nothing of Rehome.

    :param owner: settings as another client last wanted them; None = it has deleted them.
    :param factors: how many replicas partitions of a topic may have.
    """

    cluster: LocalCluster
    airflow: AirflowStandalone
    installed: Installed
    ledger: LedgerRows
    metadata: DatabaseSize
    warehouse: Path
    outside: Outside
    traffic: Workload
    owner: dict[str, str | None] = field(default_factory=dict)
    factors: dict[str, set[int]] = field(
        default_factory=lambda: {name: {factor} for name, (_, factor) in TOPICS.items()}
    )


@contextmanager
def prepared(directory: Path, chance: random.Random) -> Iterator[Ground]:
    """Start everything, with topics that have messages in them; end it with the context."""
    installed = installed_with(RELEASE, directory)
    home, warehouse = directory / "home", directory / "warehouse"
    cluster = LocalCluster(
        directory / "kafka",
        len(RACKS),
        racks=RACKS,
        broker_config={"offsets.topic.num.partitions": "4"},
        controller_config=LATE_DEAD,
    )
    with PostgreSQL() as server, cluster:
        ledger, metadata = server.new_database(), server.new_database()
        outside = Outside(cluster)
        _create_topics(outside, chance)
        partitions = {name: count for name, (count, _) in TOPICS.items()}
        traffic = Workload(cluster.client_settings(), partitions, messages_per_s=25)
        traffic.fill(FILL_BYTES, {"orders": 1.0, "payments": 2.0, "clicks": 0.5, "logs": 1.5})
        env = {
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": metadata.replace(
                "postgresql:", "postgresql+psycopg2:"
            ),
            # Faults have to be over within the time: Airflow takes minutes by default.
            "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "15",
            "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "15",
            **RARELY_PARSED,
            "REHOME_LEDGER_URL": ledger,
            "REHOME_WAREHOUSE": warehouse.as_uri(),
            "REHOME_WINDOW_CRON": f"*/{WINDOWS_EVERY_MIN} * * * *",
            "REHOME_WINDOW_DURATION_S": str(WINDOWS_LAST_S),
            "REHOME_WINDOW_OWN_PLAN": "true",
            "REHOME_BROKER_CAPACITY_BYTES_PER_S": "3000000",
            "REHOME_WATCH_RULES": json.dumps(WATCHED),
            "SPARK_SUBMIT_OPTS": quick_spark(),
        }
        with airflow_with(installed, home, connection_to(cluster), env) as airflow:
            wait_until(lambda: airflow.api.serves(SCHEDULED), "the scheduled DAGs", 300, 2.0)
            loads_all(airflow.api)
            for dag_id in SCHEDULED:
                airflow.api.set_paused(dag_id, paused=False)
            yield Ground(
                cluster,
                airflow,
                installed,
                LedgerRows(ledger),
                DatabaseSize(metadata),
                warehouse,
                outside,
                traffic,
            )


def _create_topics(outside: Outside, chance: random.Random) -> None:
    """Each partition in as many racks as it has replicas, unevenly over brokers."""
    new = []
    for name, (count, factor) in TOPICS.items():
        rows = []
        for _ in range(count):
            racks = chance.sample(range(3), factor)
            rows.append([rack + 1 + 3 * (chance.random() < 0.3) for rack in racks])
        new.append(NewTopic(name, num_partitions=count, replica_assignment=rows))
    for future in outside.admin.create_topics(new).values():
        future.result(120)
