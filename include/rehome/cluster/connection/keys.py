"""Every key of a connection's settings that says how to reach a cluster, and as whom."""

from __future__ import annotations

from dataclasses import dataclass

CONTROLLER_SERVERS = "rehome.controller.servers"
HOST_CHECK = "ssl.endpoint.identification.algorithm"
POLICY = "rehome.policy"
"""Says what may be done through the connection, not how to reach the cluster: no client gets it."""
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM", "GSSAPI")
MSK_REGION = "rehome.aws.region"
MSK_ROLE = "rehome.aws.role.arn"


@dataclass(frozen=True, slots=True)
class ConnectionKey:
    """One key.

    :param values: what it takes; ``default`` holds where it is left out, "" = nothing does.
    """

    name: str
    values: str
    meaning: str
    default: str = ""


KEYS = (
    ConnectionKey(
        "bootstrap.servers",
        "`host:port`, separated by commas",
        "Brokers to connect to first. Name several, so that one dead broker does not lock Rehome "
        "out. Required.",
    ),
    ConnectionKey(
        "security.protocol",
        ", ".join(f"`{name}`" for name in PROTOCOLS),
        "The protocol of the brokers' listener.",
        "PLAINTEXT",
    ),
    ConnectionKey(
        "sasl.mechanism",
        ", ".join(f"`{name}`" for name in MECHANISMS),
        "How to authenticate. Required with SASL. [What each needs](../security.md#logins).",
    ),
    ConnectionKey("sasl.username", "text", "Required with PLAIN and SCRAM."),
    ConnectionKey("sasl.password", "text", "Required with PLAIN and SCRAM."),
    ConnectionKey(
        "sasl.oauthbearer.token.endpoint.url",
        "URL",
        "The token server's token endpoint. Required with OAUTHBEARER.",
    ),
    ConnectionKey(
        "sasl.oauthbearer.client.id", "text", "This client's id. Required with OAUTHBEARER."
    ),
    ConnectionKey(
        "sasl.oauthbearer.client.secret", "text", "Its secret. Required with OAUTHBEARER."
    ),
    ConnectionKey("sasl.oauthbearer.scope", "text", "The scope to ask for."),
    ConnectionKey(
        "sasl.oauthbearer.extensions",
        "`key=value`, separated by commas",
        "SASL extensions that are sent with the token.",
    ),
    ConnectionKey(
        "sasl.oauthbearer.method", "`oidc`", "Tokens are got from a token server.", "oidc"
    ),
    ConnectionKey(
        "sasl.oauthbearer.grant.type",
        "`client_credentials`",
        "By the client's id and secret.",
        "client_credentials",
    ),
    ConnectionKey(
        "https.ca.location",
        "path",
        "File with the CA that signed the token server's certificate. Without it, and without "
        "`https.ca.pem`, the system's CAs are trusted.",
    ),
    ConnectionKey("https.ca.pem", "PEM text", "The same as text."),
    ConnectionKey(
        MSK_REGION,
        "text",
        "Rehome's own key, with AWS_MSK_IAM: the cluster's region. Needed where the names of the "
        "brokers do not show it.",
    ),
    ConnectionKey(
        MSK_ROLE,
        "ARN",
        "Rehome's own key, with AWS_MSK_IAM: a role to take on. Without it, the machine's own "
        "credentials count.",
    ),
    ConnectionKey(
        "sasl.kerberos.service.name",
        "text",
        "With GSSAPI: the name of the brokers' service principal.",
        "kafka",
    ),
    ConnectionKey(
        "ssl.ca.location",
        "path",
        "File with the CA that signed the brokers' certificates. Without it, and without "
        "`ssl.ca.pem`, the system's CAs are trusted.",
    ),
    ConnectionKey("ssl.ca.pem", "PEM text", "The same as text."),
    ConnectionKey("ssl.certificate.location", "path", "This client's certificate, for mutual TLS."),
    ConnectionKey("ssl.certificate.pem", "PEM text", "The same as text."),
    ConnectionKey("ssl.key.location", "path", "Its private key. Needs the certificate."),
    ConnectionKey("ssl.key.pem", "PEM text", "The same as text."),
    ConnectionKey("ssl.key.password", "text", "The password of the private key."),
    ConnectionKey(
        HOST_CHECK,
        "`https`, `none`, in upper or lower case",
        "`https`: the brokers' certificate must name the host. Anything else is an error.",
        "https",
    ),
    ConnectionKey(
        "enable.ssl.certificate.verification",
        "`true`, `false`",
        "Whether the brokers' certificate is checked.",
        "true",
    ),
    ConnectionKey(
        CONTROLLER_SERVERS,
        "`host:port`, separated by commas",
        "Rehome's own key: the controllers' listener. Changes to a dead broker's own configuration "
        "go there: its throttle is taken back at once, not only when the broker returns. What "
        "stands on it cannot be read then. Where the last reading showed another client's change, "
        "nothing is touched before the broker is back.",
    ),
)
"""All that both clients are given."""

OF_POLICY = ConnectionKey(
    POLICY,
    "JSON object",
    "Rehome's own key: what may be done through the connection. No Kafka client gets it.",
)
