"""Why the last run that was to go on with a paused plan did not, by its dry run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.domain.run.findings import SETTINGS_CHECK, Severity
from include.watching.paused_plan import Refused


def refused_by(dry_run: Mapping[str, Any] | None) -> Refused | None:
    """Why the last run that was to go on with a paused plan did not: it has begun, so that its
    first dry run has found no error.

    :param dry_run: ``dry_run.json`` of the plan.
    """
    findings = (dry_run or {}).get("findings", ())
    # What no run can go on with comes first.
    errors = sorted(
        (item for item in findings if item["severity"] == Severity.ERROR),
        key=lambda item: item["check"] != SETTINGS_CHECK,
    )
    if not errors:
        return None
    first = errors[0]
    return Refused(
        f"{first['subject']}: {first['message']}",
        first["remedy"],
        len(errors) - 1,
        first["check"] == SETTINGS_CHECK,
    )
