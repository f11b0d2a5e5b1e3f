"""When a cancel that is refused is asked again, and when no more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rehome.domain.kafka import TopicPartition
from rehome.domain.run.ledger_view import RefusedCancel, refused_from_json, refused_to_json

T0 = datetime(2030, 1, 1, tzinfo=UTC)
FIRST = RefusedCancel(T0, T0, 1, "INVALID_REPLICA_ASSIGNMENT (39)")


def asks(seconds: int, poll_interval_s: float) -> list[int]:
    """Seconds at which it is asked, polled as often as that."""
    refused, found = FIRST, [0]
    for second in range(0, seconds, int(poll_interval_s)):
        now = T0 + timedelta(seconds=second)
        if refused.due(now, poll_interval_s):
            refused = refused.again(refused.answer, now)
            found.append(second)
    return found


def test_a_cancel_is_asked_again_less_and_less_often() -> None:
    assert asks(300, 5) == [0, 10, 30, 70, 130, 190, 250]
    assert len(asks(86_400, 5)) < 86_400 / 60 + 5


def test_it_is_given_up_after_as_long_as_a_stall_may_last_however_often_it_was_asked() -> None:
    again = FIRST.again("another", T0 + timedelta(seconds=599))
    assert (again.asks, again.answer, again.since) == (2, "another", T0)
    assert not again.given_up(T0 + timedelta(seconds=599), 600)
    assert again.given_up(T0 + timedelta(seconds=600), 600)


def test_the_ledger_keeps_them_as_json() -> None:
    refused = {TopicPartition("t", 1): FIRST, TopicPartition("t", 0): FIRST}
    assert refused_from_json(refused_to_json(refused)) == refused
    assert refused_from_json(None) == {}
