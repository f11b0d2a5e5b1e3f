"""The message about a run's end says first what has ended it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rehome.alerts.kinds import AlertKind
from rehome.alerts.run_end import Ended, RunEnd
from rehome.domain.run.causes.cause import Cause, CauseKind

AT = datetime(2030, 1, 1, tzinfo=UTC)
STALE = Cause(CauseKind.STALE, "t-0 has changed.", "Nothing moved.", "Plan anew.", AT, "snapshot")


def run_end(ended: Ended, cause: Cause | None) -> RunEnd:
    return RunEnd("a-dag", "run-1", ended, reason="task_failure", cause=cause, makes_plan=True)


def test_a_failed_runs_message_has_its_cause_and_its_remedy() -> None:
    alert = run_end(Ended.FAILED, STALE).alert()
    assert alert.kind is AlertKind.FAILED
    assert alert.text.startswith("Run run-1 of a-dag failed: t-0 has changed. Nothing moved.")
    assert "task_failure" not in alert.text
    assert alert.next_step == "Plan anew."
    assert Cause.from_json(alert.facts["ended_by"]) == STALE


def test_where_no_task_has_said_why_that_is_said() -> None:
    text = run_end(Ended.FAILED, None).alert().text
    assert text.startswith("Run run-1 of a-dag failed, and none of its tasks has said why.")


@pytest.mark.parametrize(
    ("kind", "said"), [(CauseKind.REJECTED, ": t-0 has changed."), (CauseKind.STALE, ". No plan")]
)
def test_of_a_success_only_a_persons_word_is_told(kind: CauseKind, said: str) -> None:
    cause = Cause(kind, STALE.text, "", "", AT, "approve")
    assert f"succeeded{said}" in run_end(Ended.SUCCEEDED, cause).alert().text
