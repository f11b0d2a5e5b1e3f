"""What is wrong with free space, in words."""

from __future__ import annotations

from rehome.domain.text import bytes_text
from rehome.execution.dry_run.typed_finding import FoundKind as Kind
from rehome.execution.dry_run.typed_finding import Texts, TypedFinding


def _usable(finding: TypedFinding) -> str:
    return ", ".join(map(bytes_text, finding.usable_bytes))


DISK_TEXTS: Texts = {
    Kind.DISK_TOO_SMALL: lambda finding: (
        f"{bytes_text(finding.size_bytes)} would come before anything leaves, {_usable(finding)} "
        "may be used"
    ),
    Kind.FITS_INTO_NO_LOG_DIR: lambda finding: (
        f"{finding.partitions[0]} ({bytes_text(finding.size_bytes)}) fits into no log dir with the "
        f"other copies: they may take {_usable(finding)}"
    ),
    Kind.MAY_FILL_LOG_DIR: lambda finding: (
        f"its log dirs hold what comes, but the fullest one may take {_usable(finding)}, and the "
        "broker chooses by the number of partitions"
    ),
}
DISK_STEPS: Texts = {
    Kind.DISK_TOO_SMALL: "Free disk, or move less at a time.",
    Kind.FITS_INTO_NO_LOG_DIR: "Free disk on one of its volumes, name log dirs, or move less at a "
    "time.",
    Kind.MAY_FILL_LOG_DIR: "Name the log dirs of these copies, or watch the volume.",
}
