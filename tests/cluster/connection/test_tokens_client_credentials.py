"""What a token server may answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import jwt
import pytest

from rehome.cluster.connection.tokens import ClientCredentials
from rehome.cluster.interface.errors import ClusterUnreachableError, Unreachable
from rehome.domain.clock import utc_now
from tests.cluster.connection.token_server import token_server


@contextmanager
def answering(status: int, content: Any) -> Iterator[ClientCredentials]:
    """A server that answers one request so."""
    text = content if isinstance(content, str) else json.dumps(content)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/token"
        yield ClientCredentials(url, "robot", "client-secret")
        thread.join(60)


def test_a_client_is_given_a_token_for_its_id_and_secret() -> None:
    with token_server({"robot": "s3cret:with colon"}) as server:
        asked = ClientCredentials(server.token_url, "robot", "s3cret:with colon", scope="a b")
        token = asked.fetch(60)
        claims = jwt.decode(token.value, options={"verify_signature": False})
        assert (claims["sub"], claims["scope"]) == ("robot", "a b")
        assert token.ends_at == claims["exp"]


def left_s(content: Any) -> float:
    with answering(200, content) as asked:
        return asked.fetch(60).ends_at - utc_now().timestamp()


def test_a_token_ends_as_the_server_or_it_itself_says_whichever_is_first() -> None:
    assert 80 < left_s({"access_token": "opaque", "expires_in": 100}) <= 100
    ends = int(utc_now().timestamp()) + 500
    web_token = jwt.encode({"exp": ends}, "k" * 32, algorithm="HS256")
    assert 400 < left_s({"access_token": web_token}) <= 500
    assert 80 < left_s({"access_token": web_token, "expires_in": "100"}) <= 100
    assert 400 < left_s({"access_token": web_token, "expires_in": 9000}) <= 500


@pytest.mark.parametrize(
    ("status", "content", "said"),
    [
        (401, {"error": "invalid_client", "error_description": "no such"}, "invalid_client, no"),
        (500, "<html>Oh no", "answers 500: <html>Oh no"),
        (500, [], "answers 500"),
        (302, "", "answers 302: nothing"),
        (200, "<html>", "with no access_token"),
        (200, {"token": "x"}, "with no access_token"),
        (200, {"access_token": "opaque"}, "does not say how long"),
        (200, {"access_token": "a.b.c"}, "does not say how long"),
    ],
)
def test_why_there_is_no_token_is_named(status: int, content: Any, said: str) -> None:
    with answering(status, content) as asked, pytest.raises(ClusterUnreachableError) as raised:
        asked.fetch(60)
    assert raised.value.cause is Unreachable.NO_CREDENTIALS
    assert said in str(raised.value)
    assert "client-secret" not in str(raised.value) + repr(asked)


@pytest.mark.parametrize(
    ("url", "ca", "said"),
    [
        ("http://127.0.0.1:1/token", None, "cannot be reached"),
        ("https://[::1/token", None, "cannot be reached"),
        ("https://127.0.0.1:1/token", "/no/such/ca.pem", "https.ca.location /no/such/ca.pem"),
    ],
)
def test_a_server_that_cannot_be_asked_is_named(url: str, ca: str | None, said: str) -> None:
    asked = ClientCredentials(url, "robot", "client-secret", ca_location=ca)
    with pytest.raises(ClusterUnreachableError) as raised:
        asked.fetch(60)
    assert raised.value.cause is Unreachable.NO_CREDENTIALS
    assert said in str(raised.value)
