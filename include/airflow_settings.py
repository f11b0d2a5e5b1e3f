"""airflow_settings.yaml for an Airflow without the Astro CLI, which alone reads that file.

``python -m include.airflow_settings [FILE]`` hands its contents to Airflow's own imports:
``airflow connections import``, ``airflow pools import`` and ``airflow variables import``.
It acts on the Airflow that AIRFLOW_HOME and the environment name. Connections and variables that
are there already stay as they are, unless ``--overwrite`` is given; the pool is always set.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

SETTINGS_FILE = Path(__file__).resolve().parent.parent / "airflow_settings.yaml"
KINDS = ("connections", "pools", "variables")
_CONNECTION_FIELDS = ("type", "host", "schema", "login", "password", "port", "extra")
_IMPORTED_AS = {"type": "conn_type"}


class SettingsFileError(ValueError):
    """The file is not what the Astro CLI would accept; names the entry."""


@dataclass(frozen=True)
class AirflowSettings:
    """What to import, each by name, in the form that Airflow's import commands read."""

    connections: dict[str, dict[str, Any]] = field(default_factory=dict)
    pools: dict[str, dict[str, Any]] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path = SETTINGS_FILE) -> AirflowSettings:
        """Read a file in the Astro CLI's format.

        :raises SettingsFileError: an entry has no name, or a key that means nothing.
        """
        content = (yaml.safe_load(path.read_text()) or {}).get("airflow") or {}
        unknown = sorted(set(content) - set(KINDS))
        if unknown:
            raise SettingsFileError(f"{path}: unknown section {', '.join(unknown)}")
        return cls(
            connections={
                name: {_IMPORTED_AS.get(key, key): value for key, value in entry.items()}
                for name, entry in _entries(content, "connections", "conn", _CONNECTION_FIELDS)
            },
            pools={
                name: {
                    "slots": int(entry["slot"]),
                    "description": str(entry.get("description", "")),
                    "include_deferred": bool(entry.get("include_deferred", False)),
                }
                for name, entry in _entries(
                    content, "pools", "pool", ("slot", "description", "include_deferred")
                )
            },
            variables={
                name: entry.get("value")
                for name, entry in _entries(content, "variables", "variable", ("value",))
            },
        )

    def with_connections(self, connections: Mapping[str, Mapping[str, Any]]) -> AirflowSettings:
        """These connections besides, or instead of, those of the same ids."""
        more = {name: dict(values) for name, values in connections.items()}
        return AirflowSettings(self.connections | more, self.pools, self.variables)

    def with_variables(self, variables: Mapping[str, Any]) -> AirflowSettings:
        """These variables besides, or instead of, those of the same names."""
        return AirflowSettings(self.connections, self.pools, self.variables | dict(variables))

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types; :meth:`from_json` reads it back."""
        return {kind: getattr(self, kind) for kind in KINDS}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> AirflowSettings:
        """The inverse of :meth:`to_json`."""
        return cls(**{kind: dict(content[kind]) for kind in KINDS})

    def write(self, directory: Path) -> dict[str, Path]:
        """Write one JSON file per kind, readable by their owner only; kind → file."""
        files = {}
        for kind in KINDS:
            files[kind] = directory / f"{kind}.json"
            files[kind].touch(mode=0o600)
            files[kind].write_text(json.dumps(getattr(self, kind), indent=2))
        return files


def _entries(
    content: Mapping[str, Any], kind: str, prefix: str, known: Iterable[str]
) -> list[tuple[str, dict[str, Any]]]:
    """Entries of a section by name, their keys without the prefix that the format repeats."""
    name_key = "conn_id" if prefix == "conn" else f"{prefix}_name"
    allowed = {name_key, *(f"{prefix}_{key}" for key in known)}
    found = []
    for entry in content.get(kind) or []:
        name = entry.get(name_key)
        if not name:
            raise SettingsFileError(f"An entry of {kind} has no {name_key}: {sorted(entry)}")
        unknown = sorted(set(entry) - allowed)
        if unknown:
            raise SettingsFileError(f"{kind} {name}: unknown key {', '.join(unknown)}")
        values = {
            key.removeprefix(f"{prefix}_"): value
            for key, value in entry.items()
            if key != name_key and value is not None
        }
        found.append((str(name), values))
    return found


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


def main() -> int:
    """Import the file; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m include.airflow_settings", description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=SETTINGS_FILE)
    parser.add_argument("--migrate", action="store_true", help="airflow db migrate first")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace connections and variables that exist"
    )
    options = parser.parse_args()
    from sqlalchemy.exc import DatabaseError

    try:
        if options.file.suffix == ".json":
            settings = AirflowSettings.from_json(json.loads(options.file.read_text()))
        else:
            settings = AirflowSettings.read(options.file)
        import_all(settings, migrate=options.migrate, overwrite=options.overwrite)
    except SettingsFileError as error:
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


if __name__ == "__main__":
    sys.exit(main())
