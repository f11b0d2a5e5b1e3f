"""The client of Airflow's API outlasts a database that was busy for a moment, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest

from local.airflow import api
from local.airflow.api import AirflowApi

BUSY = (500, {"detail": {"reason": "Database error", "statement": "hidden"}})
STARTED = (200, {"dag_run_id": "manual__1"})


@contextmanager
def an_airflow(*answers: tuple[int, object]) -> Iterator[AirflowApi]:
    """An Airflow whose API gives these answers, in turn, to all but the login."""
    left = list(answers)

    class Api(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            is_login = self.path.endswith("/token")
            status, body = (200, {"access_token": "t"}) if is_login else left.pop(0)
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    client = AirflowApi(f"http://127.0.0.1:{server.server_port}", "admin", "admin")
    try:
        yield client
        assert not left
    finally:
        client.close()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "BETWEEN_S", 0.0)


def test_a_run_is_triggered_again_when_the_database_was_busy() -> None:
    with an_airflow(BUSY, BUSY, STARTED) as airflow:
        assert airflow.trigger("reassign_partitions") == "manual__1"


def test_a_database_that_stays_busy_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "DATABASE_BUSY_S", 0.0)
    with an_airflow(BUSY) as busy, pytest.raises(httpx.HTTPStatusError, match="Database error"):
        busy.trigger("reassign_partitions")


def test_any_other_error_is_raised_at_once() -> None:
    refused = (500, {"detail": "An error occurred while trying to deserialize Dag"})
    with an_airflow(refused) as airflow, pytest.raises(httpx.HTTPStatusError, match="deserialize"):
        airflow.trigger("reassign_partitions")
