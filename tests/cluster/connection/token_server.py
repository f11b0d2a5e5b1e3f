"""An OAuth token server of the tests' own: client credentials in, signed JSON Web Tokens out."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

AUDIENCE = "kafka"


@dataclass
class TokenServer:
    """What it knows and what it was asked.

    :param clients: secret by client id.
    :param lasts_s: life of a token.
    :param open: while false, it answers 503.
    """

    url: str = ""
    clients: dict[str, str] = field(default_factory=dict)
    lasts_s: int = 300
    open: bool = True
    audience: str = AUDIENCE
    asked: list[dict[str, list[str]]] = field(default_factory=list)
    _key: rsa.RSAPrivateKey = field(
        default_factory=lambda: rsa.generate_private_key(65537, 2048), repr=False
    )

    @property
    def token_url(self) -> str:
        return f"{self.url}/token"

    @property
    def jwks_url(self) -> str:
        return f"{self.url}/jwks"

    def jwks(self) -> dict[str, Any]:
        public = json.loads(RSAAlgorithm.to_jwk(self._key.public_key()))
        return {"keys": [{**public, "kid": "tests", "use": "sig", "alg": "RS256"}]}

    def answer(self, authorization: str, form: Mapping[str, list[str]]) -> tuple[int, Any]:
        self.asked.append(dict(form))
        if not self.open:
            return 503, {"error": "temporarily_unavailable"}
        name, _, secret = (
            base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        )
        if self.clients.get(name) != secret or form.get("grant_type") != ["client_credentials"]:
            return 401, {"error": "invalid_client", "error_description": f"{name} is unknown"}
        now = int(time.time())
        claims = {
            "sub": name,
            "iss": self.url,
            "aud": self.audience,
            "iat": now,
            "exp": now + self.lasts_s,
            "scope": (form.get("scope") or ["kafka"])[0],
        }
        token = jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": "tests"})
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": self.lasts_s}


@contextmanager
def token_server(clients: Mapping[str, str]) -> Iterator[TokenServer]:
    """One that serves on the loopback interface."""
    state = TokenServer(clients=dict(clients))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, state.jwks())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            self._send(*state.answer(self.headers.get("authorization", ""), parse_qs(body)))

        def _send(self, status: int, content: Any) -> None:
            text = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
