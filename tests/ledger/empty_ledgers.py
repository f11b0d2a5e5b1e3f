"""Ledgers with the newest schema: to migrate a new one takes longer than most tests."""

from __future__ import annotations

import sqlite3
import uuid
from contextlib import closing
from pathlib import Path

from include.ledger.store import Ledger


class EmptyLedgers:
    """Copies of an SQLite file that was migrated once; each has an id of its own."""

    def __init__(self, directory: Path) -> None:
        file = directory / "empty.db"
        Ledger.open(f"sqlite:///{file}").close()
        self._content = file.read_bytes()

    def put(self, path: Path) -> None:
        """A ledger as a new one is once it was opened."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self._content)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE identity SET ledger_id = ?", [uuid.uuid4().hex])
