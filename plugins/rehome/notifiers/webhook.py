"""A notifier that posts JSON, signed as the specification Standard Webhooks has it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx
from airflow.sdk import BaseHook, BaseNotifier
from airflow.sdk.log import mask_secret
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from rehome import installation

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

WEBHOOK_CONNECTION = "rehome_webhook"
TIMEOUT_S = 10.0
"""Of one attempt."""
GIVE_UP_S = 20.0
"""No attempt begins later than this after the first one."""
SECRET_PREFIX = "whsec_"
TOO_MANY = 429


class WebhookError(Exception):
    """The receiver has not taken it; says why, and never with what."""


class WebhookNotifier(BaseNotifier):
    """Posts a body of JSON to the URL that is a connection's host.

    The connection's password, where there is one, is sent as bearer token. Its extra's
    ``signing_secret`` signs: the headers ``webhook-id``, ``webhook-timestamp`` and
    ``webhook-signature`` hold what https://www.standardwebhooks.com asks for, so that a receiver
    can check who has sent it, when, and whether it came before. Timeouts, connections that fail and
    answers 429 and 5xx are tried again, with the same id, for about half a minute at most.
    To http:// nothing is sent where there is a secret, unless ``webhook_allow_http`` is set.

    :param body: JSON.
    :param webhook_conn_id: the connection.
    :param message_id: the same for each attempt to send this message, also of other processes; "" =
        it has none.
    """

    template_fields = ("body", "message_id")

    def __init__(
        self, body: str, webhook_conn_id: str = WEBHOOK_CONNECTION, message_id: str = ""
    ) -> None:
        super().__init__()
        self.body = body
        self.message_id = message_id
        self.webhook_conn_id = webhook_conn_id

    def notify(self, context: Context) -> None:
        """Post it.

        :raises WebhookError: it was not taken.
        """
        connection = BaseHook.get_connection(self.webhook_conn_id)
        url = str(connection.host or "")
        if not url.startswith(("http://", "https://")):
            raise WebhookError(
                f"Nothing is sent to the webhook of connection {self.webhook_conn_id}: its host "
                "is no URL. Write https://… there"
            )
        if why := why_unsafe(connection):
            raise WebhookError(why)
        mask_secret(url)  # httpx logs it, and a URL may be a secret itself
        body = self.body.encode()
        headers = _headers(connection, body, self.message_id or uuid.uuid4().hex)
        retrying = Retrying(
            retry=retry_if_exception_type(_PassingError),
            stop=stop_after_delay(GIVE_UP_S),
            wait=wait_random_exponential(multiplier=0.5, max=5),
            reraise=True,
        )
        try:
            with httpx.Client(timeout=TIMEOUT_S) as client:
                retrying(_post, client, url, body, headers)
        except _PassingError as error:
            raise WebhookError(f"{error}, again and again for {GIVE_UP_S:g} s") from None


def why_unsafe(connection: Any) -> str:
    """Why nothing is sent by a connection with a secret: others on the way could read it; "" = it
    may be sent.
    """
    secret = connection.password or connection.extra_dejson.get("signing_secret")
    open_url = str(connection.host or "").startswith("http://")
    if not secret or not open_url or installation.settings().webhook_allow_http:
        return ""
    return (
        f"Nothing is sent: connection {connection.conn_id} has a secret, and its URL is http://, "
        "where others on the way can read what is sent. Write https://…, or set webhook_allow_http"
    )


class _PassingError(Exception):
    """An error after which another attempt may succeed."""


def _post(client: httpx.Client, url: str, body: bytes, headers: dict[str, str]) -> None:
    try:
        answer = client.post(url, content=body, headers=headers)
    except httpx.TimeoutException:
        raise _PassingError(f"The server gave no answer within {TIMEOUT_S:g} s") from None
    except httpx.TransportError as error:
        raise _PassingError(f"The server cannot be reached ({type(error).__name__})") from None
    except (httpx.InvalidURL, UnicodeError):
        raise WebhookError("The connection's host is no URL") from None
    if answer.status_code == TOO_MANY or answer.is_server_error:
        raise _PassingError(f"The server answers {answer.status_code}")
    if not answer.is_success:
        raise WebhookError(f"The server answers {answer.status_code}")


def _headers(connection: Any, body: bytes, own_id: str) -> dict[str, str]:
    message_id, at = f"msg_{own_id}", str(int(datetime.now(UTC).timestamp()))
    headers = {"content-type": "application/json", "webhook-id": message_id}
    headers["webhook-timestamp"] = at
    if connection.password:
        headers["authorization"] = f"Bearer {_token(connection)}"
    secret = connection.extra_dejson.get("signing_secret")
    if secret:
        mask_secret(secret)
        signed = b".".join((message_id.encode(), at.encode(), body))
        digest = hmac.new(_key(connection, str(secret)), signed, hashlib.sha256).digest()
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers


def _token(connection: Any) -> str:
    """The bearer token, which is a part of a line of the request."""
    token = str(connection.password)
    if not token.isascii() or not token.isprintable():
        raise WebhookError(
            f"Nothing is sent: the password of connection {connection.conn_id} cannot be sent "
            "as a token. It has a letter that is not ASCII, or a control character such as a line "
            "break"
        )
    return token


def _key(connection: Any, secret: str) -> bytes:
    """Of ``whsec_`` and base64, as the specification writes secrets; or of any other text."""
    if not secret.startswith(SECRET_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    except ValueError:
        raise WebhookError(
            f"Nothing is sent: the signing_secret of connection {connection.conn_id} begins with "
            f"{SECRET_PREFIX}, and what follows is no base64"
        ) from None
