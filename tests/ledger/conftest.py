from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from include.ledger.store import Ledger
from tests.ledger.set_clock import SetClock


@pytest.fixture
def ledger_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/made/by/open/ledger.db"


@pytest.fixture
def ledger(ledger_url: str, clock: SetClock) -> Iterator[Ledger]:
    with Ledger.open(ledger_url, clock=clock) as ledger:
        yield ledger
