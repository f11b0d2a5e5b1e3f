"""Tokens of a login, fetched once for both clients and renewed before they end; and where they come
from: a provider's token endpoint, or AWS.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from rehome.cluster.interface.errors import ClusterUnreachableError, Unreachable
from rehome.domain.clock import Clock, utc_now

log = logging.getLogger(__name__)

FETCH_TIMEOUT_S = 5.0
RENEWED_AFTER = 0.8
"""Part of a token's life after which it is renewed: brokers ask for a new one when 85 to 95 % of it
are over (KIP-368)."""
PAUSE_S = 10.0
"""Between two attempts to renew a token that is good for a while yet."""

MSK_IAM = "AWS_MSK_IAM"
_MSK_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$")

_GIVE_CREDENTIALS = "Give the machine a role, or name credentials as AWS's own tools read them."

_SHOWN = 300
"""Characters that an error shows of a token server's own words."""


@dataclass(frozen=True, slots=True)
class Token:
    """What a broker is shown.

    :param ends_at: in seconds since 1970.
    """

    value: str = field(repr=False)
    ends_at: float


class Tokens:
    """The current token of one login. Thread-safe.

    :param fetch: gets a new one within the seconds that it is given.
    :param principal: as whom, for people.
    :param extensions: SASL extensions that are sent with each (KIP-342).
    """

    def __init__(
        self,
        fetch: Callable[[float], Token],
        principal: str,
        extensions: Mapping[str, str] | None = None,
        now: Clock = utc_now,
    ) -> None:
        self._now = now
        self.principal = principal
        self.extensions = dict(extensions or {})
        self._fetch = fetch
        self._token: Token | None = None
        self._renew_at = 0.0
        self._lock = threading.Lock()

    def current(self, timeout_s: float = FETCH_TIMEOUT_S) -> Token:
        """A token that is good now; a new one where the last has lived most of its life.

        :param timeout_s: of a request for a new one.
        :raises ClusterUnreachableError: there is none to be had, and the last has ended.
        """
        with self._lock:
            now = self._now().timestamp()
            if self._token is not None and now < self._renew_at:
                return self._token
            try:
                token = self._fetch(timeout_s)
            except ClusterUnreachableError as error:
                if self._token is None or now >= self._token.ends_at:
                    raise
                log.warning("The last token is used until it ends: %s", error)
                self._renew_at = now + PAUSE_S
                return self._token
            self._token = token
            self._renew_at = now + (token.ends_at - now) * RENEWED_AFTER
            return token


def region_of(host: str) -> str | None:
    """The region that a broker's host name has, where it is one of Amazon's."""
    match = _MSK_HOST.search(host.lower())
    return match[1] if match else None


@dataclass(frozen=True, slots=True)
class MskIam:
    """Amazon MSK's access control by IAM: the token is a request that is signed, and never sent.

    It is signed with the credentials that this machine has: its role, environment, or shared files.

    :param role: ARN of a role to take on first; "" = none.
    """

    region: str
    role: str = ""

    def fetch(self, timeout_s: float) -> Token:
        """Sign a token; AWS lets it last for 15 minutes.

        :param timeout_s: is not used: the signer has limits of its own, and sends nothing but for
            a role.
        :raises ClusterUnreachableError: the signer or credentials are missing.
        """
        try:
            from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
            from botocore.exceptions import BotoCoreError, ClientError
            from botocore.session import Session
        except ImportError as error:
            raise _no_aws_token(
                "the package aws-msk-iam-sasl-signer-python is missing",
                "Install rehome[msk] on every machine of Airflow.",
            ) from error
        try:
            if Session().get_credentials() is None:  # the signer would say nothing of use
                raise _no_aws_token("this machine has no AWS credentials", _GIVE_CREDENTIALS)
            if self.role:
                value, ends_ms = MSKAuthTokenProvider.generate_auth_token_from_role_arn(
                    self.region, self.role, "rehome"
                )
            else:
                value, ends_ms = MSKAuthTokenProvider.generate_auth_token(self.region)
        except (BotoCoreError, ClientError, ValueError) as error:
            raise _no_aws_token(str(error), _GIVE_CREDENTIALS) from error
        return Token(str(value), ends_ms / 1000)


def _no_aws_token(what: str, next_step: str) -> ClusterUnreachableError:
    return ClusterUnreachableError(
        f"There is no token for Amazon MSK: {what}",
        cause=Unreachable.NO_CREDENTIALS,
        next_step=next_step,
    )


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """How to ask a token server: OAuth's client credentials (RFC 6749, section 4.4).

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
        form = {"grant_type": "client_credentials"}
        if self.scope:
            form["scope"] = self.scope
        try:
            answer = httpx.post(
                self.url,
                data=form,
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
