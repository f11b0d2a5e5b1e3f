"""An alert, channels for it, and what the ledger says of their delivery."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rehome import alerting, installation
from rehome.alerts.alert import Alert
from rehome.alerts.kinds import AlertKind
from rehome.domain.run.event_kind import EventKind

SECRET = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cw=="
STALLED = Alert(
    AlertKind.STALLED,
    "p1",
    "Nothing has moved <since> noon.",
    "Check the {{ brokers }}.",
    plan_id="p1",
    cluster_id="c1",
    connection="kafka_default",
    state="running",
    facts={"run_id": "run-1"},
)
SetUp = Callable[..., None]


def connect(patch: pytest.MonkeyPatch, url: str, name: str = "REHOME_WEBHOOK", **more: Any) -> None:
    extra = more.pop("extra", {})
    made = {"conn_type": "http", "host": url, "extra": json.dumps(extra), **more}
    patch.setenv(f"AIRFLOW_CONN_{name}", json.dumps(made))


def events(kind: EventKind) -> list[str]:
    with installation.open_ledger() as ledger:
        return [event.detail for event in ledger.events("p1") if event.kind == kind]


def raised(alert: Alert = STALLED) -> None:
    with installation.open_ledger() as ledger:
        alerting.raise_alerts(ledger, [alert])
