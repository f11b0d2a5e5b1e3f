"""Listeners with TLS, SASL and ACLs for a cluster on this machine.

The brokers' own principal is ``User:broker``; it and ``User:admin`` are super users. Broker and
controller speak PLAIN to each other: the SCRAM credentials are in the metadata log that a broker
can only read once it is authenticated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from local.kafka.certificates import CertificateAuthority

ADMIN = "admin"
BROKER = "broker"
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
# What needs no escaping in JAAS, properties files and StorageTool's --add-scram alike.
_SAFE = re.compile(r"[A-Za-z0-9_.-]+")


def _some_users() -> dict[str, str]:
    names = (ADMIN, "reassigner", "planner", "nobody")
    return {name: f"{name}-secret" for name in names}


@dataclass(frozen=True, slots=True)
class Security:
    """How the clients, the brokers and the controller of a cluster know each other.

    :param protocol: of every listener. With SSL each user has a client certificate instead of a
        password, and its common name is the principal's name.
    :param mechanism: of the brokers' listener; only with SASL.
    :param users: password of each user; ``admin`` must be one.
    :param authorizer: whether Kafka's StandardAuthorizer decides who may do what.
    :raises ValueError: without an admin, or on characters that would need escaping.
    """

    protocol: Literal["SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "SASL_SSL"
    mechanism: Literal["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"] = "SCRAM-SHA-512"
    users: Mapping[str, str] = field(default_factory=_some_users, repr=False)
    authorizer: bool = True

    def __post_init__(self) -> None:
        if ADMIN not in self.users or BROKER in self.users:
            raise ValueError(f"users must hold {ADMIN!r} and must not hold {BROKER!r}")
        for text in (*self.users, *self.users.values()):
            if not _SAFE.fullmatch(text):
                raise ValueError("user names and passwords: letters, digits, '_', '.', '-' only")

    @property
    def uses_tls(self) -> bool:
        """Whether the listeners speak TLS."""
        return self.protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether clients name themselves by SASL."""
        return self.protocol.startswith("SASL_")

    def write_files(self, directory: Path) -> None:
        """Make the certificates that :meth:`node_settings` and the clients' settings name."""
        if not self.uses_tls:
            return
        directory.mkdir(parents=True, exist_ok=True)
        authority = CertificateAuthority()
        authority.write(directory / "ca.pem")
        authority.issue(directory / f"{BROKER}.pem", BROKER)
        if not self.uses_sasl:
            for user in self.users:
                authority.issue(directory / f"{user}.pem", user)

    def node_settings(self, directory: Path, listener: str) -> dict[str, str]:
        """server.properties of brokers and controllers alike.

        :param listener: name of the brokers' listener; the controllers' is CONTROLLER.
        """
        settings: dict[str, str] = {
            "listener.security.protocol.map": (
                f"CONTROLLER:{self.protocol},{listener}:{self.protocol}"
            )
        }
        if self.uses_tls:
            settings |= _java_stores(directory, BROKER)
        if self.uses_sasl:
            settings |= self._sasl_listeners(listener)
        else:
            settings |= {
                "ssl.client.auth": "required",
                "ssl.principal.mapping.rules": "RULE:^CN=([^,]+)$/$1/,DEFAULT",
            }
        if self.authorizer:
            settings |= {
                "authorizer.class.name": (
                    "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
                ),
                "super.users": f"User:{BROKER};User:{ADMIN}",
            }
        return settings

    def format_arguments(self) -> list[str]:
        """StorageTool's arguments for the controller: SCRAM credentials (KIP-900)."""
        if not self.uses_sasl or self.mechanism == "PLAIN":
            return []
        return [
            argument
            for name, password in self._everyone().items()
            for argument in ("--add-scram", f"{self.mechanism}=[name={name},password={password}]")
        ]

    def client_settings(self, directory: Path, user: str) -> dict[str, str]:
        """Librdkafka settings of a client that is ``user``."""
        settings: dict[str, str] = {"security.protocol": self.protocol}
        if self.uses_tls:
            settings["ssl.ca.location"] = str(directory / "ca.pem")
        if self.uses_sasl:
            return settings | {
                "sasl.mechanism": self.mechanism,
                "sasl.username": user,
                "sasl.password": self.users[user],
            }
        own = str(directory / f"{user}.pem")
        return settings | {"ssl.certificate.location": own, "ssl.key.location": own}

    def tool_settings(self, directory: Path, user: str) -> dict[str, str]:
        """Java client properties of ``user``."""
        settings: dict[str, str] = {"security.protocol": self.protocol}
        if self.uses_sasl:
            settings["sasl.mechanism"] = self.mechanism
            settings["sasl.jaas.config"] = _jaas(self.mechanism, user, self.users[user])
        if self.uses_tls:
            stores = _java_stores(directory, BROKER if self.uses_sasl else user)
            settings |= {
                key: value
                for key, value in stores.items()
                if not self.uses_sasl or "truststore" in key
            }
        return settings

    def _everyone(self) -> dict[str, str]:
        return {**self.users, BROKER: "broker-secret"}

    def _sasl_listeners(self, listener: str) -> dict[str, str]:
        everyone = self._everyone()
        own = (BROKER, everyone[BROKER])
        clients, controller = f"listener.name.{listener.lower()}", "listener.name.controller"
        accepted = everyone if self.mechanism == "PLAIN" else {}
        jaas_key = f"{self.mechanism.lower()}.sasl.jaas.config"
        return {
            "sasl.mechanism.inter.broker.protocol": self.mechanism,
            f"{clients}.sasl.enabled.mechanisms": self.mechanism,
            f"{clients}.{jaas_key}": _jaas(self.mechanism, *own, accepted),
            # Users reach the controller by the mechanism they know from the brokers.
            "sasl.mechanism.controller.protocol": "PLAIN",
            f"{controller}.sasl.enabled.mechanisms": ",".join({"PLAIN": 0, self.mechanism: 0}),
            f"{controller}.{jaas_key}": _jaas(self.mechanism, *own, accepted),
            f"{controller}.plain.sasl.jaas.config": _jaas("PLAIN", *own, everyone),
        }


def _jaas(
    mechanism: str, user: str, password: str, accepted: Mapping[str, str] | None = None
) -> str:
    """One JAAS line: who we are, and for a PLAIN listener whom it lets in."""
    line = f'{_LOGIN_MODULES[mechanism]} required username="{user}" password="{password}"'
    entries = [f'user_{name}="{secret}"' for name, secret in (accepted or {}).items()]
    return " ".join([line, *entries]) + ";"


def _java_stores(directory: Path, owner: str) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / f"{owner}.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "ca.pem"),
    }
