"""What the newest dry run of a plan has found, as one list for everybody who shows it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.domain.run.findings import Finding, FindingGroup, grouped


def findings_of(tried: Mapping[str, Any] | None) -> tuple[FindingGroup, ...]:
    """By kind, the worst first.

    :param tried: ``dry_run.json``; None = there was no dry run.
    """
    return grouped(map(Finding.from_json, (tried or {}).get("findings", ())))
