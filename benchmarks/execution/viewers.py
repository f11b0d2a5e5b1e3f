"""Open pages of a plan, as browsers keep them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import httpx


class Viewers:
    """The open pages of some users; each does at every poll what a browser does."""

    def __init__(self, client: httpx.Client, plan_id: str, tokens: Sequence[str]) -> None:
        self._client, self._of = client, f"/plans/{plan_id}"
        self._users = [{"Cookie": f"_token={token}"} for token in tokens]
        self._news = [threading.Event() for _ in tokens]
        self._ended = threading.Event()
        self.seen_ms: list[float] = []
        self._polled = 0.0

    def look(self, number: int) -> None:
        """Take the stream's news until the end.

        :raises httpx.HTTPError: the page does not answer as it should.
        """
        user = self._users[number]
        with self._client.stream("GET", f"{self._of}/live", headers=user) as stream:
            stream.raise_for_status()
            for line in stream.iter_lines():
                if self._ended.is_set():
                    return
                if line == "event: plan":
                    self._client.get(f"{self._of}/throughput", headers=user).raise_for_status()
                    self._client.get(f"{self._of}/tabs/partitions", headers=user).raise_for_status()
                    self.seen_ms.append(1000 * (time.perf_counter() - self._polled))
                    self._news[number].set()

    def polled(self) -> None:
        """Wait until all have seen the poll that is written now.

        :raises TimeoutError: one of them has not.
        """
        for number, event in enumerate(self._news):
            if not event.wait(60):
                raise TimeoutError(f"viewer {number} has not seen the poll")
            event.clear()

    def begin(self) -> None:
        """Count from now."""
        self._polled = time.perf_counter()

    def end(self) -> None:
        """Close every page at its next news."""
        self._ended.set()
