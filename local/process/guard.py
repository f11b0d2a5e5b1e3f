"""Ends processes when the one that started them is gone, however it went.

The guard holds the reading end of a pipe. Its owner writes ``+PID`` for each process it starts
and ``-PID`` for each it has reaped. When the pipe closes or the owner dies (also by SIGKILL),
the guard kills what is left, with all descendants: Airflow runs tasks in sessions of their own.
A mark in their environment finds those whose parent has died already. PR_SET_PDEATHSIG will
not do: it follows the starting *thread*.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

MARK = "REHOME_GUARD"
ROUNDS = 50


class Guard:
    """The owner's side: starts processes that cannot outlive this one."""

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex
        self._process = subprocess.Popen(
            [sys.executable, __file__, self._mark],
            stdin=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )

    def spawn(
        self, argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start ``argv`` in a session of its own, its output appended to ``log``."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(os.environ if env is None else env) | {MARK: self._mark},
                start_new_session=True,
            )
        self._tell(f"+{process.pid}")
        return process

    def reap(self, process: subprocess.Popen[bytes], timeout_s: float) -> bool:
        """Wait for a process to end; False when it has not within ``timeout_s``."""
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        self._tell(f"-{process.pid}")
        return True

    def close(self) -> None:
        """Kill every process still there and end the guard. Idempotent."""
        assert self._process.stdin is not None
        if not self._process.stdin.closed:
            self._process.stdin.close()
            self._process.wait(120)

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())


def main() -> None:
    """The guard's side."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    owner, pids, rest = os.getppid(), set[int](), b""
    selector = selectors.DefaultSelector()
    selector.register(0, selectors.EVENT_READ)
    # A child forked by the owner may hold the pipe open after the owner's death: watch both.
    while os.getppid() == owner:
        if not selector.select(timeout=1.0):
            continue
        data = os.read(0, 4096)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            (pids.add if line[:1] == b"+" else pids.discard)(int(line[1:]))
    for _ in range(ROUNDS):  # what starts while others are killed is met in the next round
        left = _family(pids, sys.argv[1])
        for process in left:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        if not left:
            return
        psutil.wait_procs(left, timeout=1.0)


def _family(pids: set[int], mark: str) -> list[psutil.Process]:
    """The processes of these ids, their descendants, and whatever carries the mark."""
    found: set[psutil.Process] = set()
    for process in psutil.process_iter():
        try:
            marked = process.environ().get(MARK) == mark
            if process.pid in pids or marked:
                found |= {process, *process.children(recursive=True)}
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return [p for p in found if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


if __name__ == "__main__":
    main()
