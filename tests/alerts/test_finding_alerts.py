"""Which findings raise alerts: not those whose cause raises one of its own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from include.alerts.finding_alerts import of_findings, with_own_alert
from include.watching.finding import FindingRecord
from include.watching.kinds import FindingKind
from include.watching.rules import WatchRules

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
FORECAST_DAYS = 30
FULL_SOON: dict[str, Any] = {"days": 35.0, "growth_bytes_per_s": 1e6}
LEFT: dict[str, Any] = {"count": 1, "throttles": ["topic a leader.replication.throttled.replicas"]}


def found(kind: FindingKind, subject: str, facts: dict[str, Any]) -> FindingRecord:
    return FindingRecord("c1", kind, subject, NOW, NOW, NOW, 3, 0, NOW, None, facts)


@pytest.mark.parametrize(
    ("disk_days", "planned_through", "alerted"),
    [
        (FORECAST_DAYS, True, set()),
        (FORECAST_DAYS, False, {"leftover_throttle"}),  # no sweep opens the connection
        (FORECAST_DAYS + 1, True, {"disk_full_soon"}),  # the roll-up does not see that far
    ],
)
def test_a_finding_alerts_where_no_other_alert_covers_it(
    disk_days: int, planned_through: bool, alerted: set[str]
) -> None:
    rules = WatchRules(disk_days=disk_days)
    findings = [
        found(FindingKind.DISK_FULL_SOON, "broker 3", FULL_SOON),
        found(FindingKind.LEFTOVER_THROTTLE, "", LEFT),
    ]
    own = with_own_alert(rules, FORECAST_DAYS, planned_through=planned_through)
    alerts, over = of_findings(findings, [], "kafka_default", rules, own)
    assert {alert.facts["finding"] for alert in alerts} == alerted
    assert not over
