"""Statements that are carried out again and again, prepared once.

A run of the simulator carries some 800 statements out, most of which a module of the ledger has
made once. SQLAlchemy takes several times longer for one than SQLite does: it looks the compiled
text up, makes a context, a cursor's result and its metadata. What of that is the same every time is
kept here. The text, what becomes of values on their way in and out, and the rows are SQLAlchemy's
own; every other statement, and every one that SQLite refuses, is left to it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple
from weakref import ref

from sqlalchemy import Connection
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.engine.result import IteratorResult, SimpleResultMetaData
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.sql.compiler import SQLCompiler


class Slot(NamedTuple):
    """What stands in one place of a statement's text.

    :param key: the value's name; ``default``: the value where none of that name is given.
    :param element: which one of the value's, where that is the list of an ``IN``; None = itself.
    :param ready: makes it a value of SQLite's; None = it is one.
    """

    key: str
    default: Any
    element: tuple[int, ...] | None
    ready: Callable[[Any], Any] | None


class Written:
    """The result of a statement that has no rows."""

    def __init__(self, rowcount: int) -> None:
        self.rowcount = rowcount


class PreparedStatement:
    """One text, of a statement that is given values of certain names, and lists of certain lengths.

    :raises InvalidRequestError: a value is missing.
    """

    def __init__(self, compiled: SQLCompiler, dialect: Dialect, given: Mapping[str, Any]) -> None:
        state = compiled.construct_expanded_state(dict(given))
        self._sql = state.statement
        places: dict[str, tuple[str, tuple[int, ...] | None]] = {}
        for name, of_list in state.parameter_expansion.items():
            kind: Any = compiled.binds[name].type
            width = len(kind.types) if kind._is_tuple_type else 0
            for number, expanded in enumerate(of_list):
                places[expanded] = (name, divmod(number, width) if width else (number,))
        ready = {**compiled._bind_processors, **state.processors}
        self._slots = []
        for place in state.positiontup or ():
            name, element = places.get(place, (place, None))
            bind = compiled.binds[name]
            default = None if bind.required else bind.effective_value
            process: Any = ready.get(place)
            self._slots.append(Slot(bind.key, default, element, process))
        columns = compiled._result_columns
        self._has_rows = bool(columns)
        self._metadata = SimpleResultMetaData(
            [column.keyname for column in columns],
            extra=[column.objects for column in columns],
            _processors=[column.type._cached_result_processor(dialect, None) for column in columns],
        )

    def execute(self, connection: sqlite3.Connection, given: Mapping[str, Any]) -> Any:
        """Its rows, or how many it has changed."""
        values = []
        for key, default, element, ready in self._slots:
            value = given.get(key, default)
            if element is not None:
                for number in element:
                    value = value[number]
            values.append(value if ready is None else ready(value))
        cursor = connection.execute(self._sql, values)
        if self._has_rows:
            return IteratorResult(self._metadata, iter(cursor.fetchall()))
        return Written(cursor.rowcount)


class CompiledStatement:
    """A statement that is given values of certain names, with its text for each length of lists."""

    def __init__(self, compiled: SQLCompiler, dialect: Dialect) -> None:
        self._compiled, self._dialect = compiled, dialect
        self._lists = {
            bind.key: () if bind.required else bind.effective_value
            for bind in compiled.post_compile_params
        }
        self._texts: dict[tuple[int, ...], PreparedStatement] = {}

    def execute(self, connection: sqlite3.Connection, given: Mapping[str, Any]) -> Any:
        """See :class:`PreparedStatement`."""
        lengths: tuple[int, ...] = ()
        if self._lists:
            lists = {key: list(given.get(key, value)) for key, value in self._lists.items()}
            lengths = tuple(map(len, lists.values()))
            given = {**given, **lists}
        text = self._texts.get(lengths)
        if text is None:
            text = PreparedStatement(self._compiled, self._dialect, given)
            self._texts[lengths] = text
        return text.execute(connection, given)


class PreparedStatements:
    """Those of one connection, each from the second time on that it is carried out.

    Statements differ by their identity (:func:`id`). One that is prepared lives as long as
    this does; one that was met once is forgotten when it is gone, for its identity may become
    another's.

    :ivar kept: statements that are prepared.
    """

    def __init__(self, connection: Connection, raw: sqlite3.Connection) -> None:
        self._connection, self._raw = connection, raw
        self._met: dict[int, ref[Any]] = {}
        self._known: dict[tuple[Any, ...], CompiledStatement | None] = {}
        self.kept: list[Any] = []

    def execute(self, statement: Any, given: Any = None) -> Any:
        """As :meth:`sqlalchemy.Connection.execute`."""
        found = None if isinstance(given, list) else self._find(statement, given or {})
        if found is None:
            return self._connection.execute(statement, given)
        try:
            return found.execute(self._raw, given or {})
        except (sqlite3.Error, InvalidRequestError):  # it says so in its own way
            return self._connection.execute(statement, given)

    def _find(self, statement: Any, given: Mapping[str, Any]) -> CompiledStatement | None:
        number = id(statement)
        key = (number, *given)
        try:
            return self._known[key]
        except KeyError:
            pass
        if number not in self._met:
            self._met[number] = ref(statement, lambda _gone: self._met.pop(number))
            return None
        self.kept.append(statement)
        found = self._known[key] = _compiled(statement, given, self._connection.dialect)
        return found


def _compiled(statement: Any, names: Collection[str], dialect: Dialect) -> CompiledStatement | None:
    """None = more than values and lists is different each time."""
    compiled = statement.compile(dialect=dialect, column_keys=list(names))
    if not isinstance(compiled, SQLCompiler):
        return None
    varies = (
        compiled.literal_execute_params
        or compiled.insert_prefetch
        or compiled.update_prefetch
        or compiled.effective_returning
        or any(bind.callable for bind in compiled.binds.values())
    )
    return None if varies else CompiledStatement(compiled, dialect)
