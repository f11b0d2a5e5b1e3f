"""Why a task ends its run, in words."""

from __future__ import annotations

from rehome.errors import STEP_UNCHANGED
from rehome.run.causes.task_end import EndTexts, TaskEnd
from rehome.run.words.asker_words import ASKER_STEPS, ASKER_TEXTS
from rehome.run.words.completion_words import COMPLETION_LEFT, COMPLETION_STEPS, COMPLETION_TEXTS
from rehome.run.words.job_words import JOB_LEFT, JOB_STEPS, JOB_TEXTS
from rehome.run.words.plan_words import RUN_LEFT, RUN_STEPS, RUN_TEXTS

_TEXTS = {**ASKER_TEXTS, **COMPLETION_TEXTS, **JOB_TEXTS, **RUN_TEXTS}
_STEPS = {**ASKER_STEPS, **COMPLETION_STEPS, **JOB_STEPS, **RUN_STEPS}
LEFT = dict.fromkeys((*ASKER_TEXTS, *RUN_TEXTS), STEP_UNCHANGED) | {
    **COMPLETION_LEFT,
    **JOB_LEFT,
    **RUN_LEFT,
}
"""What state a reason leaves; of the others the error does not say it."""


def ended_text(end: TaskEnd) -> tuple[str, str, str]:
    """What is so, what state it leaves, and what to do."""
    return _text(_TEXTS, end), _text(LEFT, end), _text(_STEPS, end)


def _text(table: EndTexts, end: TaskEnd) -> str:
    words = table.get(end.reason, "")
    return words if isinstance(words, str) else words(end)
