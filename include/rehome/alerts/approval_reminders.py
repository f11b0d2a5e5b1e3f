"""Reminders of approvals that are still missing. Pure, or reads the ledger."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rehome.alerts import alert_text
from rehome.alerts.alert import Alert
from rehome.alerts.kinds import AlertKind
from rehome.ledger.base.alert_records import AlertRecord, RaisedAlert
from rehome.ledger.store import Ledger

LAST_CALL = timedelta(hours=1)
"""So long before its deadline people are reminded once more that a plan is not approved."""
_LAST = "#last"
"""What the last call's occurrence ends with: it is another one, and there is one of it."""


@dataclass(frozen=True, slots=True)
class Reminder:
    """An alert to raise again, unless it is over by then.

    :param of: the occurrence that has to last still.
    """

    alert: Alert
    of: str

    def to_raise(self, alert: Alert, alert_again_s: float) -> RaisedAlert:
        """As the ledger takes it.

        :param alert: the reminder's, with its links.
        """
        return replace(alert.to_raise(alert_again_s), reminds_of=self.of)


def unanswered_reminders(
    ledger: Ledger, now: datetime
) -> tuple[list[Reminder], list[tuple[AlertKind, str]]]:
    """Approvals that people wait for, of whatever cluster; and those that can no longer be given:
    their deadline has passed, or their plan has ended.
    """
    reminders, over = [], []
    for record in ledger.open_alerts(AlertKind.APPROVAL_WAITING):
        ended = record.plan_id is not None and ledger.plan(record.plan_id).state.ended
        reminder = None if ended else reminder_of(record, now)
        if reminder is None:
            over.append((record.kind, record.subject))
        else:
            reminders.append(reminder)
    return reminders, over


def reminder_of(record: AlertRecord, now: datetime) -> Reminder | None:
    """The reminder of an approval that is still missing; None = its deadline has passed.

    The ledger sends it at its interval. In the last hour it is another occurrence, once.
    """
    alert = Alert.from_json(record.alert)
    deadline = alert.facts.get("deadline")
    if not deadline:
        return Reminder(alert, record.occurrence)
    left = datetime.fromisoformat(deadline) - now
    if left <= timedelta():
        return None
    if left <= LAST_CALL and not record.occurrence.endswith(_LAST):
        text = alert_text.last_call(alert.text)
        alert = replace(alert, text=text, occurrence=record.occurrence + _LAST)
    return Reminder(alert, record.occurrence)
