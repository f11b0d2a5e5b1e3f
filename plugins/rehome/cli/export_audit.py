"""Export the ledger's audit and events, or check an earlier export.

``rehome audit export --out FILE [--from TIME] [--until TIME] [--remove]`` writes one JSON
object a line; times are ISO 8601, UTC unless they say otherwise. The ledger keeps the file's digest
(SHA-256), its range, its number of rows and who has made it, for good. ``--remove`` then removes
what the file holds, except the newest row of each table, and events of new partitions and of plans
that have not ended.
``rehome audit export --verify FILE`` says whether this ledger has written the file.

It acts on the ledger of the Airflow that AIRFLOW_HOME and the environment name, or on ``--ledger``.
"""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rehome.cli.verbs import Verb
from rehome.domain.text import count_text, second_text
from rehome.errors import PlanConflictError, RehomeError
from rehome.private_files import PRIVATE_FILE

if TYPE_CHECKING:
    from rehome.ledger.base.audit_entry import AuditExport
    from rehome.ledger.store import Ledger


def open_ledger(url: str | None, *, new: bool = False) -> Ledger:
    """The ledger at the URL; None = that of Airflow's settings.

    :param new: whether it may be a file that is not there yet.

    :raises RehomeError: it cannot be opened.
    """
    if url is None:
        # As Airflow's own commands do, so that connections and variables come from its database.
        os.environ["_AIRFLOW_PROCESS_CONTEXT"] = "server"
        from rehome.installation import settings

        url = settings().ledger_url
    from rehome.ledger.store import Ledger

    if not new and _is_missing_file(url):
        raise RehomeError(
            f"There is no ledger at {url}",
            next_step="Set AIRFLOW_HOME and the environment as Airflow's processes have them, or "
            "give --ledger.",
        )
    return Ledger.open(url)


def _is_missing_file(url: str) -> bool:
    """Whether it names an SQLite file that is not there. A text that is no URL is for who opens it
    to refuse.
    """
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        return False
    is_file = parsed.get_backend_name() == "sqlite"
    return is_file and not Path(parsed.database or "").exists()


@contextmanager
def export_file(out: Path) -> Iterator[BinaryIO]:
    """A new file, which only its owner may read: complete on the disk afterwards, or not there.

    :raises RehomeError: it is there already.
    """
    try:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    except FileExistsError:
        raise RehomeError(
            f"{out} is there already, and exports are never replaced",
            next_step="Name another file.",
        ) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        out.unlink()
        raise


def add_ledger_argument(parser: argparse.ArgumentParser) -> None:
    """Of every command that acts on a ledger itself."""
    parser.add_argument("--ledger", help="SQLAlchemy URL (default: that of Airflow's settings)")


def exit_code_of(run: Callable[[], bool | None]) -> int:
    """Run a command; what is expected to go wrong is printed. False says that it failed."""
    try:
        return 1 if run() is False else 0
    except (RehomeError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


def export(ledger: Ledger, out: Path, since: datetime | None, until: datetime, remove: bool) -> int:
    """Write the file, then have the ledger keep what it is; returns how many rows were removed.

    :raises RehomeError: the file is there already, or another export came in between.
    """
    with export_file(out) as file:
        made = ledger.export_audit(file, getpass.getuser(), since, until)
    try:
        removed = ledger.keep_export(made, remove=remove)
    except PlanConflictError:
        out.unlink()
        raise  # of any other error it is not known whether rows are gone: the file may be all of it
    print(f"{out} holds {_text(made)}; {count_text(removed, 'row')} removed from the ledger.")
    return removed


def verify(ledger: Ledger, path: Path) -> bool:
    """Say whether this ledger has written the file as it is."""
    with path.open("rb") as file:
        audit_export = ledger.export_of(file)
    if audit_export is None:
        print(
            f"{path} is no export of this ledger: it was changed, or another ledger wrote it.",
            file=sys.stderr,
        )
        return False
    print(
        f"{path} is as {audit_export.by} exported it at {second_text(audit_export.at)}. "
        f"It holds {_text(audit_export)}."
    )
    return True


def _text(made: AuditExport) -> str:
    return (
        f"{made.audit_rows} audit rows and {made.events_rows} events from "
        f"{made.since.isoformat() if made.since else 'the first one'} until "
        f"{made.until.isoformat()}; its SHA-256 is {made.digest}"
    )


def _instant(text: str) -> datetime:
    """:raises argparse.ArgumentTypeError: it is no time."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time: write 2030-01-31, or 2030-01-31T04:00:00+01:00"
        ) from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, help="the file to write")
    what.add_argument("--verify", type=Path, metavar="FILE", help="check an earlier export")
    parser.add_argument("--from", dest="since", type=_instant, help="first time (default: all)")
    parser.add_argument("--until", type=_instant, help="before this time (default: now)")
    parser.add_argument("--remove", action="store_true", help="remove what was exported")
    add_ledger_argument(parser)


def main(chosen: argparse.Namespace) -> int:
    """Export, or check an export; returns the exit code."""
    return exit_code_of(lambda: _run(chosen))


def _run(chosen: argparse.Namespace) -> bool | None:
    with open_ledger(chosen.ledger) as ledger:
        if chosen.verify is not None:
            return verify(ledger, chosen.verify)
        until = chosen.until or datetime.now(UTC)
        export(ledger, chosen.out, chosen.since, until, chosen.remove)
    return None


def verbs() -> tuple[Verb, ...]:
    """Its command."""
    return (Verb(("audit", "export"), __doc__, add_arguments, main),)
