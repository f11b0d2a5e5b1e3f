"""Clusters that are watched, and people who answer proposals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from rehome.cluster.gateway import ClusterGateway
from rehome.ledger.store import Ledger
from rehome.warehouse import Warehouse
from tests.conftest import impatient_gateway
from tests.dags.approval import answers
from tests.dags.runs import Run
from tests.dags.watching.healed import Healed


@pytest.fixture
def watch(
    ledger: Ledger,
    ledger_url: str,
    rehome: Callable[..., Run],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., Healed]]:
    """Watches a cluster in a window that is open for half a day yet."""
    window(monkeypatch, 24 * 3600.0 - 1)
    opened: list[ClusterGateway] = []

    def begin(cluster: LocalCluster, **rules: Any) -> Healed:
        gateway = impatient_gateway(cluster)
        opened.append(gateway)
        warehouse = Warehouse((tmp_path / "warehouse").as_uri())
        found = Healed(cluster, gateway, warehouse, ledger, ledger_url, monkeypatch)
        found.rehome, found.carried_out = rehome, []
        found.rules(**rules)
        return found

    yield begin
    for gateway in opened:
        gateway.close()


def window(patch: pytest.MonkeyPatch, duration_s: float) -> None:
    """Windows that open half a day from now."""
    opens = (datetime.now(UTC) + timedelta(hours=12)).hour
    patch.setenv("REHOME_WINDOW_CRON", f"0 {opens} * * *")
    patch.setenv("REHOME_WINDOW_DURATION_S", str(duration_s))


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Closes the window."""
    return lambda: window(monkeypatch, 60.0)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Opens it again."""
    return lambda: window(monkeypatch, 24 * 3600.0 - 1)


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Has ann answer every request for approval; returns the requests."""

    def by(option: str) -> list[str]:
        return answers.answered(monkeypatch, lambda _: answers.Given(option)).bodies

    return by
