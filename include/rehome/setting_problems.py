"""What is wrong with settings, in sentences: which, where it was set, and what it takes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from rehome.field_descriptions import Described

ENVIRONMENT = "REHOME_"
"""What the name of a setting begins with in the environment."""
REMOVED_SETTINGS: Mapping[str, str] = {
    "max_driver_replicas": "nothing: one process plans a cluster of any size",
}
"""Settings of earlier versions, which this one accepts and ignores, and what holds instead."""
_MAY_HOLD_SECRETS = frozenset(("ledger_url", "alert_channels"))
_NAMES_ITS_PROBLEMS = frozenset(("caps", "broker_sets"))

CORRECT_SETTINGS = (
    "Correct the Variable rehome, the connection rehome_ledger, or the environment of Airflow. "
    "Then clear the task, with what comes after it."
)
"""What to do about a setting that cannot be used."""


def env_name(name: str) -> str:
    """The environment variable of a setting."""
    return f"{ENVIRONMENT}{name.upper()}"


def without_removed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without those that this version ignores."""
    return {name: value for name, value in given.items() if name not in REMOVED_SETTINGS}


def given_settings(
    setting_names: Iterable[str], overrides: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What the environment sets, then ``overrides``; and the names of those that are ignored."""
    names = (*setting_names, *REMOVED_SETTINGS)
    given = {name: os.environ[env_name(name)] for name in names if env_name(name) in os.environ}
    given.update(overrides)
    return without_removed(given), tuple(sorted(REMOVED_SETTINGS.keys() & given.keys()))


def problems_of(
    error: ValidationError, overrides: Mapping[str, Any], descriptions: Mapping[str, Described]
) -> Iterator[str]:
    """A sentence for each problem, with what to change, and where.

    :param overrides: settings that the environment did not give.
    :param descriptions: every setting, by its name.
    """
    for problem in error.errors(include_url=False):
        name = str(problem["loc"][0])
        if name not in descriptions:
            yield unknown_setting(name, descriptions)
            continue
        where = "" if name in overrides else f", set by {env_name(name)} in the environment,"
        shown = "" if name in _MAY_HOLD_SECRETS else f"={problem['input']!r}"
        unit = f", in {descriptions[name].unit}" if descriptions[name].unit else ""
        default = descriptions[name].shown_default
        fallback = f" The default is {default}." if default else ""
        cause = problem.get("ctx", {}).get("error")
        if name in _NAMES_ITS_PROBLEMS and cause is not None:
            fallback = f" {cause}"
        yield (
            f"Setting {name}{shown}{where} is not what it takes: {descriptions[name].kind}{unit}."
            f"{fallback}"
        )


def unknown_setting(name: str, setting_names: Iterable[str]) -> str:
    """That there is no such setting, and which there are."""
    return f"Unknown setting {name!r}; known: {', '.join(sorted(setting_names))}."
