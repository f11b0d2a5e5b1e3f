"""The ledger that the threads of the API server share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rehome import installation
from rehome.api.process_ledger import ProcessLedger
from rehome.settings import Settings


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The last of these is the ledger that the settings name."""
    urls = [f"sqlite:///{tmp_path}/first.db"]
    monkeypatch.setattr(installation, "settings", lambda: Settings(ledger_url=urls[-1]))
    return urls


def test_it_is_opened_once_for_all_threads(named: list[str]) -> None:
    shared = ProcessLedger()
    with ThreadPoolExecutor(8) as threads:
        opened = {id(each) for each in threads.map(lambda _: shared.open(), range(32))}
    assert len(opened) == 1
    shared.open().close()


def test_another_one_is_opened_when_the_settings_name_another(
    named: list[str], tmp_path: Path
) -> None:
    shared = ProcessLedger()
    first = shared.open()
    named.append(f"sqlite:///{tmp_path}/second.db")
    second = shared.open()
    assert second.ledger_id != first.ledger_id
    assert shared.open() is second
    second.close()
