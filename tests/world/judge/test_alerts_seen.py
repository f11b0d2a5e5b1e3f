"""What the judge must find of alerts, in what no Rehome has sent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from rehome.alerts.kinds import AlertKind
from rehome.ledger.base.alert_records import AlertRecord
from world.judge.alerts_seen import AlertsSeen, wrong_in_alerts
from world.judge.violations import Kind
from world.rehome.channel import Sending
from world.running.outside import EPOCH

ALERT = AlertRecord(
    *(AlertKind.FAILED, "run-1", "1", None, "model"),
    *(EPOCH + timedelta(seconds=100),) * 2,
    *(None,) * 4,
    1,
    {},
    "id-1",
)
OF = ("failed", "run-1", "1", "")
SENT = Sending(100.0, OF, "id-1", "ledger")
RIGHT = AlertsSeen("A", {"id-1"}, [SENT], {("A:sweep-1", 1): 60.2}, [ALERT])


def found(seen: AlertsSeen) -> set[Kind]:
    return {each.kind for each in wrong_in_alerts([seen], 1000.0)}


def test_what_has_come_once_is_right() -> None:
    assert found(RIGHT) == set()


def test_a_process_that_waits_longer_than_a_minute_is_held() -> None:
    assert found(replace(RIGHT, waited={("A:sweep-1", 1): 62.0})) == {Kind.HELD_BY_CHANNEL}


@pytest.mark.parametrize(("raised_at", "lost"), [(100, True), (939, True), (941, False)])
def test_what_lasts_has_to_come_but_for_what_was_raised_at_the_very_end(
    raised_at: int, lost: bool
) -> None:
    raised = replace(ALERT, first_raised_at=EPOCH + timedelta(seconds=raised_at))
    assert found(replace(RIGHT, got=(), raised=[raised])) == ({Kind.ALERT_LOST} if lost else set())


@pytest.mark.parametrize(("tried_at", "lost"), [(219, True), (221, False)])
def test_what_was_tried_and_not_taken_comes_with_the_next_sweep_but_one(
    tried_at: int, lost: bool
) -> None:
    """The next one may be too early to try it again."""
    seen = replace(RIGHT, got=(), sendings=[replace(SENT, at=tried_at)])
    assert found(seen) == ({Kind.ALERT_LOST} if lost else set())


@pytest.mark.parametrize(
    ("changes", "unlike"),
    [
        ({"message_id": "id-1"}, False),
        ({"message_id": "id-2"}, True),
        ({"message_id": "id-2", "at": 3700.0}, False),  # it lasts, and is sent again
        ({"message_id": "id-2", "of": (*OF[:2], "2", "")}, False),
        ({"message_id": "id-2", "ledger": "restored"}, False),
    ],
)
def test_one_alert_has_one_id(changes: dict[str, object], unlike: bool) -> None:
    later = replace(SENT, **{"at": 200.0, **changes})  # type: ignore[arg-type]
    assert found(replace(RIGHT, sendings=[SENT, later])) == (
        {Kind.ALERT_UNLIKE} if unlike else set()
    )
