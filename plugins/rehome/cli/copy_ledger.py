"""Copy the whole ledger into a file, and a file into a new ledger.

``rehome ledger export --out FILE`` writes all rows of the ledger, as they are at one moment, one
JSON value a line; ``rehome ledger import FILE`` fills a ledger that has none. So a ledger moves
from SQLite to PostgreSQL, or to another server. The new one has the same id: plans, and marks on
clusters, are its own. Pause the DAGs of Rehome before the export, and use the old one no more.

Both act on the ledger of the Airflow that AIRFLOW_HOME and the environment name, or on
``--ledger``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rehome.cli.export_audit import add_ledger_argument, exit_code_of, export_file, open_ledger
from rehome.cli.verbs import Verb
from rehome.domain.text import count_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_EXPORT = "Copy the whole ledger into a file.\n\n"
_IMPORT = "Fill a new ledger with what an export has written.\n\n"


def _text(counts: Mapping[str, int]) -> str:
    rows, tables = sum(counts.values()), len(counts)
    return f"{count_text(rows, 'row')} of {count_text(tables, 'table')}"


def export_whole(url: str | None, out: Path) -> None:
    """Write the file, which only its owner may read.

    :raises RehomeError: the file is there already, or the ledger cannot be opened.
    """
    from rehome.ledger.whole import export_ledger

    with open_ledger(url) as ledger, export_file(out) as file:
        counts = export_ledger(ledger, file)
    print(f"{out}: {_text(counts)}.")


def import_whole(url: str | None, path: Path) -> None:
    """Fill a new ledger.

    :raises RehomeError: it is not empty, or the file is not as an export wrote it.
    """
    from rehome.ledger.whole import import_ledger

    with path.open("rb") as file, open_ledger(url, new=True) as ledger:
        counts = import_ledger(ledger, file)
    print(f"{_text(counts)} are in the ledger, which has the id of the one that was exported.")
    print("Use that one no more: two ledgers with one id would take back each other's throttles.")


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    add_ledger_argument(parser)


def _import_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="what an export has written")
    add_ledger_argument(parser)


def _export(chosen: argparse.Namespace) -> int:
    return exit_code_of(lambda: export_whole(chosen.ledger, chosen.out))


def _import(chosen: argparse.Namespace) -> int:
    return exit_code_of(lambda: import_whole(chosen.ledger, chosen.file))


def verbs() -> tuple[Verb, ...]:
    """Its two commands."""
    return (
        Verb(("ledger", "export"), _EXPORT + __doc__, _export_arguments, _export),
        Verb(("ledger", "import"), _IMPORT + __doc__, _import_arguments, _import),
    )
