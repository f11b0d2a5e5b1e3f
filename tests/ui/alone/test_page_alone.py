"""`make page`: the page's server alone, which starts anew when a file is saved."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from local.process.waiting import wait_until
from tests.session.needs import Need, needs
from tests.ui.alone.page_alone import ROOT

TIMEOUT_S = 300


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def watched(tmp_path: Path) -> Path:
    folder = tmp_path / "watched"
    folder.mkdir()
    return folder


@pytest.fixture
@needs(Need.AIRFLOW)
def alone(tmp_path: Path, watched: Path) -> Iterator[tuple[str, Path]]:
    """Its address, and what it writes to stderr."""
    port, log = free_port(), tmp_path / "log"
    command = [sys.executable, "-m", "tests.ui.alone.page_alone", "--port", str(port)]
    command += ["--state", str(tmp_path / "state"), "--watch", str(watched)]
    with (
        log.open("w") as output,
        subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output) as server,
    ):
        yield f"http://127.0.0.1:{port}/rehome", log
        server.terminate()


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    """One for all requests: to make one reads all certificates of this machine."""
    with httpx.Client(timeout=60) as found:
        yield found


def status_of(client: httpx.Client, url: str) -> int | None:
    try:
        return client.get(url).status_code
    except httpx.TransportError:
        return None


def test_recorded_plans_are_shown_and_a_saved_file_starts_it_anew(
    alone: tuple[str, Path], watched: Path, client: httpx.Client
) -> None:
    url, log = alone
    wait_until(lambda: status_of(client, url + "/") == 200, "the page", TIMEOUT_S)
    plans = client.get(url + "/").text
    for plan_id in ("running", "paused", "to-approve", "done", "failed", "open"):
        assert f"plans/{plan_id}" in plans
        assert status_of(client, f"{url}/plans/{plan_id}") == 200
    assert "Reloading" not in log.read_text()
    (watched / "page.css").write_text("body { color: black }")
    wait_until(lambda: "Reloading" in log.read_text(), "the server to start anew", TIMEOUT_S)
    wait_until(lambda: status_of(client, url + "/") == 200, "the page", TIMEOUT_S)
