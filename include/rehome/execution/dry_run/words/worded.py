"""A finding of a dry run in words."""

from __future__ import annotations

from rehome.domain.run.findings import Finding
from rehome.execution.dry_run.typed_finding import Texts, TypedFinding
from rehome.execution.dry_run.words.copy_words import COPY_DETAILS, COPY_STEPS, COPY_TEXTS
from rehome.execution.dry_run.words.disk_words import DISK_STEPS, DISK_TEXTS
from rehome.execution.dry_run.words.isr_words import ISR_STEPS, ISR_TEXTS
from rehome.execution.dry_run.words.plan_words import PLAN_DETAILS, PLAN_STEPS, PLAN_TEXTS
from rehome.execution.dry_run.words.replica_words import REPLICA_STEPS, REPLICA_TEXTS
from rehome.execution.dry_run.words.settings_words import SETTINGS_STEPS, SETTINGS_TEXTS
from rehome.execution.dry_run.words.throttle_words import THROTTLE_STEPS, THROTTLE_TEXTS
from rehome.execution.dry_run.words.version_words import VERSION_STEPS, VERSION_TEXTS

_TEXTS: Texts = COPY_TEXTS | DISK_TEXTS | ISR_TEXTS | PLAN_TEXTS | REPLICA_TEXTS | THROTTLE_TEXTS
_TEXTS |= SETTINGS_TEXTS | VERSION_TEXTS
_STEPS: Texts = COPY_STEPS | DISK_STEPS | ISR_STEPS | PLAN_STEPS | REPLICA_STEPS | THROTTLE_STEPS
_STEPS |= SETTINGS_STEPS | VERSION_STEPS
_DETAILS: Texts = COPY_DETAILS | PLAN_DETAILS


def put_in_words(finding: TypedFinding) -> Finding:
    """As people read it, and ``dry_run.json`` has it."""
    kind = finding.kind
    message, remedy, detail = (_text(each, finding) for each in (_TEXTS, _STEPS, _DETAILS))
    code = None if finding.error is None else finding.error.code
    about = kind.severity, kind.check, finding.subject
    return Finding(*about, message, remedy, code, detail, what=kind.value)


def _text(table: Texts, finding: TypedFinding) -> str:
    words = table.get(finding.kind, "")
    return words if isinstance(words, str) else words(finding)
