"""A job whose Spark runs in a server: a process of Python on this machine is all it takes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from rehome.packaging import JOB_PATH, REMOTE

_PORT = 15002
_ANSWERS_WITHIN_S = 10.0
_ENDS_WITHIN_S = 10.0
_LAST_LINES = 20


class ConnectProcess:
    """One job of spark_jobs/."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        """Host and port of the server, without what is secret."""
        parts = urlsplit(self._url)
        return f"{parts.hostname}:{parts.port or _PORT}"

    def reach(self) -> None:
        """See that the server takes connections: PySpark would try for minutes.

        :raises OSError: it does not.
        """
        host, _, port = self.address.rpartition(":")
        socket.create_connection((host, int(port)), _ANSWERS_WITHIN_S).close()

    def run(
        self,
        script: str,
        arguments: Sequence[str],
        env: Mapping[str, str],
        log: Callable[[str], object],
    ) -> tuple[int, str]:
        """Run the job to its end; its exit code, and its last lines.

        :param log: gets each line that it prints.
        """
        path = os.pathsep.join(filter(None, (JOB_PATH, os.environ.get("PYTHONPATH"))))
        last: deque[str] = deque(maxlen=_LAST_LINES)
        ours = {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1", REMOTE: self._url}
        with subprocess.Popen(
            [sys.executable, script, *arguments],
            env={**os.environ, **env, **ours},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        ) as self._process:
            assert self._process.stdout is not None
            try:
                for line in self._process.stdout:
                    last.append(line.rstrip("\n"))
                    log(last[-1])
            except BaseException:  # a time-out of the task's, too: the job does not go on
                self.kill()
                raise
        return self._process.returncode, "\n".join(last)

    def kill(self) -> None:
        """End the job; its server goes on."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
