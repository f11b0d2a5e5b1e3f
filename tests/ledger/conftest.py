from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehome.ledger.store import Ledger
from tests.ledger.empty_ledgers import EmptyLedgers
from tests.ledger.postgresql import PostgreSQL
from tests.ledger.set_clock import SetClock


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/made/by/open/ledger.db"


@pytest.fixture(
    params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)],
)
def ledger_url(request: pytest.FixtureRequest) -> str:
    """Where a new ledger may be: in either database. A test that has it opened gets a copy."""
    opened = "ledger" in request.fixturenames
    if request.param == "sqlite":
        url: str = request.getfixturevalue("sqlite_url")
        if opened:
            empty: EmptyLedgers = request.getfixturevalue("empty_ledgers")
            empty.put(Path(url.removeprefix("sqlite:///")))
        return url
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.new_ledger() if opened else server.new_database()


@pytest.fixture
def ledger(ledger_url: str, clock: SetClock) -> Iterator[Ledger]:
    with Ledger.open(ledger_url, clock=clock) as ledger:
        yield ledger
