"""A real HTTP server on loopback that keeps what it receives."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

NO_CONTENT = 204


class Webhook:
    """Where a notifier posts to.

    :param answers: what it answers to the first requests; to others, 204. Of a number below 0 the
        connection is closed without an answer.

    ``answers_after_s`` may be set meanwhile: how long it takes to answer.
    """

    answers_after_s = 0.0

    def __init__(self, *answers: int) -> None:
        self.reported: list[dict[str, Any]] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        reported, requests, left = self.reported, self.requests, list(answers)
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                requests.append((dict(self.headers.items()), body))
                time.sleep(webhook.answers_after_s)
                answer = left.pop(0) if left else NO_CONTENT
                if answer < 0:
                    self.close_connection = True
                    return
                if answer == NO_CONTENT:
                    reported.append(json.loads(body))
                self.send_response(answer)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/alerts"

    def about(self, run_id: str) -> list[dict[str, Any]]:
        """What was sent about a run."""
        return [message for message in self.reported if message.get("run_id") == run_id]

    def ends_of(self, run_id: str) -> list[dict[str, Any]]:
        """What was sent of a run's end."""
        return [message for message in self.about(run_id) if "ended" in message]

    def __enter__(self) -> Webhook:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
