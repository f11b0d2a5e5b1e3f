"""What is wrong with settings, policies and channels around a plan, in words."""

from __future__ import annotations

from rehome.execution.access.words.policy_words import difference_text
from rehome.execution.dry_run.typed_finding import FoundKind as Kind
from rehome.execution.dry_run.typed_finding import Texts, TypedFinding
from rehome.execution.observation.words.drift_words import PLAN_AGAIN


def _differ(finding: TypedFinding) -> str:
    assert finding.differs is not None
    return difference_text(finding.differs)


SETTINGS_TEXTS: Texts = {
    Kind.SETTINGS_NOT_KEPT: "it is not known whether caps, broker sets or targets of the cluster "
    "have changed since it was made: an earlier version of Rehome made it, and kept no record of "
    "them",
    Kind.LIMIT_BROKEN: lambda finding: finding.value,
    Kind.SETTING_CHANGED: lambda finding: (
        f"has changed since the plan was made, from {finding.was} to {finding.value}"
    ),
    Kind.SETTINGS_NOT_READ: "the plan has begun, and goes on without this check",
    Kind.POLICIES_DIFFER: _differ,
    Kind.CHANNEL_UNUSABLE: lambda finding: finding.value,
}
SETTINGS_STEPS: Texts = {
    Kind.SETTINGS_NOT_KEPT: "If they have changed, plan again: trigger a new run.",
    Kind.LIMIT_BROKEN: PLAN_AGAIN,
    Kind.SETTING_CHANGED: "The plan keeps the old value. For the new one, cancel the plan and "
    "trigger a new run.",
    Kind.SETTINGS_NOT_READ: lambda finding: finding.value,
    Kind.POLICIES_DIFFER: "The strictest holds. Give every connection to the cluster the same "
    "policy.",
    Kind.CHANNEL_UNUSABLE: "Correct the setting alert_channels; until then that channel gets no "
    "alert.",
}
