"""An alert as people get it: one line, plain text, HTML; and as programs get it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any
from urllib.parse import urlsplit

from rehome.alerts.alert import Alert
from rehome.alerts.catalog import CATALOG
from rehome.alerts.kinds import AlertKind

TITLES = {entry.kind: entry.title for entry in CATALOG}
"""What a subject line says of each kind, after its plan or cluster."""


def about(alert: Alert) -> str:
    """What it is about: ``Plan p1``, ``Cluster c1``, or the run."""
    if alert.plan_id:
        return f"Plan {alert.plan_id}"
    if alert.cluster_id:
        return f"Cluster {alert.cluster_id}"
    return alert.subject if alert.kind is AlertKind.SEVERAL else f"Run {alert.subject}"


def subject_line(alert: Alert) -> str:
    """For the subject of a mail: one line."""
    return _line(f"[Rehome] {about(alert)}: {TITLES[alert.kind]}")


def one_line(alert: Alert) -> str:
    """For logs and events: what it is, and the next step."""
    return _line(f"{about(alert)}: {alert.text} {alert.next_step}")


def text_body(alert: Alert) -> str:
    """For mails and chats that show plain text."""
    lines = [f"{name}: {value}" for name, value in _lines(alert)]
    return "\n".join([subject_line(alert), "", alert.text, "", *lines])


def html_body(alert: Alert) -> str:
    """For mails: no style sheet, no picture, nothing that is fetched."""
    rows = "".join(
        f'<tr><td style="padding-right:1em;vertical-align:top">{escape(name)}</td>'
        f"<td>{_as_link(value)}</td></tr>"
        for name, value in _lines(alert)
    )
    return (
        f"<p><strong>{escape(about(alert))}: {escape(TITLES[alert.kind])}</strong></p>"
        f"<p>{escape(alert.text).replace(chr(10), '<br>')}</p><table>{rows}</table>"
    )


def payload(alert: Alert) -> dict[str, Any]:
    """For programs: flat, but for what is a list or table itself."""
    return {
        **alert.facts,
        "message_id": alert.message_id or None,
        "kind": alert.kind.value,
        "severity": alert.severity.value,
        "title": subject_line(alert),
        "text": one_line(alert),
        "subject": alert.subject,
        "plan_id": alert.plan_id or None,
        "cluster_id": alert.cluster_id or None,
        "connection": alert.connection or None,
        "state": alert.state or None,
        "next_step": alert.next_step,
        "page": alert.page or None,
        "report": alert.report or None,
        "runbook": alert.runbook,
    }


def json_body(alert: Alert) -> str:
    """The payload as JSON."""
    return json.dumps(payload(alert), ensure_ascii=False, default=str)


def _lines(alert: Alert) -> Iterator[tuple[str, str]]:
    state = f" ({alert.state})" if alert.state else ""
    through = f", through connection {alert.connection}" if alert.connection else ""
    lines = (
        ("Next", alert.next_step),
        ("Plan", f"{alert.plan_id}{state}" if alert.plan_id else ""),
        ("Cluster", f"{alert.cluster_id or 'not known'}{through}"),
        ("Page", alert.page),
        ("Report", alert.report),
        ("What it means", alert.runbook),
    )
    yield from ((name, value) for name, value in lines if value)


def _line(text: str) -> str:
    return " ".join(text.split())


def _as_link(value: str) -> str:
    if urlsplit(value).scheme in ("http", "https"):
        return f'<a href="{escape(value)}">{escape(value)}</a>'
    return escape(value)
