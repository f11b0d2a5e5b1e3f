"""A ledger, and the plan of three moves that runs in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehome.domain.plan.plan import Plan
from rehome.ledger.store import Ledger
from tests.account.plans_with_bytes import started
from tests.ledger.empty_ledgers import EmptyLedgers
from tests.ledger.set_clock import SetClock


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def ledger(tmp_path: Path, empty_ledgers: EmptyLedgers, clock: SetClock) -> Iterator[Ledger]:
    empty_ledgers.put(tmp_path / "ledger.db")
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", clock=clock) as ledger:
        yield ledger


@pytest.fixture
def plan(ledger: Ledger, tmp_path: Path) -> Plan:
    return started(ledger, tmp_path)
