"""A UDP socket in the place of a StatsD server, and Airflow set to send to it: a plugin."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from types import TracebackType

import pytest


class StatsdListener:
    """Keeps every line that arrives. ``with`` it, or ``close`` it."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.2)
        self._lines: list[str] = []
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def __enter__(self) -> StatsdListener:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    def env(self) -> dict[str, str]:
        """Has Airflow send Rehome's metrics here, and none of its own."""
        return {**statsd_env(self.port), "AIRFLOW__METRICS__METRICS_ALLOW_LIST": "^rehome"}

    def lines(self) -> list[str]:
        with self._lock:
            return list(self._lines)

    def values(self) -> dict[str, list[float]]:
        """Name → every value that was sent, in order; types are left out."""
        found: dict[str, list[float]] = {}
        for line in self.lines():
            name, _, value = line.partition(":")
            found.setdefault(name, []).append(float(value.split("|")[0]))
        return found

    def close(self) -> None:
        self._ended.set()
        self._thread.join(120)
        self._socket.close()

    def _listen(self) -> None:
        while not self._ended.is_set():
            try:
                datagram = self._socket.recv(65536)
            except TimeoutError:
                continue
            with self._lock:
                self._lines += datagram.decode().splitlines()


def statsd_env(port: int) -> Mapping[str, str]:
    return {
        "AIRFLOW__METRICS__STATSD_ON": "True",
        "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
        "AIRFLOW__METRICS__STATSD_PORT": str(port),
    }


def restart_stats() -> None:
    """Have this process read Airflow's ``[metrics]`` anew, as each task's process does."""
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics import stats_utils

    stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=True)


@pytest.fixture
def statsd(monkeypatch: pytest.MonkeyPatch) -> Iterator[StatsdListener]:
    """What this process sends from now on."""
    with StatsdListener() as listener, monkeypatch.context() as patched:
        for name, value in listener.env().items():
            patched.setenv(name, value)
        restart_stats()
        yield listener
    restart_stats()
