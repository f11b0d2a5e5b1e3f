"""A real SMTP server on loopback that keeps what it is sent."""

from __future__ import annotations

import json
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from types import TracebackType
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from include.alerts.channels import SMTP as SMTP_NOTIFIER

TO, FROM = "kafka-team@example.org", "rehome@example.org"
CHANNEL = {"notifier": SMTP_NOTIFIER, "arguments": {"to": TO, "from_email": FROM}}
"""As it stands in ``alert_channels``."""


class Mailbox:
    """Where mails arrive."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        mails = self.mails

        class Keep:
            async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
                mail: Any = BytesParser(policy=default).parsebytes(bytes(envelope.content or b""))
                mails.append(mail)
                return "250 OK"

        self._server = Controller(Keep(), hostname="127.0.0.1", port=0)

    @property
    def connection(self) -> str:
        """As an Airflow connection of type smtp."""
        port = self._server.server.sockets[0].getsockname()[1]
        extra = {"disable_ssl": True, "disable_tls": True, "retry_limit": 1}
        return json.dumps({"conn_type": "smtp", "host": "127.0.0.1", "port": port, "extra": extra})

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
