"""Raises alerts: each is sent once, by whichever process finds it first, and kept in the ledger."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rehome import installation
from rehome.alerts.alert import Alert
from rehome.alerts.message import one_line
from rehome.domain.clock import utc_now
from rehome.domain.run.findings import Severity
from rehome.errors import RehomeError
from rehome.links import page_of_cluster, page_of_plan, report_of_plan
from rehome.run.ports import Item, extras

if TYPE_CHECKING:
    from rehome.alerts.kinds import AlertKind
    from rehome.ledger.base.alert_records import DueAlert, RaisedAlert
    from rehome.ledger.store import Ledger

log = logging.getLogger(__name__)


def raise_alerts(
    ledger: Ledger,
    alerts: Iterable[Alert],
    over: Collection[tuple[AlertKind, str]] = (),
    quiet_s: float = 0.0,
) -> None:
    """Send alerts that are due, and wait until they are sent: see :func:`claim`."""
    send(claim(ledger, alerts, over, quiet_s))


def claim(
    ledger: Ledger,
    alerts: Iterable[Alert],
    over: Collection[tuple[AlertKind, str]] = (),
    quiet_s: float = 0.0,
) -> list[DueAlert]:
    """What this process is to send now; the ledger knows of all that was found, and sends nothing.

    :param over: what is not found any more, by kind and subject.
    :param quiet_s: for how long it must not be found to be over.
    """
    return ledger.raise_alerts(_rows_of(alerts), over, quiet_s=quiet_s)


def journal(
    ledger: Ledger, alerts: Iterable[Alert], over: Collection[tuple[AlertKind, str]] = ()
) -> None:
    """Write down alerts that a later task sends: a slow channel delays nothing here."""
    ledger.raise_alerts(_rows_of(alerts), over, claimed=False)


def _rows_of(alerts: Iterable[Alert]) -> list[RaisedAlert]:
    return [with_links(alert).to_raise(_again_s(alert)) for alert in alerts]


def _again_s(alert: Alert) -> float:
    """After so long it is sent again, by the settings of the cluster that it is about."""
    return installation.settings(alert.connection).alert_again_s


def remind(ledger: Ledger) -> None:
    """Remind people of approvals that are missing, on every cluster. What a person
    answers meanwhile is not raised again.
    """
    from rehome.alerts.approval_reminders import unanswered_reminders

    reminders, over = unanswered_reminders(ledger, utc_now())
    raised = [each.to_raise(with_links(each.alert), _again_s(each.alert)) for each in reminders]
    send(ledger.raise_alerts(raised, over))


def send(due: Sequence[DueAlert]) -> None:
    """Send what was claimed, and record how that went. No channel's failure is raised.

    Where the ledger cannot record it, the next task that finds it sends it again, with the same id.
    """
    alerts = [replace(Alert.from_json(one.alert), message_id=one.message_id) for one in due]
    for alert in alerts:
        send_once(alert)
    items = [Item(a, one.channels) for a, one in zip(alerts, due, strict=True)]
    results = extras().channels.deliver_all(items) if items else []
    for one, alert, result in zip(due, alerts, results, strict=True):
        try:
            with installation.open_ledger() as ledger:
                ledger.record_sent(one, one_line(alert), result)
        except RehomeError as error:
            log.error("That the alert %s was sent could not be recorded: %s", one.kind, error)


def send_unrecorded(alert: Alert) -> None:
    """Send an alert where the ledger is away: whether it was sent before is not known."""
    alert = with_links(alert)
    send_once(alert)
    extras().channels.deliver_all([Item(alert)])


def send_left_over(ledger: Ledger) -> None:
    """Send what was to be sent before, and has not reached every channel."""
    send(ledger.claim_unsent_alerts())


def send_once(alert: Alert) -> None:
    """Into the log: that is always there."""
    levels = {Severity.ERROR: logging.ERROR, Severity.WARNING: logging.WARNING}
    log.log(levels.get(alert.severity, logging.INFO), "%s", one_line(alert))


def with_links(alert: Alert) -> Alert:
    """The alert, with the page that it is about; and the report as that page serves it."""
    if not alert.plan_id:
        return replace(alert, page=page_of_cluster(alert.cluster_id)) if alert.cluster_id else alert
    report = report_of_plan(alert.plan_id) if alert.report else ""
    return replace(alert, page=page_of_plan(alert.plan_id), report=report)
