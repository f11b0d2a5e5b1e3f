"""Which of a run's causes has led to the others."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rehome.domain.run.causes.cause import Cause, CauseKind, most_specific

AT = datetime(2030, 1, 1, tzinfo=UTC)
AWAY = Cause(CauseKind.CLUSTER_AWAY, "No broker answers.", "", "Start one.", AT, "snapshot")
VERDICT = Cause(CauseKind.VERDICT, "The run ended.", "Nothing.", "", AT, "verdict")


def test_what_came_first_has_led_to_the_others() -> None:
    later = replace(AWAY, task_id="verify", at=AT + timedelta(seconds=1))
    assert most_specific([later, AWAY]) == AWAY
    assert most_specific([]) is None


def test_a_verdict_counts_where_there_is_nothing_else() -> None:
    earlier = replace(VERDICT, at=AT - timedelta(hours=1))
    assert most_specific([earlier, AWAY]) == AWAY
    assert most_specific([earlier]) == earlier


def test_of_a_task_its_last_attempt_counts() -> None:
    """An attempt that was followed by another one has not ended the run."""
    stalled = replace(AWAY, kind=CauseKind.PLAN_FAILED, attempt=2, at=AT + timedelta(hours=2))
    other = replace(AWAY, task_id="throttle", at=AT + timedelta(hours=1))
    assert most_specific([stalled, AWAY, other]) == other


def test_what_a_person_has_answered_stays() -> None:
    rejected = replace(AWAY, kind=CauseKind.REJECTED)
    assert most_specific([replace(AWAY, attempt=2), rejected]) == rejected


def test_what_was_said_since_a_run_was_cleared_counts_before_what_was_said_earlier() -> None:
    since = replace(AWAY, task_id="verify", at=AT + timedelta(days=1), cleared=1)
    assert most_specific([AWAY, since]) == since


def test_a_cause_survives_json_and_a_kind_of_a_newer_rehome_is_a_fault() -> None:
    assert Cause.from_json(AWAY.to_json()) == AWAY
    newer = AWAY.to_json() | {"kind": "sunspots"}
    assert Cause.from_json(newer).kind is CauseKind.FAULT
