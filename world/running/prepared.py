"""Statements that are carried out again and again, prepared once.

A run of the simulator carries some 800 statements out, most of which a module of the ledger has
made once. SQLAlchemy takes several times longer for one than SQLite does: it looks the compiled
text up, makes a context, a cursor's result and its metadata. What of that is the same every time is
kept here. The text, what becomes of the values on their way in and out, and the rows are
SQLAlchemy's own; every other statement, and every one that SQLite refuses, is its.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any
from weakref import ref

from sqlalchemy import Connection
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.engine.result import IteratorResult, SimpleResultMetaData
from sqlalchemy.sql.compiler import SQLCompiler

_UNBOUND = object()
_TYPE = attrgetter("type")


class Written:
    """The result of a statement that has no rows."""

    def __init__(self, rowcount: int) -> None:
        self.rowcount = rowcount


class PreparedStatement:
    """One statement, with the names of the values that it is given.

    :ivar sql: as SQLite reads it; ``slots``: by place: a value's name, the value where none is
        given, and what makes it one of SQLite's.
    """

    def __init__(self, compiled: SQLCompiler, dialect: Dialect) -> None:
        self.sql = str(compiled)
        ready = compiled._bind_processors  # noqa: SLF001 - what it would call itself
        self.slots: list[tuple[str, Any, Callable[[Any], Any] | None]] = []
        for name in compiled.positiontup or ():
            bind = compiled.binds[name]
            given = _UNBOUND if bind.required else bind.effective_value
            process: Any = ready.get(name)
            self.slots.append((bind.key, given, process))
        columns = compiled._result_columns  # noqa: SLF001 - likewise
        self._metadata = SimpleResultMetaData(
            [column.keyname for column in columns],
            extra=[column.objects for column in columns],
            _processors=[
                column.type._cached_result_processor(dialect, None)  # noqa: SLF001 - likewise
                for column in columns
            ],
        )
        self._has_rows = bool(columns)

    def values(self, given: Mapping[str, Any]) -> list[Any]:
        """By place.

        :raises KeyError: one is missing.
        """
        found = []
        for key, default, process in self.slots:
            value = given.get(key, default)
            if value is _UNBOUND:
                raise KeyError(key)
            found.append(value if process is None else process(value))
        return found

    def execute(self, connection: sqlite3.Connection, values: list[Any]) -> Any:
        """Its rows, or how many it has changed."""
        cursor = connection.execute(self.sql, values)
        if self._has_rows:
            return IteratorResult(self._metadata, iter(cursor.fetchall()))
        return Written(cursor.rowcount)


def prepared(statement: Any, names: Iterator[str], dialect: Dialect) -> PreparedStatement | None:
    """A statement that is the same every time; None = what is carried out depends on its values."""
    compiled = statement.compile(dialect=dialect, column_keys=list(names))
    if not isinstance(compiled, SQLCompiler):
        return None
    varies = (
        compiled.post_compile_params
        or compiled.literal_execute_params
        or compiled.insert_prefetch
        or compiled.update_prefetch
        or compiled.effective_returning
        or any(bind.callable for bind in compiled.binds.values())
    )
    return None if varies else PreparedStatement(compiled, dialect)


class PreparedStatements:
    """Those of one connection, each from the second time on that it is carried out."""

    def __init__(self, connection: Connection, raw: sqlite3.Connection) -> None:
        self._connection, self._raw = connection, raw
        self._met: dict[int, ref[Any]] = {}
        self._known: dict[tuple[Any, ...], PreparedStatement | None] = {}

    def execute(self, statement: Any, given: Any = None) -> Any:
        """As :meth:`sqlalchemy.Connection.execute`."""
        found = self._find(statement, given)
        if found is None:
            return self._connection.execute(statement, given)
        try:
            return found.execute(self._raw, found.values(given or {}))
        except (sqlite3.Error, KeyError):  # it says so in its own way
            return self._connection.execute(statement, given)

    def _find(self, statement: Any, given: Any) -> PreparedStatement | None:
        if isinstance(given, list):
            return None
        key = (id(statement), *given) if given else (id(statement),)
        try:
            return self._known[key]
        except KeyError:
            pass
        met = self._met.get(id(statement))
        if met is None or met() is not statement:
            self._met[id(statement)] = ref(statement, self._forget(id(statement)))
            return None
        found = prepared(statement, iter(given or ()), self._connection.dialect)
        self._known[key] = found
        return found

    def _forget(self, number: int) -> Callable[[Any], None]:
        def forget(_gone: Any) -> None:
            self._met.pop(number, None)
            for key in [key for key in self._known if key[0] == number]:
                del self._known[key]

        return forget
