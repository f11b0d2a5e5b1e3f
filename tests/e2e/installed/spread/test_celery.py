"""CeleryExecutor: Redis, PostgreSQL and S3, and workers that share no disk."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from local.kafka.cluster import LocalCluster
from rehome.cluster.gateway import ClusterGateway
from tests.conftest import Topics
from tests.dags.clusters import throttles_of
from tests.e2e.installed.drains import DRAINED, connection_to, connects, drains, loads_all
from tests.e2e.installed.spread.machines import Spread
from tests.session.tried import Outcome

SHOWN = (
    *("apache-airflow", "apache-airflow-providers-celery", "celery", "redis"),
    *("psycopg2-binary", "SQLAlchemy", "pyspark", "s3fs"),
)

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(3600)]


def test_a_drain_by_workers_that_share_no_disk(
    spread: Spread,
    cluster: LocalCluster,
    gateway: ClusterGateway,
    topics: Topics,
    outcome: Callable[[Outcome], None],
) -> None:
    topic = topics.create([[DRAINED, 1], [2, DRAINED]])
    topics.fill(topic, 2_000)
    before = throttles_of(gateway, [topic])
    airflow = spread.world.airflow
    loads_all(airflow.api)
    connects(airflow.api, connection_to(cluster))
    plan = drains(airflow, spread.shared.ledger, topic)
    assert plan.plan_dir.startswith(spread.shared.warehouse)
    found = gateway.current_topics([topic])[topic].partitions.values()
    assert all(DRAINED not in each.replicas for each in found)
    assert throttles_of(gateway, [topic]) == before
    assert spread.world.listening.elsewhere() == {}
    outcome(Outcome("celery", spread.installed.versions(*SHOWN)))
