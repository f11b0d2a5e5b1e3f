"""Makes a realm with users of every role in a Keycloak, for the Airflow of this environment; their
passwords are in its home.

python tests/e2e/installed/spread/keycloak_users.py NAME:ROLE...
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ALL_ROLES = ("Viewer", "User", "Op", "Admin", "SuperAdmin")
LASTS_S = 3600
"""A token that Airflow's API has given is good for as long; Keycloak's default is 5 minutes."""


def main() -> None:
    """Make realm, client and users, then have Airflow's own command make its permissions."""
    from keycloak import KeycloakAdmin

    server, admin = _setting("server_url"), ("admin", os.environ["KEYCLOAK_ADMIN_PASSWORD"])
    file = Path(os.environ["AIRFLOW_HOME"]) / "passwords.json"
    passwords = json.loads(file.read_text())
    users = [each.split(":") for each in sys.argv[1:]]
    for name, _ in users:
        passwords.setdefault(name, f"{name}-{os.urandom(9).hex()}")
    file.write_text(json.dumps(passwords))
    keycloak = KeycloakAdmin(server_url=server, username=admin[0], password=admin[1])
    keycloak.create_realm(
        {
            "realm": _setting("realm"),
            "enabled": True,
            "sslRequired": "none",
            "accessTokenLifespan": LASTS_S,
            "roles": {"realm": [{"name": role} for role in ALL_ROLES]},
            "users": [_user(name, role, passwords[name]) for name, role in users],
            "clients": [_client()],
        }
    )
    command = ("-m", "airflow", "keycloak-auth-manager", "create-all", "--username", admin[0])
    subprocess.run([sys.executable, *command, "--password", admin[1]], check=True)


def _user(name: str, role: str, password: str) -> dict[str, Any]:
    return {
        "username": name,
        "enabled": True,
        "email": f"{name}@example.com",
        "emailVerified": True,
        "firstName": name,
        "lastName": name,
        "realmRoles": [role],
        "credentials": [{"type": "password", "value": password, "temporary": False}],
    }


def _client() -> dict[str, Any]:
    return {
        "clientId": _setting("client_id"),
        "secret": _setting("client_secret"),
        "publicClient": False,
        "serviceAccountsEnabled": True,
        "authorizationServicesEnabled": True,
        # Roles add rights to each other. Keycloak's default asks each permission that names a
        # resource, and refuses a user who lacks one role.
        "authorizationSettings": {"decisionStrategy": "AFFIRMATIVE"},
        "directAccessGrantsEnabled": True,
        "redirectUris": ["*"],
    }


def _setting(name: str) -> str:
    return os.environ[f"AIRFLOW__KEYCLOAK_AUTH_MANAGER__{name.upper()}"]


if __name__ == "__main__":
    main()
