"""A Redis of the tests' own, on the loopback interface: Celery's queue."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.process.guard import Guard
from local.process.ports import free_ports
from local.process.waiting import wait_until


@contextmanager
def redis_server(directory: Path) -> Iterator[str]:
    """Start one; yields its URL. It writes nothing but its log."""
    directory.mkdir()
    (port,) = free_ports(1)
    command = ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
    guard = Guard()
    try:
        guard.spawn([*command, "--dir", str(directory)], directory / "redis.log")
        wait_until(lambda: _answers(port), "Redis to answer")
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        guard.close()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as asked:
            asked.sendall(b"PING\r\n")
            return asked.recv(16) == b"+PONG\r\n"
    except OSError:
        return False
