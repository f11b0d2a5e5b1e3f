"""The page over a ledger of the test's own, and users of every role."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rehome.api.decisions import RECORDER
from rehome.ledger.store import Ledger
from tests.ledger.empty_ledgers import EmptyLedgers
from tests.ledger.set_clock import SetClock

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.testclient import TestClient

    from tests.ui.site import Site

HOUR_S = timedelta(hours=1).total_seconds()


@pytest.fixture(scope="session")
def page(airflow_database: None) -> FastAPI:
    """The application, mounted as Airflow mounts it."""
    from tests.ui.site import page_app

    return page_app()


@pytest.fixture
def site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_ledgers: EmptyLedgers
) -> Iterator[Site]:
    """What the page reads: its clock begins an hour ago."""
    from tests.ui.site import Site

    url = f"sqlite:///{tmp_path}/ledger.db"
    monkeypatch.setenv("REHOME_LEDGER_URL", url)
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    clock = SetClock()
    clock.pass_s(-HOUR_S)
    empty_ledgers.put(tmp_path / "ledger.db")
    with Ledger.open(url, clock=clock) as ledger:
        yield Site(ledger, clock, tmp_path / "warehouse")
        # What is still to be recorded is of this ledger, not of the next test's.
        assert RECORDER.flush(30)


@pytest.fixture
def url(page: FastAPI, site: Site) -> Iterator[str]:
    """Where a browser finds the page of this ledger."""
    from tests.ui.site import served

    assert site.ledger is not None
    with served(page) as address:
        yield f"{address}/rehome"


@pytest.fixture
def client(page: FastAPI, site: Site) -> Callable[[str], TestClient]:
    """A browser of a user of a role: ``client("viewer")``; without a login: ``client("")``."""
    from fastapi.testclient import TestClient

    from tests.ui.site import token_of

    def opened(role: str) -> TestClient:
        assert site.ledger is not None
        cookies = {"_token": token_of(role)} if role else {}
        return TestClient(page, cookies=cookies, base_url="http://testserver/rehome")

    return opened


@pytest.fixture
def token(client: Callable[[str], TestClient], site: Site) -> str:
    """What an admin's own page carries."""
    found = re.search(r'"X-Rehome-Token": "([^"]+)"', client("admin").get("").text)
    assert found
    return found[1]


@pytest.fixture
def triggered(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Runs that would have been triggered: no scheduler is here."""
    found: list[dict[str, Any]] = []

    def trigger_dag(dag_id: str, **values: Any) -> Any:
        found.append({"dag_id": dag_id, **values})
        return type("Run", (), {"run_id": "manual__1"})

    monkeypatch.setattr("rehome.ui.dag_runs.trigger_dag", trigger_dag)
    return found
