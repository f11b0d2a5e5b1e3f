"""Airflow's auth manager, as its API server starts it."""

from __future__ import annotations

import pytest

from rehome.api import decisions


@pytest.fixture(scope="session")
def auth_manager(airflow_database: None) -> None:
    """Knows the tokens that ``token_of`` makes."""
    from airflow.api_fastapi.app import init_auth_manager

    init_auth_manager()


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What would be recorded; no ledger is opened."""
    found: list[object] = []
    monkeypatch.setattr(decisions.RECORDER, "put", found.append)
    return found
