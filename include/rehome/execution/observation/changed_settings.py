"""Whether the cluster's caps, broker sets and targets are those that a plan was made with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rehome.domain.request.cluster_values import ClusterValues, changes
from rehome.domain.run.findings import SETTINGS_CHECK, Finding, Severity
from rehome.errors import STEP_UNCHANGED
from rehome.execution.observation.drift import DriftError

PLAN_AGAIN = (
    "Plan again: cancel this plan where it is paused, and trigger a new run, which plans with what "
    "the cluster has now."
)


def settings_findings(
    plan_settings: ClusterValues | None, now: ClusterValues, broken: Iterable[str]
) -> Iterator[Finding]:
    """What has changed since the plan was made, and what is left of it that breaks limits of now.

    :param plan_settings: None = an earlier version of Rehome made the plan, and kept no record.
    :param broken: a sentence for each cap and broker set of now that is broken.
    """
    if plan_settings is None:
        yield Finding(
            Severity.WARNING,
            SETTINGS_CHECK,
            "plan",
            "it is not known whether caps, broker sets or targets of the cluster have changed "
            "since it was made: an earlier version of Rehome made it, and kept no record of them",
            "If they have changed, plan again: trigger a new run.",
        )
        return
    for text in broken:
        yield Finding(Severity.ERROR, SETTINGS_CHECK, "plan", text.rstrip("."), PLAN_AGAIN)
    for change in changes(plan_settings.counting(), now.counting()):
        yield Finding(
            Severity.WARNING,
            SETTINGS_CHECK,
            change.name,
            f"has changed since the plan was made, from {change.was} to {change.now}",
            "The plan keeps the old value. For the new one, cancel the plan and trigger a new run.",
        )


def refuse_broken(plan_id: str, broken: Sequence[str]) -> None:
    """Let only a plan pass that keeps the limits of now.

    :raises DriftError: naming what is broken.
    """
    if broken:
        raise DriftError(
            f"Caps or broker sets of the cluster are broken by what is left of plan {plan_id}: "
            + " ".join(broken),
            state_left=STEP_UNCHANGED,
            next_step=PLAN_AGAIN,
        )


def not_compared(why: str) -> Finding:
    """Where what the cluster has now cannot be read, and the plan has begun.

    :param why: with what to do about it.
    """
    what = "the plan has begun, and goes on without this check"
    return Finding(Severity.WARNING, SETTINGS_CHECK, "clusters file", what, why)
