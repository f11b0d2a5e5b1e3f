"""Ledgers with the newest schema: to migrate a new one takes longer than most tests."""

from __future__ import annotations

import sqlite3
import uuid
from collections import deque
from pathlib import Path

from rehome.ledger.store import Ledger
from rehome.private_files import private_file

KEPT_OPEN = 8


class EmptyLedgers:
    """Copies of an SQLite file that was migrated once; each has an id of its own.

    A connection to each of the newest stays open: SQLite removes the write-ahead log when the
    last one closes, which a ledger with a connection for each transaction would pay every time.
    """

    def __init__(self, directory: Path) -> None:
        file = directory / "empty.db"
        Ledger.open(f"sqlite:///{file}").close()
        self._content = file.read_bytes()
        self._open: deque[sqlite3.Connection] = deque()

    def put(self, path: Path) -> None:
        """A ledger as a new one is once it was opened."""
        path.parent.mkdir(parents=True, exist_ok=True)
        private_file(path)
        path.write_bytes(self._content)
        connection = sqlite3.connect(path, check_same_thread=False)
        with connection:
            connection.execute("UPDATE identity SET ledger_id = ?", [uuid.uuid4().hex])
        self._open.append(connection)
        if len(self._open) > KEPT_OPEN:
            self._open.popleft().close()
