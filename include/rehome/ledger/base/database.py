"""The ledger's database: connections that lose no update, and its schema brought up to date.

Two databases are supported: SQLite (a file on a local disk) and PostgreSQL. In their default modes
both lose updates of read-then-write transactions in several processes without an error. So writers
take turns here: every writing transaction begins with ``BEGIN IMMEDIATE`` in WAL mode, or with
PostgreSQL's advisory lock. Readers do not wait, and see one state of the ledger.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import (
    ArgumentError,
    InterfaceError,
    InternalError,
    OperationalError,
    ProgrammingError,
    SQLAlchemyError,
)
from sqlalchemy.pool import NullPool

from rehome.domain.clock import Clock, monotonic_s, sleep, utc_now
from rehome.errors import RehomeError
from rehome.ledger.base.fencing import Lease, renew
from rehome.private_files import close_file, folder, private_file

BUSY_TIMEOUT_S = 30.0
POOLED, POOLED_S = 3, 600
"""Connections that a pool keeps, and seconds until one is opened anew."""
PASS_THROUGH = "commit 4b21452f of Rehome's repository"
"""The last version that upgrades ledgers from before the baseline."""
_URLS = "sqlite:////path/to/ledger.db or postgresql://user@host/database"
_DISK_FULL = "53100"
_MIGRATIONS = Path(__file__).parents[1] / "migrations"
_VERSION = "SELECT version_num FROM alembic_version"
WRITERS_LOCK = 7_364_003  # any number, the same in every process (pg_advisory_xact_lock)

# Every ledger that is opened would print two lines on its version.
logging.getLogger("alembic").setLevel(logging.WARNING)

_READING: ContextVar[Connection | None] = ContextVar("reading", default=None)


class LedgerNotOpenError(RehomeError):
    """The ledger's database cannot be opened, or a newer Rehome wrote it."""


class LedgerUnavailableError(RehomeError):
    """The ledger's database did not carry a transaction out: it is locked, or out of reach."""


@contextmanager
def _plainly() -> Iterator[None]:
    """What the database itself cannot do, in words; what a statement did wrong passes."""
    try:
        yield
    except (OperationalError, InterfaceError, InternalError) as error:
        raise LedgerUnavailableError(
            f"The ledger cannot be used now: {error.orig}",
            state_left="What it was to record is not recorded; what is in flight on the cluster "
            "goes on as it has begun.",
            next_step=f"{_remedy(error.orig)}, then try again: the ledger and the cluster show "
            "what is left to do.",
        ) from error


def _remedy(error: BaseException | None) -> str:
    """What has to be seen to, by the database's own code: SQLite's, or PostgreSQL's SQLSTATE."""
    if isinstance(error, ImportError):
        return "Install the driver that its URL names"
    code, state = getattr(error, "sqlite_errorcode", None), getattr(error, "sqlstate", None)
    primary = None if code is None else code & 0xFF
    if primary == sqlite3.SQLITE_FULL or state == _DISK_FULL:
        return "Make room on the disk that holds the ledger: it is full"
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return "See that the user of this process may write to the ledger's file and its folder"
    return "See that its database is up and not locked"


