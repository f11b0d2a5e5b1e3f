"""Kinds of findings, and the policies for them."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from rehome.domain.run.findings import Severity


class FindingKind(enum.StrEnum):
    """Kinds of problems, the worst first."""

    DEAD_BROKER = "dead_broker"
    FLAPPING_BROKER = "flapping_broker"
    OFFLINE_LOG_DIR = "offline_log_dir"
    UNDER_MIN_ISR = "under_min_isr"
    WRONG_CONNECTION = "wrong_connection"
    WRONG_CLOCK = "wrong_clock"
    UNDER_REPLICATED = "under_replicated"
    DISK_FULL_SOON = "disk_full_soon"
    RACK_VIOLATION = "rack_violation"
    REPLICATION_FACTOR = "replication_factor"
    SLOW_BROKER = "slow_broker"
    SLOW_LOG_DIR = "slow_log_dir"
    IMBALANCE = "imbalance"
    LEADER_SKEW = "leader_skew"
    EMPTY_BROKER = "empty_broker"
    LEFTOVER_THROTTLE = "leftover_throttle"
    FOREIGN_REASSIGNMENT = "foreign_reassignment"
    REMOVED_RULE = "removed_rule"

    @property
    def severity(self) -> Severity:
        """Severity: ERROR = data is at risk or refused; INFO = nothing is at risk."""
        return _SEVERITIES[self]


_SEVERITIES: Mapping[FindingKind, Severity] = {
    FindingKind.DEAD_BROKER: Severity.ERROR,
    FindingKind.FLAPPING_BROKER: Severity.WARNING,
    FindingKind.OFFLINE_LOG_DIR: Severity.ERROR,
    FindingKind.UNDER_MIN_ISR: Severity.ERROR,
    FindingKind.WRONG_CONNECTION: Severity.ERROR,
    FindingKind.WRONG_CLOCK: Severity.ERROR,
    FindingKind.UNDER_REPLICATED: Severity.WARNING,
    FindingKind.DISK_FULL_SOON: Severity.WARNING,
    FindingKind.RACK_VIOLATION: Severity.WARNING,
    FindingKind.REPLICATION_FACTOR: Severity.WARNING,
    FindingKind.SLOW_BROKER: Severity.WARNING,
    FindingKind.SLOW_LOG_DIR: Severity.WARNING,
    FindingKind.IMBALANCE: Severity.INFO,
    FindingKind.LEADER_SKEW: Severity.INFO,
    FindingKind.EMPTY_BROKER: Severity.INFO,
    FindingKind.LEFTOVER_THROTTLE: Severity.WARNING,
    FindingKind.FOREIGN_REASSIGNMENT: Severity.INFO,
    FindingKind.REMOVED_RULE: Severity.INFO,
}


class WatchPolicy(enum.StrEnum):
    """What follows when a finding opens."""

    WATCH = "watch"  # people are alerted
    PROPOSE = "propose"  # and a plan is made, dry-run, and waits for approval
    HEAL = "heal"  # and the plan is carried out


AFTER_GRACE = frozenset(
    {FindingKind.DEAD_BROKER, FindingKind.OFFLINE_LOG_DIR, FindingKind.UNDER_REPLICATED}
)
"""Kinds that a broker's restart shows as well: they open only after the grace time."""
REMEDIED = frozenset(
    {
        FindingKind.DEAD_BROKER,
        FindingKind.OFFLINE_LOG_DIR,
        FindingKind.DISK_FULL_SOON,
        FindingKind.RACK_VIOLATION,
        FindingKind.REPLICATION_FACTOR,
        FindingKind.IMBALANCE,
        FindingKind.LEADER_SKEW,
        FindingKind.EMPTY_BROKER,
    }
)
"""Kinds that a plan can remedy. Other kinds only raise an alert, whatever the policy."""
