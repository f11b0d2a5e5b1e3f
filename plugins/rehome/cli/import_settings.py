"""Import Rehome's connections, pool and variables into an Airflow.

The Astro CLI alone reads airflow_settings.yaml. Elsewhere ``rehome settings import [FILE]`` hands
its contents, or those of the file that comes with Rehome, to Airflow's own imports:
``airflow connections import``, ``airflow pools import`` and ``airflow variables import``.
It acts on the Airflow that AIRFLOW_HOME and the environment name. Connections and variables that
are there already stay as they are, unless ``--overwrite`` is given; the pool is always set.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from rehome.airflow_settings import SETTINGS_FILE, AirflowSettings, SettingsFileError
from rehome.cli.verbs import Verb


def import_all(
    settings: AirflowSettings, *, migrate: bool = False, overwrite: bool = False
) -> None:
    """Run Airflow's three imports in this process: one start of Airflow instead of three.

    :param migrate: make or update Airflow's database first.
    :param overwrite: replace connections and variables that exist; else they stay.
    """
    from airflow.cli import cli_parser

    parser = cli_parser.get_parser()
    on_collision = {
        "connections": ["--overwrite"] if overwrite else [],
        "variables": ["--action-on-existing-key", "overwrite" if overwrite else "skip"],
    }
    with tempfile.TemporaryDirectory(prefix="rehome-") as scratch:
        commands = [["db", "migrate"]] if migrate else []
        for kind, path in settings.write(Path(scratch)).items():
            commands.append([kind, "import", *on_collision.get(kind, []), str(path)])
        for command in commands:
            options = parser.parse_args(command)
            options.func(options)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("file", type=Path, nargs="?", default=SETTINGS_FILE)
    parser.add_argument("--migrate", action="store_true", help="airflow db migrate first")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace connections and variables that exist"
    )


def main(options: argparse.Namespace) -> int:
    """Import the file; returns the exit code."""
    from sqlalchemy.exc import DatabaseError

    try:
        if options.file.suffix == ".json":
            settings = AirflowSettings.from_json(json.loads(options.file.read_text()))
        else:
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
