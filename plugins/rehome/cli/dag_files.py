"""Write Rehome's DAG files into a folder that Airflow reads DAGs from.

``rehome dags install DIR`` writes one short file for each DAG. They import the installed package:
an upgrade of the package changes them only where this command is run again. A file that is there
with other content stays, and ends the command with 1, unless ``--overwrite`` is given.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rehome.cli.verbs import Verb
from rehome.packaging import ROOT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="it is made where it is missing")
    parser.add_argument("--overwrite", action="store_true", help="replace files that differ")


def main(chosen: argparse.Namespace) -> int:
    """Write the files; returns the exit code: 1 where one stays that differs, or cannot be had."""
    try:
        stay = install(chosen.folder, overwrite=chosen.overwrite)
    except OSError as error:
        print(f"The DAG files cannot be written: {error}", file=sys.stderr)
        return 1
    for path in stay:
        print(f"{path} differs from Rehome's and stays: --overwrite replaces it", file=sys.stderr)
    return 1 if stay else 0


def install(folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Write each DAG file that is missing; returns those that differ and stay.

    :param overwrite: replace those that differ, too.
    :raises OSError: a file cannot be read or written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stay = []
    for source in sorted((ROOT / "dags").glob("*.py")):
        target, content = folder / source.name, source.read_bytes()
        if target.exists() and target.read_bytes() != content and not overwrite:
            stay.append(target)
        else:
            target.write_bytes(content)
    return stay


def verbs() -> tuple[Verb, ...]:
    """Its command."""
    return (Verb(("dags", "install"), __doc__, add_arguments, main),)
