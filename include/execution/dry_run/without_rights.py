"""Findings where Rehome may not throttle, or where others carry the plan out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from include.cluster.interface.error_codes import ErrorCode
from include.domain.run.findings import Finding, Severity
from include.domain.run.run_policy import Policy

_OF_RIGHTS = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)


def without_throttle(policy: Policy) -> Iterator[Finding]:
    """What a plan means that sets no throttle: said, whatever else is found."""
    yield Finding(
        Severity.WARNING,
        "throttle",
        "plan",
        f"it runs without a throttle: {policy.max_moves_per_broker} moves at once for each broker "
        f"and direction, and {policy.max_partitions_in_flight} partitions in all, are the only "
        "limit of the copies",
        "Clients of these brokers may suffer. Choose fewer moves at once (max_moves_per_broker), "
        "or have a throttle set where that is allowed.",
    )


def for_others(finding: Finding) -> Finding:
    """A finding as it applies to files that others carry out: a right that this principal lacks is
    one that they need.
    """
    if finding.severity is not Severity.ERROR or finding.code not in _OF_RIGHTS:
        return finding
    remedy = "Nothing is changed by this run. Who carries the files out needs that right."
    return replace(finding, severity=Severity.WARNING, remedy=remedy)
