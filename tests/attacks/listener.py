"""A port of this machine that nobody has any business with."""

from __future__ import annotations

import socket
import threading
from types import TracebackType


class Trap:
    """Listens, answers "not found", and keeps what it was sent."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(64)
        self.port = int(self._socket.getsockname()[1])
        self.heard: list[str] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Trap:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()

    @property
    def hostile(self) -> tuple[str, ...]:
        """URIs that lead here, by whatever fsspec knows."""
        here = f"127.0.0.1:{self.port}"
        return (
            f"http://{here}/snapshots/cluster=x/taken_at=1",
            f"filecache::http://{here}/snapshots/cluster=x/taken_at=1",
            f"simplecache::http://{here}/a",
            f"ftp://{here}/x",
        )

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(0.5)
                try:
                    said = connection.recv(200).decode(errors="replace")
                except OSError:
                    said = ""
                self.heard.append(said or "(connected)")
                answer = b"HTTP/1.1 404 x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                try:
                    connection.sendall(answer)
                except OSError:
                    continue
