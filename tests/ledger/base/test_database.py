"""Several processes on one ledger, and its schema."""

from __future__ import annotations

import logging
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, delete, event, make_url, select, update
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.postgresql.psycopg2 import PGDialect_psycopg2

from rehome.domain.clock import utc_now
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import MoveState
from rehome.errors import RehomeError
from rehome.ledger.base import database
from rehome.ledger.base.database import LedgerNotOpenError, LedgerUnavailableError, open_engine
from rehome.ledger.base.models import EVENTS, LEASES, METADATA, MOVES
from rehome.ledger.store import Ledger
from tests.ledger.postgresql import PostgreSQL
from tests.ledger.small_plans import make_plan, move
from tests.processes import FORKED


def _open_and_count(url: str, times: int) -> None:
    with Ledger.open(url) as ledger:
        for number in range(times):
            ledger.add_event(EventKind.REQUEST, str(number))


@pytest.mark.slow
def test_processes_that_open_a_new_ledger_at_once_all_succeed_and_lose_nothing(
    ledger_url: str,
) -> None:
    workers = [FORKED.Process(target=_open_and_count, args=(ledger_url, 10)) for _ in range(5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
    assert [worker.exitcode for worker in workers] == [0] * 5
    with Ledger.open(ledger_url) as ledger:
        assert len(ledger.events()) == 50


def test_opening_a_ledger_says_nothing(ledger_url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    open_engine(ledger_url).dispose()
    open_engine(ledger_url).dispose()
    assert caplog.messages == []


def test_the_migrations_build_exactly_the_tables_of_the_models(ledger_url: str) -> None:
    engine = open_engine(ledger_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, METADATA) == []
    engine.dispose()


def test_of_plans_of_before_moves_are_known_that_have_started(ledger_url: str) -> None:
    """Migration 0011 took these from what was started; of the others it knew nothing."""
    plan = make_plan("p1", move("t", 0, (1, 2), (3, 2), 7), move("t", 1, (1, 2), (3, 2), 7))
    with Ledger.open(ledger_url) as ledger:
        ledger.create_plan(plan, {}, "file:///nowhere", "run-1", "ann")
        ledger.approve("p1", plan.plan_hash, "ann")
        ledger.claim("p1")
        ledger.admit("p1", plan.moves[:1], Observation(utc_now(), {}, {}, frozenset()), None)
        with ledger.writing() as connection:
            of_before = update(MOVES).values(replicas_current=None, replicas_target=None)
            connection.execute(of_before.where(MOVES.c.state == MoveState.PENDING))
        (started,) = ledger.planned_moves("p1", MoveState.ADMITTED)
        assert started == plan.moves[0]
        with pytest.raises(RehomeError, match="an earlier version of Rehome recorded it"):
            ledger.planned_moves("p1")


def test_a_ledger_of_a_newer_rehome_is_refused(ledger_url: str) -> None:
    Ledger.open(ledger_url).close()
    engine = create_engine(ledger_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    engine.dispose()
    with pytest.raises(RehomeError, match="newer version of Rehome"):
        Ledger.open(ledger_url)


def test_a_reader_sees_one_state_of_the_ledger_while_others_write(ledger_url: str) -> None:
    with Ledger.open(ledger_url) as ledger:
        ledger.add_event(EventKind.REQUEST, "")
        with ledger.reading() as connection:
            seen = connection.execute(select(EVENTS)).all()
            ledger.add_event(EventKind.REQUEST, "")
            assert connection.execute(select(EVENTS)).all() == seen
        assert len(ledger.events()) == 2


def test_writers_take_turns(ledger_url: str) -> None:
    """What one reads before it writes cannot change under it."""
    with Ledger.open(ledger_url) as ledger, Ledger.open(ledger_url) as other:
        writer = threading.Thread(target=other.add_event, args=(EventKind.REQUEST, ""))
        with ledger.writing() as connection:
            writer.start()
            writer.join(1)
            assert writer.is_alive()
            assert connection.execute(select(EVENTS)).all() == []
        writer.join(300)
        assert len(ledger.events()) == 1


def test_another_kind_of_database_is_refused() -> None:
    with pytest.raises(RehomeError, match="cannot be a mysql database"):
        Ledger.open("mysql://db/ledger")


def test_a_ledger_in_memory_is_refused() -> None:
    with pytest.raises(RehomeError, match="outlive its process"):
        Ledger.open("sqlite://")


def test_what_is_no_url_of_a_database_is_refused_with_what_to_write() -> None:
    for url in ("ledger", "postgresql://db.example:port/ledger", "postgresql://ann:p@ss:hush@db/x"):
        with pytest.raises(LedgerNotOpenError, match="Write it as sqlite:////path") as raised:
            Ledger.open(url)
        assert "hush" not in str(raised.value)
    with pytest.raises(LedgerNotOpenError, match=r"dialects:postgresql\.none"):
        Ledger.open("postgresql+none://db/ledger")


def test_postgresql_is_reached_by_the_driver_that_rehome_brings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SQLAlchemy 2.0 takes psycopg2 where a URL names no driver, and that may be missing."""

    class WithoutDriver(PGDialect_psycopg2):
        @classmethod
        def import_dbapi(cls) -> Any:
            raise ModuleNotFoundError("No module named 'psycopg2'")

    for name in ("postgresql", "postgresql.psycopg2"):
        monkeypatch.setitem(registry.impls, name, lambda: WithoutDriver)
    with pytest.raises(LedgerNotOpenError, match=r"'psycopg2'.+ Install the driver"):
        Ledger.open("postgresql+psycopg2://127.0.0.1:1/drivers")
    with pytest.raises(LedgerNotOpenError, match=r"127\.0\.0\.1"):
        Ledger.open("postgresql://127.0.0.1:1/drivers")


@pytest.mark.slow
@pytest.mark.parametrize(
    "url", ["sqlite:////proc/nowhere/ledger.db", "postgresql://127.0.0.1:1/ledger"]
)
def test_a_ledger_that_cannot_be_opened_is_a_clear_error(url: str) -> None:
    with pytest.raises(RehomeError, match="cannot be opened"):
        Ledger.open(url)


def test_a_writer_holds_off_other_writers_from_its_first_statement(sqlite_url: str) -> None:
    """A deferred transaction would read here, and lose the other's update."""
    engine = open_engine(sqlite_url)
    other = create_engine(sqlite_url, connect_args={"timeout": 0})
    with (
        engine.execution_options(rehome_writes=True).begin(),
        other.connect() as connection,
        pytest.raises(Exception, match="locked"),
    ):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    other.dispose()
    engine.dispose()


def test_a_ledger_that_another_process_locks_for_too_long_says_so(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.1)
    with Ledger.open(sqlite_url) as ledger:
        writer = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailableError, match="database is locked") as raised:
            ledger.add_event(EventKind.REQUEST, "detail")
        assert ledger.events() == [], "it can still be read"
        writer.rollback()
        ledger.add_event(EventKind.REQUEST, "detail")
        writer.close()
        assert len(ledger.events()) == 1
    assert "not recorded" in str(raised.value)
    assert "try again" in str(raised.value)


def test_a_full_disk_is_named_and_what_was_there_is_read(sqlite_url: str) -> None:
    with Ledger.open(sqlite_url) as ledger:
        ledger.add_event(EventKind.REQUEST, "before")

        def full(connection: sqlite3.Connection, _: object) -> None:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count={pages}")

        event.listen(ledger.engine, "connect", full)
        ledger.engine.dispose()
        with pytest.raises(LedgerUnavailableError, match="disk is full") as raised:
            ledger.add_event(EventKind.REQUEST, "x" * 100_000)
        assert "Make room on the disk that holds the ledger" in str(raised.value)
        assert [each.detail for each in ledger.events()] == ["before"]


def test_a_file_that_cannot_be_written_is_told_apart_from_a_lock(sqlite_url: str) -> None:
    with Ledger.open(sqlite_url) as ledger:
        event.listen(ledger.engine, "connect", lambda c, _: c.execute("PRAGMA query_only=1"))
        ledger.engine.dispose()
        with pytest.raises(LedgerUnavailableError, match="readonly") as raised:
            ledger.add_event(EventKind.REQUEST, "detail")
    assert "may write to the ledger's file" in str(raised.value)


def test_a_ledger_on_postgresql_that_another_process_locks_for_too_long_says_so(
    postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 5)
    url = postgresql.new_database()
    engine = create_engine(url)
    with Ledger.open(url) as ledger:
        with engine.begin() as connection:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({database.WRITERS_LOCK})")
            with pytest.raises(LedgerUnavailableError, match="lock timeout"):
                ledger.add_event(EventKind.REQUEST, "detail")
            assert ledger.events() == [], "it can still be read"
        ledger.add_event(EventKind.REQUEST, "detail")
        assert len(ledger.events()) == 1
    engine.dispose()


@pytest.mark.parametrize("default", ["repeatable read", "serializable"])
def test_writers_see_what_others_wrote_whatever_the_server_isolates_by_default(
    postgresql: PostgreSQL, default: str
) -> None:
    url = postgresql.new_database(f"default_transaction_isolation='{default}'")
    with Ledger.open(url) as ledger, Ledger.open(url) as other:
        ledger.acquire_lease("c1", "run-1", 60)
        beat = threading.Thread(target=other.heartbeat, args=("c1", "run-1", 60))
        with ledger.writing() as connection:
            beat.start()
            beat.join(1)
            connection.execute(update(LEASES).values(epoch=7))
        beat.join(300)
        holder = ledger.holder("c1")
    assert holder is not None
    assert holder.epoch == 7


def test_the_options_of_the_url_are_kept(postgresql: PostgreSQL) -> None:
    url = postgresql.new_database()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA rehome")
    with Ledger.open(f"{url}&options=-csearch_path%3Drehome") as ledger:
        ledger.add_event(EventKind.REQUEST, "detail")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM rehome.events").scalar() == 1
    engine.dispose()


def test_a_writer_that_falls_silent_loses_its_turn(
    postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 2)
    url = postgresql.new_database()
    with Ledger.open(url) as silent, Ledger.open(url) as other:

        def fall_silent() -> None:
            with silent.writing() as connection:
                monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 30)
                other.add_event(EventKind.REQUEST, "another")
                connection.execute(delete(EVENTS))

        with pytest.raises(LedgerUnavailableError, match="cannot be used now"):
            fall_silent()
        assert [event.detail for event in other.events()] == ["another"]


def test_a_server_that_only_reads_is_named(postgresql: PostgreSQL) -> None:
    """As the one that one is still connected to after a failover."""
    url = postgresql.new_database()
    Ledger.open(url).close()
    only_reads = f"{url}&options=-cdefault_transaction_read_only%3Don"
    with (
        Ledger.open(only_reads) as ledger,
        pytest.raises(LedgerUnavailableError, match="read-only transaction"),
    ):
        ledger.add_event(EventKind.REQUEST, "detail")


def test_what_is_read_within_one_reading_is_of_one_moment(ledger_url: str) -> None:
    with Ledger.open(ledger_url) as ledger, Ledger.open(ledger_url) as other:
        with ledger.reading():
            assert ledger.events() == []
            other.add_event(EventKind.REQUEST, "detail")
            assert ledger.events() == []
        assert len(ledger.events()) == 1


def test_a_pool_keeps_a_connection_for_the_next_read(postgresql: PostgreSQL) -> None:
    url = postgresql.new_database()
    for pooled, opened in ((True, 1), (False, 3)):
        connected = Mock()
        with Ledger.open(url, pooled=pooled) as ledger:
            event.listen(ledger.engine, "connect", connected)
            ledger.close()  # what the opening itself has left
            for _ in range(3):
                ledger.events()
        assert connected.call_count == opened


@pytest.mark.slow
@pytest.mark.parametrize("pooled", [False, True])
def test_a_server_that_is_away_is_named_and_is_used_again_once_it_is_back(
    pooled: bool, postgresql: PostgreSQL
) -> None:
    with Ledger.open(postgresql.new_database(), pooled=pooled) as ledger:
        ledger.add_event(EventKind.REQUEST, "detail")
        postgresql.stop()
        try:
            with pytest.raises(LedgerUnavailableError, match="cannot be used now"):
                ledger.events()
        finally:
            postgresql.start()
        assert len(ledger.events()) == 1


def test_a_ledger_that_is_gone_says_so_and_is_not_made_anew(sqlite_url: str) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    with Ledger.open(sqlite_url) as ledger:
        ledger.add_event(EventKind.REQUEST, "detail")
        path.rename(path.with_name("away"))
        path.mkdir()
        with pytest.raises(LedgerUnavailableError, match="unable to open database file"):
            ledger.events()
        path.rmdir()
        path.with_name("away").rename(path)
        assert len(ledger.events()) == 1


def test_a_file_that_was_replaced_since_this_process_has_opened_it_is_brought_up_to_date(
    sqlite_url: str,
) -> None:
    path = Path(make_url(sqlite_url).database or "")
    open_engine(sqlite_url)
    for put in ("", "PRAGMA journal_mode=DELETE"):
        for part in path.parent.glob(f"{path.name}*"):
            part.unlink()
        with closing(sqlite3.connect(path)) as another:
            another.execute(put)
        with Ledger.open(sqlite_url) as ledger:
            assert ledger.plans() == []
            with ledger.engine.connect() as connection:
                assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
