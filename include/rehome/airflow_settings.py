"""airflow_settings.yaml, in the Astro CLI's format, as what Airflow's own imports read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rehome.domain.text import json_fault, json_in
from rehome.packaging import ROOT

SETTINGS_FILE = ROOT / "airflow_settings.yaml"
_KINDS = ("connections", "pools", "variables")
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
        """Read a file in the Astro CLI's format, or JSON of :meth:`to_json`.

        :raises SettingsFileError: it is neither, an entry has no name, or a key that means
            nothing.
        :raises OSError: it cannot be read.
        """
        if path.suffix == ".json":
            return cls._read_json(path)
        try:
            content = (yaml.safe_load(path.read_text()) or {}).get("airflow") or {}
        except (yaml.YAMLError, AttributeError, UnicodeError) as error:
            raise SettingsFileError(f"{path} is no YAML with a key airflow: {error}") from None
        if not isinstance(content, dict):
            raise SettingsFileError(f"{path}: airflow is no mapping of {', '.join(_KINDS)}")
        unknown = sorted(str(key) for key in set(content) - set(_KINDS))
        if unknown:
            raise SettingsFileError(f"{path}: unknown section {', '.join(unknown)}")
        return cls(
            connections={
                name: {_IMPORTED_AS.get(key, key): value for key, value in entry.items()}
                for name, entry in _entries(content, "connections", "conn", _CONNECTION_FIELDS)
            },
            pools={
                name: {
                    "slots": _slots(name, entry),
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

    @classmethod
    def _read_json(cls, path: Path) -> AirflowSettings:
        try:
            content = json_in(path.read_text())
        except ValueError as error:
            raise SettingsFileError(f"{path} {json_fault(error)}") from error
        kinds = content.values() if isinstance(content, dict) else ()
        if set(content) != set(_KINDS) or not all(isinstance(each, dict) for each in kinds):
            raise SettingsFileError(
                f"{path} is no JSON object with an object for each of {', '.join(_KINDS)}"
            )
        return cls.from_json(content)

    def with_connections(self, connections: Mapping[str, Mapping[str, Any]]) -> AirflowSettings:
        """These connections besides, or instead of, those of the same ids."""
        more = {name: dict(values) for name, values in connections.items()}
        return AirflowSettings(self.connections | more, self.pools, self.variables)

    def with_pools_of(self, pools: Mapping[str, Mapping[str, Any]]) -> AirflowSettings:
        """With the pools of these names as they are there already, but for what they count:
        deferred tasks, where these settings say so.
        """
        counted = "include_deferred"
        kept = {
            name: {**pools[name], counted: bool(pools[name][counted] or entry.get(counted))}
            for name, entry in self.pools.items()
            if name in pools
        }
        return AirflowSettings(self.connections, self.pools | kept, self.variables)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types; :meth:`from_json` reads it back."""
        return {kind: getattr(self, kind) for kind in _KINDS}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> AirflowSettings:
        """The inverse of :meth:`to_json`."""
        return cls(**{kind: dict(content[kind]) for kind in _KINDS})

    def write(self, directory: Path) -> dict[str, Path]:
        """Write one JSON file per kind, readable by their owner only; kind → file."""
        files = {}
        for kind in _KINDS:
            files[kind] = directory / f"{kind}.json"
            files[kind].touch(mode=0o600)
            files[kind].write_text(json.dumps(getattr(self, kind), indent=2))
        return files


def _slots(name: str, entry: Mapping[str, Any]) -> int:
    try:
        return int(entry["slot"])
    except (KeyError, TypeError, ValueError):
        raise SettingsFileError(f"pools {name}: pool_slot is no whole number") from None


def _entries(
    content: Mapping[str, Any], kind: str, prefix: str, keys: Iterable[str]
) -> list[tuple[str, dict[str, Any]]]:
    """Entries of a section by name, their keys without the prefix that the format repeats."""
    name_key = "conn_id" if prefix == "conn" else f"{prefix}_name"
    allowed = {name_key, *(f"{prefix}_{key}" for key in keys)}
    pairs = []
    entries = content.get(kind) or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise SettingsFileError(f"{kind} is no list of entries")
    for entry in entries:
        name = entry.get(name_key)
        if not name:
            keys_text = ", ".join(sorted(map(str, entry)))
            raise SettingsFileError(
                f"The settings file has an entry below {kind} without {name_key}, so nothing of "
                f"the file is used. The keys of that entry are {keys_text}. Name it."
            )
        unknown = sorted(map(str, set(entry) - allowed))
        if unknown:
            raise SettingsFileError(f"{kind} {name}: unknown key {', '.join(unknown)}")
        values = {
            key.removeprefix(f"{prefix}_"): value
            for key, value in entry.items()
            if key != name_key and value is not None
        }
        pairs.append((str(name), values))
    return pairs
