"""What a page warns of, and when it stops."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from include.domain.run.flows import FlowSample, RateChange, RateReason
from include.domain.run.ledger_view import MoveSums
from include.domain.run.states import MoveState, PlanState
from include.page.alerts import AlertKind, Signs, alerts_of
from tests.reporting.plans_told import moves, plan_of, record

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
MB = 1_000_000
RUNNING = record(
    plan_of(*moves()),
    PlanState.RUNNING,
    started_at=NOW - timedelta(hours=1),
    last_progress_at=NOW - timedelta(seconds=5),
)
WELL = Signs(
    record=RUNNING,
    now=NOW,
    sums={MoveState.ADMITTED: MoveSums(2, 100)},
    sample=None,
    rates=(),
    flow=None,
    window_end=None,
    ends_at=None,
    orphaned=False,
    owed=4,
    patience_s=60,
)


def change(reason: RateReason, target: int, seconds: int) -> RateChange:
    at = NOW - timedelta(seconds=seconds)
    return RateChange(at, target, target, 50 * MB, reason, "2 followers left their ISR")


CUT = change(RateReason.STRAIN, 25 * MB, 300)
ENDED = replace(WELL, record=replace(RUNNING, state=PlanState.FAILED))


@pytest.mark.parametrize(
    ("signs", "kinds"),
    [
        (WELL, []),  # throttles of a plan that runs are not owed
        (ENDED, [AlertKind.THROTTLES_OWED]),
        (replace(ENDED, owed=0), []),
        (replace(WELL, orphaned=True), [AlertKind.NO_SIGN_OF_LIFE]),
        (replace(ENDED, orphaned=True, owed=0), []),
        (replace(WELL, sums={MoveState.FAILED: MoveSums(1, 0)}), [AlertKind.FAILED_MOVES]),
        (replace(WELL, now=NOW + timedelta(seconds=54)), []),
        (replace(WELL, now=NOW + timedelta(seconds=56)), [AlertKind.NOTHING_MOVES]),
        (replace(WELL, record=replace(RUNNING, held_at=NOW)), [AlertKind.HELD]),
        (
            replace(WELL, record=replace(RUNNING, held_at=NOW - timedelta(seconds=9))),
            [],  # it has moved since
        ),
        (replace(WELL, rates=(CUT,)), [AlertKind.STRAIN]),
        (replace(WELL, rates=(CUT, change(RateReason.RECOVERY, 45 * MB, 9))), [AlertKind.STRAIN]),
        (replace(WELL, rates=(CUT, change(RateReason.RECOVERY, 50 * MB, 9))), []),
        (replace(WELL, rates=(change(RateReason.LOWERED, 50 * MB, 9),)), []),
        (
            replace(WELL, flow=FlowSample(NOW, NOW, (), silent=(3, 5))),
            [AlertKind.SILENT_BROKERS],
        ),
        (replace(WELL, window_end=NOW, ends_at=NOW - timedelta(seconds=1)), []),
        (replace(WELL, window_end=NOW, ends_at=NOW + timedelta(hours=1)), [AlertKind.LATE]),
    ],
)
def test_alerts_come_and_go_with_their_cause(signs: Signs, kinds: list[AlertKind]) -> None:
    assert [alert.kind for alert in alerts_of(signs)] == kinds


def test_the_worst_comes_first_and_the_text_names_cause_and_remedy() -> None:
    late = replace(WELL, window_end=NOW, ends_at=NOW + timedelta(hours=1), rates=(CUT,))
    found = alerts_of(replace(late, orphaned=True))
    assert [alert.kind for alert in found] == [
        AlertKind.NO_SIGN_OF_LIFE,
        AlertKind.STRAIN,
        AlertKind.LATE,
    ]
    orphaned, strain, window = (alert.text for alert in found)
    assert "run-1 gives no sign of life" in orphaned
    assert "cancel it" in orphaned
    assert "2 followers left their ISR" in strain
    assert "25 MB/s of 50 MB/s" in strain
    assert "1 h after the window closes" in window
