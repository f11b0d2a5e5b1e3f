"""Alerts on their way: none is lost, each has one id, and no task waits for a channel for long."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rehome.ledger.base.alert_records import AlertRecord
from world.judge.violations import Kind, Violation
from world.rehome.channel import Sending
from world.running.outside import EPOCH

WAITED_S = 61.0
"""So long, at most, a process waits in all for the channels to take its alerts."""
AGAIN_S = 3600.0
"""What lasts is sent again after this time, at the soonest, and is another message then."""
SENT_IN_S = 60.0
"""So long before the end, at least, an alert was raised that has to be with its receiver."""
TRIED_AGAIN_S = 60.0 + 60.0 + 600.0
"""After a process has begun to send it: that fails after a minute, nothing tries it again in the
next one, and the sweep, which does, comes every ten minutes.
"""


@dataclass(frozen=True)
class AlertsSeen:
    """Of one installation that has a channel.

    :param got: ids of the messages that have come; ``raised``: alerts that last in the end, and are
        of a kind that is sent.
    :param waited: seconds, by process.
    """

    by: str
    got: Collection[str]
    sendings: Sequence[Sending]
    waited: Mapping[tuple[str, int], float]
    raised: Sequence[AlertRecord]


def wrong_in_alerts(seen: Sequence[AlertsSeen], ended_at: float) -> Iterator[Violation]:
    """What should not have been, of each."""
    for each in seen:
        for (process, _), seconds in each.waited.items():
            if seconds > WAITED_S:
                text = f"{process} has waited {seconds:.0f} s for its alerts to be sent"
                yield Violation(Kind.HELD_BY_CHANNEL, each.by, text, ended_at)
        for alert in each.raised:
            raised_at = (alert.first_raised_at - EPOCH).total_seconds()
            tried = (one.at for one in each.sendings if one.message_id == alert.message_id)
            due_at = max([raised_at, *(at + TRIED_AGAIN_S for at in tried)])
            if due_at < ended_at - SENT_IN_S and alert.message_id not in each.got:
                text = f"{alert.kind} of {alert.subject}, raised at {raised_at:.0f} s, has not come"
                yield Violation(Kind.ALERT_LOST, each.by, text, ended_at)
        for earlier, later in _pairs(each.sendings):
            text = f"{' '.join(later.of[:2])}: {earlier.message_id}, then {later.message_id}"
            yield Violation(Kind.ALERT_UNLIKE, each.by, text, later.at)


def _pairs(sendings: Sequence[Sending]) -> Iterator[tuple[Sending, Sending]]:
    """Sendings of one alert under two ids."""
    last: dict[tuple[object, str], Sending] = {}
    for one in sendings:
        earlier = last.setdefault((one.of, one.ledger), one)
        if earlier.message_id != one.message_id:
            if one.at - earlier.at < AGAIN_S:
                yield earlier, one
            last[one.of, one.ledger] = one
