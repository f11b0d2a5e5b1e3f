"""The channels of a test's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.notifiers.delivered import SetUp


@pytest.fixture
def channels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SetUp:
    """Sets ``alert_channels``, on a ledger of the test's own."""
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")

    def are(*entries: dict[str, Any]) -> None:
        monkeypatch.setenv("REHOME_ALERT_CHANNELS", json.dumps(entries))

    return are
