"""A finding of a dry run in words."""

from __future__ import annotations

from collections.abc import Sequence

from rehome.domain.run.findings import Finding
from rehome.execution.dry_run.typed_finding import Texts, TypedFinding
from rehome.execution.dry_run.words.copy_words import COPY_DETAILS, COPY_STEPS, COPY_TEXTS
from rehome.execution.dry_run.words.disk_words import DISK_STEPS, DISK_TEXTS
from rehome.execution.dry_run.words.isr_words import ISR_STEPS, ISR_TEXTS
from rehome.execution.dry_run.words.plan_words import PLAN_DETAILS, PLAN_STEPS, PLAN_TEXTS
from rehome.execution.dry_run.words.replica_words import REPLICA_STEPS, REPLICA_TEXTS
from rehome.execution.dry_run.words.throttle_words import THROTTLE_STEPS, THROTTLE_TEXTS

_OF_TOPICS: Sequence[tuple[Texts, Texts, Texts]] = (
    (COPY_TEXTS, COPY_STEPS, COPY_DETAILS),
    (DISK_TEXTS, DISK_STEPS, {}),
    (ISR_TEXTS, ISR_STEPS, {}),
    (PLAN_TEXTS, PLAN_STEPS, PLAN_DETAILS),
    (REPLICA_TEXTS, REPLICA_STEPS, {}),
    (THROTTLE_TEXTS, THROTTLE_STEPS, {}),
)


def worded(found: TypedFinding) -> Finding:
    """As people read it, and ``dry_run.json`` has it."""
    kind = found.kind
    tables = next(each for each in _OF_TOPICS if kind in each[0])
    message, remedy, detail = (_text(table, found) for table in tables)
    code = None if found.error is None else found.error.code
    about = kind.severity, kind.check, found.subject
    return Finding(*about, message, remedy, code, detail, what=kind.value)


def _text(table: Texts, found: TypedFinding) -> str:
    words = table.get(found.kind, "")
    return words if isinstance(words, str) else words(found)
