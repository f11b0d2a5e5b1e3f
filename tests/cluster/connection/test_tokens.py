"""When a token is asked for, and when the last one is used."""

from __future__ import annotations

import pytest

from rehome.cluster.connection.tokens import PAUSE_S, RENEWED_AFTER, Token, Tokens
from rehome.cluster.interface.errors import ClusterUnreachableError, Unreachable
from tests.ledger.set_clock import SetClock

LASTS_S = 1000.0


class Given:
    """Tokens that last 1,000 s; ``away`` refuses them."""

    def __init__(self) -> None:
        self.clock = SetClock()
        self.asked = 0
        self.away = False
        self.tokens = Tokens(self.fetch, "the OAuth client tests", now=self.clock)

    def fetch(self, timeout_s: float) -> Token:
        self.asked += 1
        if self.away:
            raise ClusterUnreachableError("away", cause=Unreachable.NO_CREDENTIALS)
        return Token(f"token {self.asked}", self.clock().timestamp() + LASTS_S)

    def current(self) -> str:
        return self.tokens.current().value


def test_a_token_is_used_for_most_of_its_life_and_then_renewed() -> None:
    given = Given()
    assert [given.current(), given.current()] == ["token 1", "token 1"]
    given.clock.pass_s(LASTS_S * RENEWED_AFTER - 5)
    assert given.current() == "token 1"
    given.clock.pass_s(10)
    assert given.current() == "token 2"


def test_the_last_token_is_used_to_its_end_while_the_server_is_away() -> None:
    given = Given()
    given.current()
    given.away = True
    given.clock.pass_s(LASTS_S * RENEWED_AFTER + 5)
    assert [given.current(), given.current()] == ["token 1", "token 1"]
    assert given.asked == 2, "it is not asked at every call"
    given.clock.pass_s(PAUSE_S + 1)
    given.current()
    assert given.asked == 3
    given.clock.pass_s(LASTS_S)
    with pytest.raises(ClusterUnreachableError, match="away"):
        given.current()
    given.away = False
    assert given.current() == "token 5"


def test_a_token_shows_in_no_representation() -> None:
    assert "secret" not in repr(Token("secret", 1.0))
