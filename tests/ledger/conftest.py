from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from include.ledger.store import Ledger


@pytest.fixture
def ledger_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/made/by/open/ledger.db"


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    with Ledger.open(ledger_url) as ledger:
        yield ledger
