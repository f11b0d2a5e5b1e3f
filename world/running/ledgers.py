"""Ledgers in memory: real tables, real statements; migrated once, copied for each run."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import StaticPool

from rehome.domain.clock import new_id, utc_now
from rehome.domain.plan.plan import Plan
from rehome.ledger.base.database import LedgerUnavailableError
from rehome.ledger.base.fencing import Lease
from rehome.ledger.store import Ledger
from world.running.prepared import PreparedStatements
from world.running.scheduler import Point, Scheduler

STATEMENTS_KEPT = 1000
"""Prepared by SQLite: more than a run has. To prepare one takes as long as to carry it out."""


class OpenConnection:
    """The only connection of a simulated ledger; it is never given back, for a pool's part takes
    longer than most statements. Transactions of a simulated ledger never lie within each other.
    """

    def __init__(self, engine: AlwaysOpen, held: Connection, raw: sqlite3.Connection) -> None:
        self.engine = engine
        self._held, self._raw = held, raw
        self.execute = PreparedStatements(held, raw).execute

    def commit(self) -> None:
        """Keep what was written."""
        if self._held.in_transaction():
            self._held.commit()
        self._raw.commit()

    def rollback(self) -> None:
        """Take it back."""
        if self._held.in_transaction():
            self._held.rollback()
        self._raw.rollback()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._held, name)


class AlwaysOpen:
    """An engine as ledgers use one, with one connection; it is itself the context of the
    transaction on it.
    """

    def __init__(self, engine: Engine, raw: sqlite3.Connection) -> None:
        self.connection = OpenConnection(self, engine.connect(), raw)
        self.begun = False

    def begin(self) -> AlwaysOpen:
        """A transaction that is committed, or rolled back, when it is left."""
        return self

    def execution_options(self, **_options: Any) -> AlwaysOpen:
        """Readers and writers are the same here."""
        return self

    def __enter__(self) -> OpenConnection:
        self.begun = True
        return self.connection

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.begun = False
        if kind is None:
            self.connection.commit()
        else:
            self.connection.rollback()


class Shelf:
    """One database in memory and its engine, which knows the statements that it has seen: it is
    used again by later runs of this process.
    """

    def __init__(self) -> None:
        self.connection = sqlite3.connect(
            ":memory:", check_same_thread=False, cached_statements=STATEMENTS_KEPT
        )
        engine = create_engine("sqlite://", creator=lambda: self.connection, poolclass=StaticPool)
        self.engine = AlwaysOpen(engine, self.connection)
        self.user: LedgerSite | None = None

    def belongs_to(self, user: LedgerSite, *, traced: bool) -> None:
        """Be used by a run from now on."""
        self.user = user
        # SQLite's own: SQLAlchemy's events would take longer than the statements.
        self.connection.set_trace_callback(user.note if traced else None)


@cache
def _template() -> sqlite3.Connection:
    """A ledger as it is when it was first opened."""
    with TemporaryDirectory() as place:
        file = Path(place) / "ledger.db"
        Ledger.open(f"sqlite:///{file}").close()
        source = sqlite3.connect(file)
        found = sqlite3.connect(":memory:", check_same_thread=False)
        source.backup(found)
        source.close()
    return found


_SHELVES: dict[str, Shelf] = {}


class LedgerSite:
    """The database of one installation, and its backups.

    :param name: of the installation.
    :ivar restored: how often a backup has taken its place.
    """

    def __init__(self, name: str, scheduler: Scheduler) -> None:
        self.name = name
        self.away = False
        self.inside = self._judged = False
        self.on_plan: Callable[[Plan], None] = lambda _: None
        self._scheduler = scheduler
        self._shelf = _SHELVES.setdefault(name, Shelf())
        self._shelf.belongs_to(self, traced=scheduler.trace.kept)
        self._backups: list[sqlite3.Connection] = []
        self.restored = 0
        self.begin_anew()

    @property
    def engine(self) -> AlwaysOpen:
        """What its transactions run on."""
        return self._shelf.engine

    def ledger(self) -> SimulatedLedger:
        """A new connection to it, as any process opens one."""
        return SimulatedLedger(self)

    @property
    def ledger_id(self) -> str:
        """Of the one that is there now."""
        with self.apart():
            ((found,),) = self._shelf.connection.execute("SELECT ledger_id FROM identity")
        return str(found)

    def begin_anew(self) -> None:
        """An empty ledger takes its place, with an identity of its own."""
        _template().backup(self._shelf.connection)
        with self._shelf.connection as connection:
            connection.execute("UPDATE identity SET ledger_id = ?", [new_id()])
        self._shelf.connection.execute("PRAGMA foreign_keys=ON")

    def back_up(self) -> None:
        """Keep a copy of what it holds now."""
        copy = sqlite3.connect(":memory:", check_same_thread=False)
        self._shelf.connection.backup(copy)
        self._backups.append(copy)

    def restore(self) -> bool:
        """The last backup takes its place; False where there is none."""
        if not self._backups:
            return False
        self._backups[-1].backup(self._shelf.connection)
        self.restored += 1
        self._shelf.connection.execute("PRAGMA foreign_keys=ON")
        return True

    def point(self, kind: Point) -> None:
        """A transaction is about to begin, or was committed."""
        self._scheduler.point(kind, self.name)
        if self.away and kind is Point.BEGIN and self._scheduler.current is not None:
            raise LedgerUnavailableError("The ledger cannot be used now: simulated")

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What the judge reads: meanwhile nothing else runs, and the trace does not have it."""
        before, self.inside, self._judged = self.inside, True, True
        try:
            yield
        finally:
            self.inside, self._judged = before, False

    def note(self, statement: str) -> None:
        """Part of the trace: a statement with its values."""
        if self._judged:
            return
        actor = self._scheduler.current
        who = actor.name if actor else "-"
        self._scheduler.trace.note(self._scheduler.at_s, who, "sql", statement)


class SimulatedLedger(Ledger):
    """The real ledger; before each transaction, and after it, the world may go on."""

    def __init__(
        self, site: LedgerSite | AlwaysOpen, clock: Any = utc_now, lease: Lease | None = None
    ) -> None:
        if isinstance(site, AlwaysOpen):
            site = next(
                shelf.user for shelf in _SHELVES.values() if shelf.engine is site and shelf.user
            )
        super().__init__(cast(Engine, site.engine), clock, lease)
        self._site = site

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """As the real one: from BEGIN to COMMIT nothing else runs."""
        site = self._site
        if site.inside:  # within a transaction; or the judge reads, apart from what runs
            if site.engine.begun:
                yield cast(Connection, site.engine.connection)
                return
            with super().reading() as connection:
                yield connection
            return
        site.point(Point.BEGIN)
        site.inside = True
        try:
            with super().reading() as connection:
                yield connection
        finally:
            site.inside = False

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """As the real one."""
        site = self._site
        site.point(Point.BEGIN)
        site.inside = True
        try:
            with super().writing() as connection:
                yield connection
        finally:
            site.inside = False
        site.point(Point.COMMITTED)

    def create_plan(self, plan: Plan, *args: Any, **options: Any) -> None:
        """As the real one; the stage knows of it."""
        self._site.on_plan(plan)
        super().create_plan(plan, *args, **options)

    def close(self) -> None:
        """Its database lives as long as the run."""
