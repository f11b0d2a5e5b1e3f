"""Settings that an entry of the clusters file gives its cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from rehome.setting_problems import problems_of, unknown_setting, without_removed
from rehome.settings import Settings, known_settings

OF_THE_INSTALLATION = (
    "warehouse",
    "other_uri_schemes",
    "warehouse_mode",
    "warehouse_is_shared",
    "warehouse_connection",
    "ledger_url",
    "ledger_is_connection",
    "alert_channels",
    "webhook_allow_http",
    "clusters_file",
    "watch_rules",
    "window_cron",
    "window_duration_s",
    "window_timezone",
    "window_own_plan",
)
"""Settings of the installation: an entry of the clusters file cannot set them for its cluster."""


def settings_problems(overrides: Mapping[str, Any]) -> list[str]:
    """What is wrong with settings of a cluster: a sentence for each problem, [] = nothing."""
    setting_names = known_settings()
    shared = [name for name in overrides if name in OF_THE_INSTALLATION]
    unknown = [name for name in without_removed(overrides) if name not in setting_names]
    problems = [f"Setting {name} holds for all clusters: it cannot be set here." for name in shared]
    try:
        Settings.model_validate({n: v for n, v in overrides.items() if n in setting_names})
    except ValidationError as error:
        problems += problems_of(error, overrides, setting_names)
    return problems + [unknown_setting(name, setting_names) for name in unknown]
