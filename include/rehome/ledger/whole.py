"""The whole ledger as a file, and a new ledger from that: JSON, one value a line.

First a header, then each row as ``[table, {column: value}]``, parents first; at last how many rows
of each table there are, and the digest (SHA-256) of all lines before.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import groupby, islice
from typing import Any, BinaryIO

from sqlalchemy import Connection, Table, func, insert, select, text

from rehome.domain.clock import utc_now
from rehome.errors import RehomeError
from rehome.ledger.base.database import newest_schema
from rehome.ledger.base.models import IDENTITY, METADATA, UtcDateTime
from rehome.ledger.store import Ledger
from rehome.version import REHOME_VERSION

FILE_FORMAT = 1
"""Of the header: another layout of lines gets another number."""
LEDGER_ROWS_AT_ONCE = 1_000
UNCHANGED = "The ledger is as it was."


class LedgerFileError(RehomeError):
    """The file is no export of a ledger that this one can take, or the ledger is not empty."""


def export_ledger(ledger: Ledger, file: BinaryIO) -> dict[str, int]:
    """Write all of the ledger, as it is at one moment; how many rows of each table."""
    digest, counts = hashlib.sha256(), Counter[str]()

    def write(value: Any) -> None:
        line = json.dumps(value, separators=(",", ":"), default=_time).encode() + b"\n"
        digest.update(line)
        file.write(line)

    write(
        {
            "rehome_ledger": FILE_FORMAT,
            "schema": newest_schema(),
            "ledger_id": ledger.ledger_id,
            "version": REHOME_VERSION,
            "at": utc_now(),
        }
    )
    with ledger.reading() as connection:
        for table in METADATA.sorted_tables:
            rows = connection.execution_options(yield_per=LEDGER_ROWS_AT_ONCE).execute(
                select(table)
            )
            for row in rows.mappings():
                write([table.name, dict(row)])
                counts[table.name] += 1
    write({"counts": counts, "sha256": digest.hexdigest()})
    return dict(counts)


def import_ledger(ledger: Ledger, file: BinaryIO) -> dict[str, int]:
    """Fill a new ledger with what a file holds, its id too; how many rows of each table.

    All or nothing. The file is read twice: nothing is written before its digest is right.

    :param file: at its beginning; it can be read anew.
    :raises LedgerFileError: the file is none of this schema, or was changed; or the ledger holds
        something already.
    """
    counts = _checked_counts(file)
    file.seek(0)
    with ledger.writing() as connection:
        if there := [name for name, rows in _row_counts(connection).items() if rows]:
            raise LedgerFileError(
                f"The ledger is not empty: it has rows of {', '.join(there)}",
                state_left=UNCHANGED,
                next_step="Name a ledger that does not exist yet.",
            )
        connection.execute(IDENTITY.delete())
        for name, rows in groupby(_rows(file), key=lambda row: row[0]):
            table = METADATA.tables[name]
            while some := [_typed_row(table, row) for _, row in islice(rows, LEDGER_ROWS_AT_ONCE)]:
                connection.execute(insert(table), some)
        _count_on(connection)
        counts_after = {
            name: rows for name, rows in _row_counts(connection, all_of=True).items() if rows
        }
        if counts_after != counts:
            raise LedgerFileError(
                f"Rows by table would be {counts_after}, and the file says {counts}",
                state_left=UNCHANGED,
                next_step="Report it: the file is as it was written.",
            )
    return counts


def _checked_counts(file: BinaryIO) -> dict[str, int]:
    """The file's own counts, once all of it is as it was written."""
    digest, counts, last = hashlib.sha256(), Counter[str](), b""
    for number, line in enumerate(file):
        if number == 1:
            _check_header(last)
        if number:
            digest.update(last)
        if number > 1:
            counts[_table_of(last)] += 1
        last = line
    try:
        said = json.loads(last)
        right = said["sha256"] == digest.hexdigest() and said["counts"] == counts
    except (ValueError, KeyError, TypeError):
        right = False
    if not right:
        raise LedgerFileError(
            "The file is not as an export wrote it: it was cut off or changed",
            state_left=UNCHANGED,
            next_step="Export the ledger anew, and copy the file as it is.",
        )
    return dict(counts)


def _table_of(line: bytes) -> str:
    """The table of a row; "" = the line is no row: then the digest is not the file's, either."""
    try:
        return str(json.loads(line)[0])
    except (ValueError, LookupError, TypeError):
        return ""


def _check_header(line: bytes) -> None:
    try:
        header = json.loads(line)
        is_export = header["rehome_ledger"] == FILE_FORMAT
    except (ValueError, KeyError, TypeError):
        is_export = False
    if not is_export:
        raise LedgerFileError(
            "The file is no export of a ledger",
            state_left=UNCHANGED,
            next_step="Name one that `rehome ledger export` has written.",
        )
    if header["schema"] != newest_schema():
        raise LedgerFileError(
            f"Rehome {header['version']} wrote this file with the ledger's schema "
            f"{header['schema']}, and this version's schema is {newest_schema()}",
            state_left=UNCHANGED,
            next_step="Where the file is older, import it into a new ledger with the version that "
            "wrote it, then open that ledger with this version, which upgrades it. Or export "
            "anew with this version.",
        )


def _rows(file: BinaryIO) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each row with the name of its table: what is neither header nor end."""
    for line in file:
        entry = json.loads(line)
        if isinstance(entry, list):
            name, row = entry
            yield name, row


def _typed_row(table: Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """Times as such, the rest as JSON has it."""
    times = {column.name for column in table.columns if isinstance(column.type, UtcDateTime)}
    return {
        name: datetime.fromisoformat(value) if name in times and value is not None else value
        for name, value in row.items()
    }


def _time(value: object) -> str:
    assert isinstance(value, datetime)
    return value.isoformat()


def _row_counts(connection: Connection, *, all_of: bool = False) -> dict[str, int]:
    """How many rows each table has; without the ledger's id, which a new one has, too."""
    tables = [table for table in METADATA.sorted_tables if all_of or table is not IDENTITY]
    return {
        table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in tables
    }


def _count_on(connection: Connection) -> None:
    """Have PostgreSQL count on after the largest number of each table; SQLite does by itself."""
    if connection.dialect.name != "postgresql":
        return
    for table in METADATA.sorted_tables:
        counted = table.autoincrement_column
        if counted is not None and counted.type.python_type is int:
            sequence = f"pg_get_serial_sequence('{table.name}', '{counted.name}')"
            largest = f"(SELECT max({counted.name}) FROM {table.name})"
            connection.execute(
                text(f"SELECT setval({sequence}, {largest}) WHERE {largest} IS NOT NULL")
            )
