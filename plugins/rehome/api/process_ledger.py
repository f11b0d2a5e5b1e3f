"""The ledger as all threads of the API server share it: opened once, pooled."""

from __future__ import annotations

from threading import Lock

from rehome import installation
from rehome.ledger.store import Ledger


class ProcessLedger:
    """The ledger that the settings name. Another one is opened when they name another."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ledger: Ledger | None = None
        self._url = ""

    def open(self) -> Ledger:
        """The ledger.

        :raises RehomeError: it cannot be opened.
        """
        with self._lock:
            url = installation.settings().ledger_url
            if self._ledger is None or url != self._url:
                if self._ledger is not None:
                    self._ledger.close()
                self._ledger, self._url = Ledger.open(url, pooled=True), url
            return self._ledger


LEDGER = ProcessLedger()
