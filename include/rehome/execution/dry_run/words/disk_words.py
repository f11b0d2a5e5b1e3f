"""What is wrong with free space, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rehome.domain.run.findings import Finding, FoundKind
from rehome.domain.text import bytes_text
from rehome.execution.dry_run.disk_headroom import DiskFound, DiskKind


def disk_finding(found: DiskFound) -> Finding:
    """What was found of free space, as people read it."""
    return found.said(_TEXTS[found.kind](found), _STEPS[found.kind])


def _usable(found: DiskFound) -> str:
    return ", ".join(map(bytes_text, found.usable_bytes))


_TEXTS: Mapping[FoundKind, Callable[[DiskFound], str]] = {
    DiskKind.TOO_LITTLE: lambda found: (
        f"{bytes_text(found.needed_bytes)} would come before anything leaves, {_usable(found)} "
        "may be used"
    ),
    DiskKind.FITS_INTO_NONE: lambda found: (
        f"{found.partition} ({bytes_text(found.needed_bytes)}) fits into no log dir with the other "
        f"copies: they may take {_usable(found)}"
    ),
    DiskKind.MAY_FILL_ONE: lambda found: (
        f"its log dirs hold what comes, but the fullest one may take {_usable(found)}, and the "
        "broker chooses by the number of partitions"
    ),
}
_STEPS: Mapping[FoundKind, str] = {
    DiskKind.TOO_LITTLE: "Free disk, or move less at a time.",
    DiskKind.FITS_INTO_NONE: "Free disk on one of its volumes, name log dirs, or move less at a "
    "time.",
    DiskKind.MAY_FILL_ONE: "Name the log dirs of these copies, or watch the volume.",
}