class Database:
    """Transactions on the ledger: one kind that reads, one that writes.

    Either raises :class:`LedgerUnavailableError` where the database is locked for longer than
    ``BUSY_TIMEOUT_S``, or out of reach.

    :param clock: what the ledger writes as the time of a change.
    :param lease: what every write depends on; None = on nothing.
    """

    def __init__(self, engine: Engine, clock: Clock = utc_now, lease: Lease | None = None) -> None:
        self.engine = engine
        self._clock = clock
        self._lease = lease

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view of the ledger; within another reading of this thread, the same."""
        outer = _READING.get()
        if outer is not None and outer.engine is self.engine:
            yield outer
            return
        with _plainly(), self.engine.begin() as connection:
            token = _READING.set(connection)
            try:
                yield connection
            finally:
                _READING.reset(token)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """All or nothing, and no other writer in between.

        :raises LeaseLostError: this ledger writes under a lease that another run has taken over.
        """
        with _plainly(), _writer(self.engine).begin() as connection:
            if self._lease is not None:
                renew(connection, self._lease, self._clock())
            yield connection


def open_engine(url: str, *, pooled: bool = False) -> Engine:
    """An engine on the ledger at ``url``, with the newest schema in place.

    Several processes may do this at once. An SQLite file and its folder are made, and are
    nobody's but this user's.

    :param pooled: whether connections to PostgreSQL are kept, see :meth:`Ledger.open`.
    :raises LedgerNotOpenError: the database cannot be opened, or a newer Rehome wrote it.
    """
    try:
        engine = _engine(url, BUSY_TIMEOUT_S, pooled)
        if not _is_ready(engine):
            if _is_file(engine):
                _switch_to_wal(str(engine.url.database))
            _migrate(engine)
    except (SQLAlchemyError, sqlite3.Error, OSError, ImportError) as error:
        raise LedgerNotOpenError(
            f"The ledger cannot be opened: {error}",
            state_left="What it holds is not known.",
            next_step=f"{_remedy(getattr(error, 'orig', error))}; and check the connection "
            "rehome_ledger, or the setting ledger_url.",
        ) from error
    return engine


@lru_cache(maxsize=16)
def _engine(url: str, patience_s: float, pooled: bool) -> Engine:
    """One for all that this process opens there: an engine knows the statements that it has seen,
    and to learn them anew takes longer than to carry them out.

    Without being asked it has no pool: Airflow forks, and a connection must never be shared across
    a fork. A pool asks each connection whether it is alive still: they do not outlive a restart of
    the server.
    """
    parsed = _url(url)
    match parsed.get_backend_name():
        case "sqlite":
            if not parsed.database or parsed.database == ":memory:":
                raise LedgerNotOpenError(
                    "The ledger must outlive its process, so it cannot be an SQLite database in "
                    "memory",
                    next_step="Give ledger_url as sqlite:////path/to/ledger.db.",
                )
            engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": patience_s})
            event.listen(engine, "connect", _leave_transactions_to_us)
            event.listen(engine, "begin", _begin)
        case "postgresql":
            if parsed.drivername == "postgresql":  # SQLAlchemy 2.0 takes one that need not be there
                parsed = parsed.set(drivername="postgresql+psycopg")
            patience = {"connect_timeout": str(round(patience_s))}
            patient = parsed.set(query=patience | dict(parsed.query))
            engine = (
                create_engine(patient, pool_size=POOLED, pool_recycle=POOLED_S, pool_pre_ping=True)
                if pooled
                else create_engine(patient, poolclass=NullPool)
            )
            event.listen(engine, "begin", _take_turns)
        case other:
            raise LedgerNotOpenError(
                f"The ledger cannot be a {other} database",
                next_step="Name an SQLite file or a PostgreSQL database.",
            )
    return engine


def _url(url: str) -> URL:
    """Nothing of what is no URL is quoted: it may hold a password.

    :raises LedgerNotOpenError: it is none.
    """
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        raise LedgerNotOpenError(
            "The ledger cannot be opened: what names it is no URL",
            state_left="Nothing was opened.",
            next_step=f"Write it as {_URLS}; signs of a password such as @, : and / as %40, %3A "
            "and %2F. It is what --ledger, the connection rehome_ledger or the setting ledger_url "
            "gives.",
        ) from None


@lru_cache(maxsize=16)
def _writer(engine: Engine) -> Engine:
    """The same one, whose transactions write."""
    return engine.execution_options(rehome_writes=True)


def _is_ready(engine: Engine) -> bool:
    """Whether all is in place; most ledgers are, and this is asked whenever one is opened."""
    if _is_file(engine):
        return _is_file_ready(Path(str(engine.url.database)))
    try:
        with engine.connect() as connection:
            return connection.exec_driver_sql(_VERSION).scalar() == newest_schema()
    except ProgrammingError:
        return False  # it is new


def _is_file_ready(path: Path) -> bool:
    """Without SQLAlchemy, which would take as long again as SQLite."""
    _make_private(path)
    with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)) as connection:
        if connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
            return False
        try:
            return bool(connection.execute(_VERSION).fetchone() == (newest_schema(),))
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return False  # it is new
            raise


def _make_private(path: Path) -> None:
    """The file, and what SQLite keeps beside it, to which it gives the file's own mode when it
    makes them. A folder from before stays as it is: it may hold other files.
    """
    if not path.parent.exists():
        folder(path.parent)
    private_file(path)
    for beside in ("-wal", "-shm"):
        close_file(path.with_name(path.name + beside))


def _is_file(engine: Engine) -> bool:
    return engine.dialect.name == "sqlite"


def _take_turns(connection: Connection) -> None:
    """Whatever the server's own defaults are. A writer that falls silent loses its turn."""
    if not connection.get_execution_options().get("rehome_writes", False):
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        return
    patience_ms = round(1000 * BUSY_TIMEOUT_S)
    silence_ms = patience_ms // 2  # so that who waits for it need not give up
    connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = {patience_ms}")
    connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = {silence_ms}")
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITERS_LOCK})")


def _leave_transactions_to_us(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys=ON")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("rehome_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _switch_to_wal(path: str) -> None:
    """Lasting, and needed once; SQLite does not wait for other processes here, so we do."""
    deadline = monotonic_s() + BUSY_TIMEOUT_S
    while True:
        try:
            connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                return
            finally:
                connection.close()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or monotonic_s() > deadline:
                raise OperationalError("PRAGMA journal_mode=WAL", {}, error) from error
            sleep(0.02)


def _migrate(engine: Engine) -> None:
    """Alembic is imported here alone: few that open a ledger have anything to upgrade."""
    from alembic import command
    from alembic.config import Config
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    revisions = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    with engine.connect() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current < min(revisions):
        raise LedgerNotOpenError(
            f"The ledger has the schema {current}, and this version of Rehome upgrades ledgers "
            f"from the schema {min(revisions)} on",
            state_left="Nothing in it was changed.",
            next_step=f"Open it once with {PASS_THROUGH}, as by `rehome audit export --out "
            "FILE`: that upgrades it. Then use this version.",
        )
    if current is not None and current not in revisions:
        raise LedgerNotOpenError(
            f"The ledger has the schema {current}, which a newer version of Rehome wrote",
            state_left="Nothing in it was changed.",
            next_step="Use that version, or point ledger_url at another ledger.",
        )
    if current == newest_schema():
        return
    with _writer(engine).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


@cache
def newest_schema() -> str:
    """The schema that this version of Rehome gives a ledger, as the names of its migrations begin.
    Alembic would compile each of them to know it, whenever a ledger is opened.
    """
    return max(path.name[:4] for path in _MIGRATIONS.glob("versions/[0-9]*.py"))
