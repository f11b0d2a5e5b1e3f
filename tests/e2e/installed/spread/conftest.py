"""One Airflow on several machines for the tests of this folder: its environment has 1.3 GB."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from local.kafka.cluster import LocalCluster
from tests.e2e.conftest import World
from tests.e2e.installed.spread.machines import Shared, Spread, spread_airflow
from tests.e2e.installed.spread.redis_server import redis_server
from tests.ledger.postgresql import PostgreSQL
from tests.plugins.wheel import SPREAD, Installed, installed_with
from tests.session.needs import Need, needs
from tests.session.s3_server import S3


@pytest.fixture(scope="session")
def company(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel beside an Airflow with Celery, PostgreSQL and FAB."""
    return installed_with(SPREAD, tmp_path_factory.mktemp("company"))


@pytest.fixture(scope="session")
@needs(Need.AIRFLOW)
def spread(
    cluster: LocalCluster,
    postgresql: PostgreSQL,
    s3: S3,
    company: Installed,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Spread]:
    """It runs until the last of its tests has ended."""
    if shutil.which("redis-server") is None:
        pytest.skip("Redis is missing: bin/setup redis installs it")
    directory = tmp_path_factory.mktemp("spread")
    with redis_server(directory / "redis") as redis:
        databases = postgresql.new_database(), postgresql.new_database()
        shared = Shared(*databases, redis, s3.new_warehouse(), s3)
        with spread_airflow(directory, company, cluster, shared) as running:
            yield running


@pytest.fixture(scope="session")
def world(spread: Spread) -> World:
    """In the place of the one that other tests have."""
    return spread.world
