"""One broker with a listener for every login, and the settings of each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from local.kafka.certificates import CertificateAuthority
from local.kafka.cluster import LocalCluster
from local.kafka.node_config import MoreListener
from tests.cluster.connection.token_server import AUDIENCE, TokenServer, token_server

REAUTH_MS = 10_000
PASSWORD = "plain-secret"
SASL, MUTUAL = "LOGINS", "MUTUAL"
_SECURITY = "org.apache.kafka.common.security"
_SCRAM = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@dataclass
class Logins:
    """The cluster, its CA and its token server."""

    cluster: LocalCluster
    authority: CertificateAuthority
    tokens: TokenServer
    folder: Path

    def by_password(self, mechanism: str, user: str, password: str) -> dict[str, str]:
        return self._sasl(mechanism) | {"sasl.username": user, "sasl.password": password}

    def by_token(self, client: str, secret: str) -> dict[str, str]:
        return self._sasl("OAUTHBEARER") | {
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": self.tokens.token_url,
            "sasl.oauthbearer.client.id": client,
            "sasl.oauthbearer.client.secret": secret,
            "sasl.oauthbearer.scope": "kafka",
        }

    def by_certificate(self, file: Path) -> dict[str, str]:
        return self._mutual() | {
            "ssl.certificate.location": str(file),
            "ssl.key.location": str(file),
        }

    def by_certificate_text(self, file: Path) -> dict[str, str]:
        """Certificate, key and CA as text, each alone."""
        key, _, certificates = file.read_text().partition("-----END PRIVATE KEY-----\n")
        settings = self._mutual()
        del settings["ssl.ca.location"]
        return settings | {
            "ssl.ca.pem": (self.folder / "ca.pem").read_text(),
            "ssl.certificate.pem": certificates,
            "ssl.key.pem": key + "-----END PRIVATE KEY-----\n",
        }

    def set_scram_password(self, mechanism: str, user: str, password: str) -> None:
        admin = AdminClient(self.cluster.client_settings() | {"log_level": "0"})
        kind = ScramCredentialInfo(_SCRAM[mechanism], 4096)
        change = UserScramCredentialUpsertion(user, kind, password.encode())
        for answer in admin.alter_user_scram_credentials([change]).values():
            answer.result(60)

    def _sasl(self, mechanism: str) -> dict[str, str]:
        return {
            "bootstrap.servers": self.cluster.servers_of(SASL),
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.folder / "ca.pem"),
            "sasl.mechanism": mechanism,
        }

    def _mutual(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self.cluster.servers_of(MUTUAL),
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.folder / "ca.pem"),
        }


@contextmanager
def login_cluster(brokers: int) -> Iterator[Logins]:
    """A cluster whose brokers check every login, with a token server that knows nobody yet."""
    with tempfile.TemporaryDirectory(prefix="rehome-test-") as name, token_server({}) as tokens:
        folder = Path(name)
        authority = CertificateAuthority()
        authority.write(folder / "ca.pem")
        authority.issue(folder / "broker.pem", "broker")
        cluster = LocalCluster(
            folder / "cluster",
            brokers=brokers,
            log_dirs=1,
            broker_config=AUTHORIZER | of_tokens(tokens),
            controller_config=AUTHORIZER,
            more_listeners=listeners(folder),
            java_options=[allowed_urls(tokens)],
        )
        with cluster:
            yield Logins(cluster, authority, tokens, folder)


def listeners(folder: Path) -> list[MoreListener]:
    """One with every SASL mechanism, one that asks for a certificate."""
    tls = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
    }
    oauth = "oauthbearer"
    scram = f"{_SECURITY}.scram.ScramLoginModule required;"
    sasl = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "plain.sasl.jaas.config": (
            f'{_SECURITY}.plain.PlainLoginModule required user_plain="{PASSWORD}";'
        ),
        "scram-sha-256.sasl.jaas.config": scram,
        "scram-sha-512.sasl.jaas.config": scram,
        f"{oauth}.sasl.jaas.config": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;",
        f"{oauth}.sasl.server.callback.handler.class": (
            f"{_SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        # Brokers end a connection whose token has ended and was not renewed.
        f"{oauth}.connections.max.reauth.ms": str(REAUTH_MS),
    }
    mutual = {
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+)$/$1/,DEFAULT",
    }
    return [
        MoreListener(SASL, "SASL_SSL", tls | sasl),
        MoreListener(MUTUAL, "SSL", tls | mutual),
    ]


def of_tokens(server: TokenServer) -> dict[str, str]:
    """How a broker checks tokens."""
    return {
        "sasl.oauthbearer.jwks.endpoint.url": server.jwks_url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": server.url,
    }


def allowed_urls(server: TokenServer) -> str:
    """Kafka asks only servers that the JVM's own options name."""
    return f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={server.jwks_url}"
