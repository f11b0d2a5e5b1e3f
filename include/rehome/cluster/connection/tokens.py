"""Tokens of a login, fetched once for both clients and renewed before they end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rehome.cluster.interface.errors import ClusterUnreachableError
from rehome.domain.clock import Clock, utc_now

log = logging.getLogger(__name__)

FETCH_TIMEOUT_S = 5.0
RENEWED_AFTER = 0.8
"""Part of a token's life after which it is renewed: brokers ask for a new one when 85 to 95 % of it
are over (KIP-368)."""
PAUSE_S = 10.0
"""Between two attempts to renew a token that is good for a while yet."""


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
