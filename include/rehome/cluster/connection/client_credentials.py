"""OAuth's client credentials: a token for an id and a secret (RFC 6749, section 4.4)."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from rehome.cluster.connection.tokens import Token
from rehome.cluster.interface.errors import ClusterUnreachableError, Unreachable
from rehome.domain.clock import utc_now

_SHOWN = 300
"""Characters that an error shows of a token server's own words."""


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """How to ask a token server.

    :param url: of its token endpoint.
    :param scope: asked for; "" = the server's default.
    :param ca_location: file with the CAs that its certificate is checked by; ``ca_pem``: the same
        as text; None = the system's.
    """

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    ca_location: str | None = None
    ca_pem: str | None = field(default=None, repr=False)

    def fetch(self, timeout_s: float) -> Token:
        """Ask for a token.

        :raises ClusterUnreachableError: there is none, and why.
        """
        asked = {"grant_type": "client_credentials"}
        if self.scope:
            asked["scope"] = self.scope
        try:
            answer = httpx.post(
                self.url,
                data=asked,
                auth=httpx.BasicAuth(self.client_id, self.client_secret),
                headers={"accept": "application/json"},
                verify=self._tls_context(),
                timeout=timeout_s,
            )
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise self._no_token(f"cannot be reached: {error or type(error).__name__}") from error
        if answer.status_code != httpx.codes.OK:
            raise self._no_token(f"answers {answer.status_code}: {_reason(answer)}")
        try:
            content = answer.json()
            value = str(content["access_token"])
            lasts_s = float(content.get("expires_in") or 0)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._no_token("answers, but with no access_token") from error
        ends = [utc_now().timestamp() + lasts_s] if lasts_s else []
        ends += _exp(value)
        if not ends:
            raise self._no_token("does not say how long its token lasts (expires_in, exp)")
        return Token(value, min(ends))

    def _tls_context(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self.ca_location, cadata=self.ca_pem)
        except (OSError, ssl.SSLError) as error:
            raise self._no_token(
                f"cannot be asked: https.ca.location {self.ca_location or '(https.ca.pem)'} "
                f"cannot be used: {error}"
            ) from error

    def _no_token(self, what: str) -> ClusterUnreachableError:
        return ClusterUnreachableError(
            f"There is no token for {self.client_id}: the token server {self.url} {what}",
            cause=Unreachable.NO_CREDENTIALS,
            next_step="Compare sasl.oauthbearer.token.endpoint.url, sasl.oauthbearer.client.id, "
            "sasl.oauthbearer.client.secret and sasl.oauthbearer.scope of the connection with "
            "what the token server knows.",
        )


def _reason(answer: httpx.Response) -> str:
    """OAuth's error and its description, else the beginning of the text."""
    try:
        content = answer.json()
        words = [str(content[name]) for name in ("error", "error_description") if name in content]
    except (ValueError, TypeError):
        words = []
    return (", ".join(words) or answer.text.strip() or "nothing")[:_SHOWN]


def _exp(value: str) -> list[float]:
    """When a token says itself that it ends, as a JSON Web Token does; none = it does not."""
    parts = value.split(".")
    try:
        claims: Mapping[str, Any] = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
        return [float(claims["exp"])]
    except (IndexError, ValueError, KeyError, TypeError):
        return []
