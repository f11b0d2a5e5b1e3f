"""Whether the cluster's caps, broker sets and targets are those that a plan was made with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rehome.domain.request.cluster_values import ClusterValues, changes
from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding

_PLAN = "plan"


def settings_findings(
    plan_settings: ClusterValues | None, now: ClusterValues, broken: Iterable[str]
) -> Iterator[TypedFinding]:
    """What has changed since the plan was made, and what is left of it that breaks limits of now.

    :param plan_settings: None = an earlier version of Rehome made the plan, and kept no record.
    :param broken: a sentence for each cap and broker set of now that is broken.
    """
    if plan_settings is None:
        yield TypedFinding(FoundKind.SETTINGS_NOT_KEPT, _PLAN)
        return
    for text in broken:
        yield TypedFinding(FoundKind.LIMIT_BROKEN, _PLAN, value=text.rstrip("."))
    for change in changes(plan_settings.counting(), now.counting()):
        yield TypedFinding(FoundKind.SETTING_CHANGED, change.name, was=change.was, value=change.now)


def not_compared(why: str) -> TypedFinding:
    """Where what the cluster has now cannot be read, and the plan has begun.

    :param why: with what to do about it.
    """
    return TypedFinding(FoundKind.SETTINGS_NOT_READ, "clusters file", value=why)
