"""Import Rehome's connections, pool and variables into an Airflow.

The Astro CLI alone reads airflow_settings.yaml. Elsewhere ``rehome settings import [FILE]`` hands
its contents, or those of the file that comes with Rehome, to Airflow's own imports:
``airflow connections import``, ``airflow pools import`` and ``airflow variables import``.
It acts on the Airflow that AIRFLOW_HOME and the environment name. What is there already stays as
it is, unless ``--overwrite`` is given; but a pool counts deferred tasks afterwards, if the file
says so: runs wait for ever without that.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from rehome.airflow_settings import SETTINGS_FILE, AirflowSettings, SettingsFileError
from rehome.cli.verbs import Verb


def import_all(
    settings: AirflowSettings, *, migrate: bool = False, overwrite: bool = False
) -> None:
    """Run Airflow's three imports in this process: one start of Airflow instead of three.

    :param migrate: make or update Airflow's database first.
    :param overwrite: replace what exists; else it stays, but for what pools count.
    """
    from airflow.cli import cli_parser

    parser = cli_parser.get_parser()
    on_collision = {
        "connections": ["--overwrite"] if overwrite else [],
        "variables": ["--action-on-existing-key", "overwrite" if overwrite else "skip"],
    }

    def run(*command: str) -> None:
        options = parser.parse_args(command)
        options.func(options)

    if migrate:
        run("db", "migrate")
    with tempfile.TemporaryDirectory(prefix="rehome-") as scratch:
        if not overwrite:
            there = Path(scratch, "there.json")
            with redirect_stdout(StringIO()):  # it says that it has written a file
                run("pools", "export", str(there))
            settings = settings.with_pools_of(json.loads(there.read_text()))
        for kind, path in settings.write(Path(scratch)).items():
            run(kind, "import", *on_collision.get(kind, []), str(path))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("file", type=Path, nargs="?", default=SETTINGS_FILE)
    parser.add_argument("--migrate", action="store_true", help="airflow db migrate first")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace what exists: connections, pool, variables"
    )


def main(options: argparse.Namespace) -> int:
    """Import the file; returns the exit code."""
    from sqlalchemy.exc import DatabaseError

    try:
        settings = AirflowSettings.read(options.file)
        import_all(settings, migrate=options.migrate, overwrite=options.overwrite)
    except (SettingsFileError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except DatabaseError as error:
        print(
            f"Airflow's database cannot take the settings: {error.orig}.\n"
            "Is AIRFLOW_HOME (or AIRFLOW__DATABASE__SQL_ALCHEMY_CONN) that of your Airflow? "
            "A new database needs `airflow db migrate` first; --migrate does both.",
            file=sys.stderr,
        )
        return 1
    return 0


def verbs() -> tuple[Verb, ...]:
    """Its command."""
    return (Verb(("settings", "import"), __doc__, add_arguments, main),)
