"""A new ledger of tests is the one that migrations make."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from rehome.ledger.store import Ledger


def dump(path: Path) -> list[str]:
    with sqlite3.connect(path) as connection:
        lines = sorted(connection.iterdump())
    return [line for line in lines if not line.startswith('INSERT INTO "identity"')]


def test_a_new_ledger_of_tests_has_what_migrations_make(tmp_path: Path) -> None:
    names = ("one", "two", "three")
    for name in names:
        Ledger.open(f"sqlite:///{tmp_path}/{name}.db").close()
    one, two, three = (dump(tmp_path / f"{name}.db") for name in names)
    assert one == two == three
    assert len(one) > 60
