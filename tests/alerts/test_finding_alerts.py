"""Which findings raise alerts: not those whose cause raises one of its own."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from rehome.alerts.finding_alerts import of_findings, with_own_alert
from rehome.clusters.watch_rules import WatchRules
from rehome.domain.run.watched.finding import FindingRecord
from rehome.domain.run.watched.finding_kinds import FindingKind, WatchPolicy

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
FORECAST_DAYS = 30
FULL_SOON: dict[str, Any] = {"days": 35.0, "growth_bytes_per_s": 1e6}
LEFT: dict[str, Any] = {"count": 1, "throttles": ["topic a leader.replication.throttled.replicas"]}


def found(kind: FindingKind, subject: str, facts: dict[str, Any]) -> FindingRecord:
    return FindingRecord("c1", kind, subject, NOW, NOW, NOW, 3, 0, NOW, None, facts)


@pytest.mark.parametrize(
    ("planned_through", "alerted"),
    [(True, set()), (False, {"leftover_throttle"})],  # no sweep opens the connection
)
def test_a_finding_alerts_where_no_other_alert_covers_it(
    planned_through: bool, alerted: set[str]
) -> None:
    rules = WatchRules()
    findings = [
        found(FindingKind.DISK_FULL_SOON, "broker 3", FULL_SOON),
        found(FindingKind.LEFTOVER_THROTTLE, "", LEFT),
    ]
    own = with_own_alert(planned_through=planned_through)
    alerts, over = of_findings(findings, [], "kafka_default", rules, own)
    assert {alert.facts["finding"] for alert in alerts} == alerted
    assert not over


@pytest.mark.parametrize(("away", "heals"), [([], True), (["rack /c"], False)])
def test_an_alert_promises_no_heal_while_a_whole_rack_is_away(away: list[str], heals: bool) -> None:
    facts = {"replicas": 3, "domains_away": away}
    dead = [found(FindingKind.DEAD_BROKER, "broker 5", facts)]
    rules = WatchRules(policy=WatchPolicy.HEAL)
    (alert,), _ = of_findings(dead, [], "kafka_default", rules, frozenset())
    assert ("heals it" in alert.next_step) is heals
    assert ("Nothing is healed" in alert.text) is not heals
    assert ("Bring the brokers back" in alert.next_step) is not heals
