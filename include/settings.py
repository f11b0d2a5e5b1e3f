"""Every default of Rehome, in one place; each can be set by an environment variable.

``REHOME_<FIELD>`` (upper case) overrides a field: ``REHOME_WAREHOUSE=s3://bucket/rehome``.
On Airflow's side the Variable ``rehome`` (a JSON object of the same names) comes on top, and
the connection ``rehome_ledger`` replaces ``ledger_url``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from include.errors import InvalidRequestError

THROTTLE_EFFICIENCY = 0.95
"""The governor comes to what was asked for from below."""
FIRST_POLL_S = 5.0
"""The progress trigger's first poll comes no sooner: Airflow takes a deferral that fires at once
for a failure, since its worker was not seen to end yet."""


def _state_dir() -> Path:
    """Where local state lives unless it is set otherwise: beside Airflow's own, off the
    checkout.
    """
    home = os.environ.get("AIRFLOW_HOME") or os.path.expanduser("~/airflow")
    return Path(home) / "rehome"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where things are kept and how patient Rehome is. Seconds, bytes, URIs.

    :param warehouse: URI of snapshots and plans (fsspec: file://, s3://, hdfs://, …).
    :param ledger_url: SQLAlchemy URL of the ledger.
    :param request_timeout_s: bound on each RPC to a broker.
    :param connect_timeout_s: bound on connecting and authenticating, TLS handshake included.
    :param throttle_efficiency: part of the rate asked for that brokers deliver as it is governed:
        admission and predictions use it.
    :param auto_throttle_bytes_per_s: the rate that throttle="auto" plans with; what it sets is
        known when the dry run has measured the traffic.
    :param broker_capacity_bytes_per_s: what a broker can take in, and can send: for "auto".
    :param max_snapshot_age_s: the gate refuses to plan on anything older.
    :param wake_s: time that Airflow takes to bring a deferred task back to a worker. Admission
        and predictions reckon with it and the poll interval.
    :param poll_interval_s: see Policy; so are stall_alert_s, stall_timeout_s and
        max_partitions_in_flight.
    :param approval_lasts_s: a plan may start, or go on in another run, for this long after it was
        approved.
    :param lease_s: a run that gives no sign of life for this long may be taken over: its plan
        can be cancelled or continued by another. At least four polls.
    :param history_days: how many days of history a plan looks back on.
    :param min_history_hours: a partition's load is known once it was watched for that long.
    :param max_snapshot_gap_s: what happened in a longer span between two snapshots is not known.
    :param snapshot_retention_days: older snapshots are removed once they are rolled up.
    :param rollup_retention_days: older daily rollups are removed.
    :param forecast_days: how far ahead disks are forecast.
    :param window_cron: when rebalance_in_window may run: see MaintenanceWindowTimetable, as for
        window_duration_s and window_timezone. Airflow parses DAGs without the Variable: only
        the environment sets these three.
    :param max_driver_replicas: beyond that many, Spark plans a cluster in slices.
    :param min_free_disk_fraction: part of a log dir that must stay free at every moment.
    """

    warehouse: str = ""
    ledger_url: str = ""
    request_timeout_s: float = 10.0
    connect_timeout_s: float = 5.0
    throttle_efficiency: float = THROTTLE_EFFICIENCY
    auto_throttle_bytes_per_s: int = 50_000_000
    broker_capacity_bytes_per_s: int = 125_000_000
    max_snapshot_age_s: float = 3600.0
    poll_interval_s: float = 5.0
    wake_s: float = 10.0
    stall_alert_s: float = 60.0
    stall_timeout_s: float = 600.0
    max_partitions_in_flight: int = 200
    approval_lasts_s: float = 24 * 3600.0
    lease_s: float = 60.0
    max_driver_replicas: int = 50_000_000
    min_free_disk_fraction: float = 0.05
    history_days: int = 7
    min_history_hours: float = 24.0
    max_snapshot_gap_s: float = 1800.0
    snapshot_retention_days: int = 7
    rollup_retention_days: int = 90
    forecast_days: int = 30
    window_cron: str = "0 1 * * *"
    window_duration_s: float = 4 * 3600.0
    window_timezone: str = "UTC"

    def __post_init__(self) -> None:
        if not self.warehouse:
            object.__setattr__(self, "warehouse", (_state_dir() / "warehouse").as_uri())
        if not self.ledger_url:
            object.__setattr__(self, "ledger_url", f"sqlite:///{_state_dir() / 'ledger.db'}")

    @property
    def reaction_s(self) -> float:
        """Time until the next poll, and until the worker acts."""
        return self.poll_interval_s + self.wake_s

    @classmethod
    def load(cls, overrides: Mapping[str, Any] | None = None) -> Settings:
        """Defaults, then REHOME_* environment variables, then ``overrides``.

        :raises InvalidRequestError: for an unknown name or a value of the wrong type.
        """
        types: dict[str, type] = {f.name: type(f.default) for f in fields(cls)}
        given: dict[str, Any] = {
            name: os.environ[f"REHOME_{name.upper()}"]
            for name in types
            if f"REHOME_{name.upper()}" in os.environ
        }
        given.update(overrides or {})
        values: dict[str, Any] = {}
        problems = []
        for name, value in given.items():
            if name not in types:
                problems.append(f"Unknown setting {name!r}; known: {', '.join(sorted(types))}.")
                continue
            try:
                values[name] = types[name](value)
            except (TypeError, ValueError):
                problems.append(f"Setting {name}={value!r} is not a {types[name].__name__}.")
        if problems:
            raise InvalidRequestError(problems)
        return replace(cls(), **values)
