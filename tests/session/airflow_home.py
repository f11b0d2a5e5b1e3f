"""An Airflow of the test process's own: a plugin, to be there before Airflow is imported."""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.session.needs import Need, needs

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(tempfile.mkdtemp(prefix="rehome-test-airflow-"))

assert "airflow" not in sys.modules, "Airflow reads its settings when it is imported: too late"
os.environ |= {
    "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(64),
    "AIRFLOW__API__SECRET_KEY": secrets.token_urlsafe(32),
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
}


@pytest.fixture(scope="session")
@needs(Need.AIRFLOW)
def airflow_database() -> None:
    """Airflow's own database, made once for the session, with Rehome's pool.

    It does not outlive it: a run commits hundreds of times, and none of them waits for the disk.
    """
    from airflow import settings
    from airflow.utils.db import initdb
    from sqlalchemy import event

    event.listen(settings.engine, "connect", _wait_for_no_disk)
    initdb()
    _add_pool()


@pytest.fixture
def without_pool(airflow_database: None) -> Iterator[None]:
    """An Airflow before `rehome settings import`."""
    from airflow.models.pool import Pool

    from rehome.trigger_check import POOL

    Pool.delete_pool(POOL)
    yield
    _add_pool()


def _add_pool() -> None:
    from airflow.models.pool import Pool

    from rehome.trigger_check import POOL

    Pool.create_or_update_pool(POOL, 16, "", include_deferred=True)


def _wait_for_no_disk(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous = OFF")


def pytest_unconfigure() -> None:
    shutil.rmtree(HOME, ignore_errors=True)
