"""A Keycloak of the tests' own, on the loopback interface, which keeps everything in memory."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from local.airflow.standalone import ROOT
from local.process.guard import Guard
from local.process.ports import free_ports
from local.process.waiting import wait_until

START_S = 600.0
"""On a busy machine; half a minute on a quiet one."""
REALM = "rehome-tests"


@dataclass(frozen=True)
class Keycloak:
    """A server that runs.

    :param password: of its user *admin*.
    """

    url: str
    version: str
    password: str

    def airflow_env(self) -> dict[str, str]:
        """What makes an Airflow ask it; a realm of that name is still to be made."""
        section = "AIRFLOW__KEYCLOAK_AUTH_MANAGER__"
        return {
            f"{section}SERVER_URL": self.url,
            f"{section}REALM": REALM,
            f"{section}CLIENT_ID": "airflow",
            f"{section}CLIENT_SECRET": secrets.token_urlsafe(12),
            "KEYCLOAK_ADMIN_PASSWORD": self.password,
        }

    def tokens_last(self, seconds: int) -> None:
        """Let those that it gives from now on end after so long."""
        asked = {"grant_type": "password", "client_id": "admin-cli", "username": "admin"}
        where = f"{self.url}/realms/master/protocol/openid-connect/token"
        answer = httpx.post(where, data={**asked, "password": self.password}, timeout=60)
        headers = {"Authorization": f"Bearer {answer.raise_for_status().json()['access_token']}"}
        realm, body = f"{self.url}/admin/realms/{REALM}", {"accessTokenLifespan": seconds}
        httpx.put(realm, json=body, headers=headers, timeout=60).raise_for_status()


@contextmanager
def keycloak_server(directory: Path) -> Iterator[Keycloak]:
    """Start the one that ``bin/setup keycloak`` has fetched; without it the test is skipped."""
    found = sorted((ROOT / ".cache").glob("keycloak-*/.stamp"))
    if not found:
        pytest.skip("Keycloak is missing: bin/setup keycloak fetches it")
    home, (port,) = found[-1].parent, free_ports(1)
    password = secrets.token_urlsafe(12)
    words = ("--http-enabled=true", "--http-host=127.0.0.1", "--hostname-strict=false")
    command = [str(home / "bin" / "kc.sh"), "start", "--optimized", "--cache=local", *words]
    env = {
        **os.environ,
        "KC_BOOTSTRAP_ADMIN_USERNAME": "admin",
        "KC_BOOTSTRAP_ADMIN_PASSWORD": password,
        "JAVA_OPTS_KC_HEAP": "-Xms64m -Xmx512m",
    }
    guard = Guard()
    try:
        url = f"http://127.0.0.1:{port}"
        guard.spawn([*command, f"--http-port={port}"], directory / "keycloak.log", env)
        wait_until(lambda: _answers(url), "Keycloak to answer", START_S, 1.0)
        yield Keycloak(url, home.name.removeprefix("keycloak-"), password)
    finally:
        guard.close()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/realms/master", timeout=30).is_success
    except httpx.TransportError:
        return False
