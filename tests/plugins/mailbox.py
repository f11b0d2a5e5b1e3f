"""A real SMTP server on loopback that keeps what it is sent."""

from __future__ import annotations

import json
from dataclasses import dataclass
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from types import TracebackType
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from local.process.ports import free_ports
from rehome.alerts.channels import SMTP as SMTP_NOTIFIER
from tests.e2e.webhook import Webhook

TO, FROM = "kafka-team@example.org", "rehome@example.org"
CHANNEL = {"notifier": SMTP_NOTIFIER, "arguments": {"to": TO, "from_email": FROM}}
"""An entry of ``alert_channels``."""


class Mailbox:
    """Where mails arrive."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        mails = self.mails

        class Keep:
            async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
                content = envelope.content
                assert isinstance(content, bytes)
                mail: Any = BytesParser(policy=default).parsebytes(content)
                mails.append(mail)
                return "250 OK"

        (self._port,) = free_ports(1)
        self._server = Controller(Keep(), hostname="127.0.0.1", port=self._port)

    @property
    def connection(self) -> str:
        """As an Airflow connection of type smtp."""
        extra = {"disable_ssl": True, "disable_tls": True, "retry_limit": 1}
        return json.dumps(
            {"conn_type": "smtp", "host": "127.0.0.1", "port": self._port, "extra": extra}
        )

    def subjects(self) -> list[str]:
        """Of all mails, as they came."""
        return [str(mail["subject"]) for mail in self.mails]

    def __enter__(self) -> Mailbox:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.stop()


def text_of(mail: EmailMessage) -> str:
    """The HTML of a mail."""
    body = mail.get_body(("html", "plain"))
    assert body is not None
    return str(body.get_content())


def alerts_to(patch: pytest.MonkeyPatch, webhook: Webhook, mailbox: Mailbox) -> None:
    """Have Rehome's alerts sent to both."""
    hook = {"conn_type": "http", "host": webhook.url}
    patch.setenv("AIRFLOW_CONN_REHOME_WEBHOOK", json.dumps(hook))
    patch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", mailbox.connection)
    patch.setenv("REHOME_ALERT_CHANNELS", json.dumps([CHANNEL]))


@dataclass(frozen=True)
class Reported:
    """Who gets every alert."""

    webhook: Webhook
    mailbox: Mailbox

    def kinds(self) -> list[str]:
        """Of all alerts; each has reached both, in the same order of each kind."""
        alerts = list(self.webhook.reported)
        assert sorted(self.mailbox.subjects()) == sorted(reported["title"] for reported in alerts)
        for reported in alerts:
            assert reported["text"], reported
            assert reported["next_step"], reported
            assert reported["page"] or not (reported["plan_id"] or reported["cluster_id"]), reported
            assert reported["runbook"] == f"docs/alerts/{reported['kind']}.md"
        return [reported["kind"] for reported in alerts]

    def only(self, kind: str) -> dict[str, Any]:
        """The one alert of this kind."""
        (found,) = (reported for reported in self.webhook.reported if reported["kind"] == kind)
        return found
