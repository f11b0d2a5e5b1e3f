"""What Java's clients have, and these do not: what to name instead, and how to convert."""

from __future__ import annotations

_KEYSTORE = (
    "Keystores are Java's; Rehome's clients read PEM. Convert it: `openssl pkcs12 -in client.p12 "
    "-out client.pem -nodes` (a JKS file first: `keytool -importkeystore -srckeystore client.jks "
    "-destkeystore client.p12 -deststoretype PKCS12`). Then name client.pem in "
    "ssl.certificate.location and in ssl.key.location"
)
_TRUSTSTORE = (
    "Truststores are Java's; Rehome's clients read PEM. Convert it: `keytool -list -rfc -keystore "
    "truststore.jks > ca.pem`. Then name ca.pem in ssl.ca.location"
)
_KINDS = "Rehome's clients read PEM only: leave it out"
_BY_MECHANISM = "It is Java's: name the login in sasl.mechanism instead"
_ONE_GRANT = "Rehome gets tokens by client credentials: sasl.oauthbearer.client.id and its secret"
_TICKET = (
    "Both clients use the ticket that the process has: name the keytab in KRB5_CLIENT_KTNAME, in "
    "the environment of every Airflow component, or keep a ticket there by kinit or k5start"
)

INSTEAD = {
    "ssl.keystore.location": _KEYSTORE,
    "ssl.keystore.password": _KEYSTORE,
    "ssl.truststore.location": _TRUSTSTORE,
    "ssl.truststore.password": _TRUSTSTORE,
    "ssl.keystore.type": _KINDS,
    "ssl.truststore.type": _KINDS,
    "ssl.keystore.certificate.chain": "Name ssl.certificate.pem",
    "ssl.keystore.key": "Name ssl.key.pem",
    "ssl.truststore.certificates": "Name ssl.ca.pem",
    "sasl.jaas.config": (
        "It is Java's: name sasl.username and sasl.password, or for OAUTHBEARER "
        "sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret"
    ),
    "sasl.login.class": _BY_MECHANISM,
    "sasl.login.callback.handler.class": _BY_MECHANISM,
    "sasl.client.callback.handler.class": _BY_MECHANISM,
    "sasl.oauthbearer.config": _ONE_GRANT,
    "sasl.oauthbearer.assertion.file": _ONE_GRANT,
    "sasl.oauthbearer.assertion.private.key.file": _ONE_GRANT,
    "sasl.oauthbearer.assertion.private.key.pem": _ONE_GRANT,
    "sasl.oauthbearer.metadata.authentication.type": _ONE_GRANT,
    "sasl.kerberos.keytab": _TICKET,
    "sasl.kerberos.principal": _TICKET,
    "sasl.kerberos.kinit.cmd": _TICKET,
}
"""A setting that is refused → what to do about it."""
