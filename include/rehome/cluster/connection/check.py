"""A connection check that names the cause.

Both client libraries answer every failed connection with "timed out", after 5 to 60 seconds.
This one walks the same way step by step (name, TCP, TLS, Kafka, SASL, metadata), each step
bounded by the same deadline, and reports the step that failed.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
import time
from typing import Any

from rehome.cluster.connection.logins import KerberosLogin, Login, PasswordLogin
from rehome.cluster.connection.settings import Connection
from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import ClusterUnreachableError, Unreachable
from rehome.errors import InvalidRequestError, first_problems

# The causes a person should hear of first: the further a server let us in, the more is known.
_MOST_TELLING = (
    Unreachable.WRONG_PASSWORD,
    Unreachable.LOGIN_REFUSED,
    Unreachable.NO_CREDENTIALS,
    Unreachable.WRONG_MECHANISM,
    Unreachable.EXPIRED_CERTIFICATE,
    Unreachable.WRONG_HOST,
    Unreachable.WRONG_CA,
    Unreachable.TLS,
    Unreachable.WRONG_PROTOCOL,
    Unreachable.UNKNOWN,
    Unreachable.NO_ANSWER,
    Unreachable.REFUSED,
    Unreachable.UNKNOWN_HOST,
)
_NEXT_STEPS = {
    Unreachable.REFUSED: (
        "Check that the broker runs and that host and port in bootstrap.servers are right."
    ),
    Unreachable.NO_ANSWER: "Check firewalls and whether the broker hangs; then try again.",
    Unreachable.UNKNOWN_HOST: "Correct the host name in bootstrap.servers, or the DNS.",
    Unreachable.WRONG_CA: (
        "Set ssl.ca.location (or ssl.ca.pem) to the CA that signed the broker's certificate."
    ),
    Unreachable.EXPIRED_CERTIFICATE: (
        "Renew the broker's certificate, or correct this machine's clock."
    ),
    Unreachable.WRONG_HOST: (
        "Use a name that the broker's certificate lists, or have it reissued."
    ),
    Unreachable.WRONG_PASSWORD: "Correct sasl.username and sasl.password of the connection.",
    Unreachable.LOGIN_REFUSED: (
        "Compare what the token or ticket says (issuer, audience, subject) with what the broker's "
        "listener expects; the broker's log has its reason."
    ),
    Unreachable.NO_CREDENTIALS: (
        "Get a Kerberos ticket for the user that Airflow's components run as."
    ),
    Unreachable.WRONG_MECHANISM: "Set sasl.mechanism to one that the broker's listener enables.",
    Unreachable.WRONG_PROTOCOL: "Set security.protocol to that of the listener behind this port.",
    Unreachable.TLS: (
        "Compare TLS versions, and the client certificate with what the broker trusts."
    ),
    Unreachable.UNKNOWN: "Read the broker's log of this moment.",
}
_VERIFY_EXPIRED = (9, 10)  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED
_VERIFY_HOST = (62, 63, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, EMAIL, IP_ADDRESS


def check_connection(connection: Connection, timeout_s: float = 5.0) -> str:
    """Connect to the bootstrap servers, all at once; the first that lets us in is enough.

    :returns: a sentence for people: how many brokers, how connected, as whom.
    :raises ClusterUnreachableError: with the cause, within ``timeout_s`` seconds, when none does.
    """
    deadline = time.monotonic() + timeout_s
    if connection.login is not None and connection.login.tokens is not None:
        connection.login.tokens.current(timeout_s)  # known by itself, whatever the brokers do
    if connection.uses_tls:
        _refuse_unusable_files(connection)
    answers: queue.SimpleQueue[str | ClusterUnreachableError] = queue.SimpleQueue()
    for host, port in connection.bootstrap_servers:
        # Daemon threads: name resolution cannot be bounded, but can be left behind.
        threading.Thread(
            target=lambda host=host, port=port: answers.put(
                _answer_of(connection, host, port, deadline)
            ),
            name=f"preflight-{host}:{port}",
            daemon=True,
        ).start()
    failures: list[ClusterUnreachableError] = []
    while len(failures) < len(connection.bootstrap_servers):
        try:
            answer = answers.get(timeout=max(0.0, deadline + 0.5 - time.monotonic()))
        except queue.Empty:
            silent = len(connection.bootstrap_servers) - len(failures)
            failures.append(
                _failure(
                    Unreachable.NO_ANSWER, f"{silent} bootstrap server(s) did not answer in time"
                )
            )
            break
        if isinstance(answer, str):
            return answer
        failures.append(answer)
    raise _most_telling(failures)


def _refuse_unusable_files(connection: Connection) -> None:
    try:
        connection.tls.context()
    except InvalidRequestError as error:
        raise ClusterUnreachableError(
            f"The cluster cannot be reached ({Unreachable.TLS}): {first_problems(error.problems)}",
            cause=Unreachable.TLS,
            next_step="Correct the connection, or the file that it names.",
        ) from error


def _answer_of(
    connection: Connection, host: str, port: int, deadline: float
) -> str | ClusterUnreachableError:
    try:
        return _walk(connection, host, port, deadline)
    except ClusterUnreachableError as error:
        return error
    except Exception as error:  # noqa: BLE001 - a crash in a thread would become silence
        return _failure(Unreachable.UNKNOWN, f"{host}:{port}: {type(error).__name__}: {error}")


def _walk(connection: Connection, host: str, port: int, deadline: float) -> str:
    where = f"{host}:{port}"
    with _dial(host, port, where, deadline) as plain:
        sock = _secure(connection, plain, host, where, deadline) if connection.uses_tls else plain
        with sock:
            dialogue = _Dialogue(connection, sock, where, deadline)
            dialogue.authenticate(host)
            return dialogue.introduce()


def _dial(host: str, port: int, where: str, deadline: float) -> socket.socket:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no name of a host"
        raise _failure(Unreachable.UNKNOWN_HOST, f"{host} cannot be resolved ({why})") from error
    last: OSError = OSError("no address")
    for family, kind, protocol, _, address in addresses:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(_seconds_left(deadline))
            sock.connect(address)
        except OSError as error:
            sock.close()
            last = error
        else:
            return sock
    if isinstance(last, ConnectionRefusedError):
        raise _failure(Unreachable.REFUSED, f"{where} refused the connection") from last
    raise _failure(Unreachable.NO_ANSWER, f"{where} could not be reached ({last})") from last


def _secure(
    connection: Connection, plain: socket.socket, host: str, where: str, deadline: float
) -> ssl.SSLSocket:
    try:
        plain.settimeout(_seconds_left(deadline))
        return connection.tls.context().wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        cause = Unreachable.WRONG_CA
        if error.verify_code in _VERIFY_EXPIRED:
            cause = Unreachable.EXPIRED_CERTIFICATE
        elif error.verify_code in _VERIFY_HOST:
            cause = Unreachable.WRONG_HOST
        raise _failure(
            cause, f"{where}: the broker's certificate is refused: {error.verify_message}"
        ) from error
    except TimeoutError as error:
        raise _failure(
            Unreachable.NO_ANSWER,
            f"{where} accepts connections but does not answer the TLS handshake",
        ) from error
    except (ssl.SSLEOFError, ConnectionError) as error:
        raise _failure(
            Unreachable.WRONG_PROTOCOL, f"{where} broke off the TLS handshake; {_NO_TLS}"
        ) from (error)
    except ssl.SSLError as error:
        if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
            raise _failure(Unreachable.WRONG_PROTOCOL, f"{where} does not speak TLS") from error
        raise _failure(Unreachable.TLS, f"{where}: TLS failed: {error.reason or error}") from error


_NO_TLS = "it probably does not speak TLS"


class _Dialogue:
    """Kafka's own part of the way: ApiVersions, SASL, Metadata. Blocking, with a deadline."""

    def __init__(
        self, connection: Connection, sock: socket.socket, where: str, deadline: float
    ) -> None:
        from kafka.protocol.parser import KafkaProtocol

        self._connection = connection
        self._sock = sock
        self._where = where
        self._deadline = deadline
        self._protocol = KafkaProtocol(client_id="rehome-preflight")

    def authenticate(self, host: str) -> None:
        """SASL, where the connection asks for it (KIP-43, KIP-152)."""
        from kafka.protocol.metadata import ApiVersionsRequest
        from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

        self._ask(ApiVersionsRequest(version=0))
        login = self._connection.login
        if login is None:
            return
        handshake = self._ask(SaslHandshakeRequest(mechanism=login.sent_as, version=1))
        if handshake.error_code == ErrorCode.ILLEGAL_SASL_STATE:  # the listener has no SASL
            raise self._failure_of(
                Unreachable.WRONG_PROTOCOL, "the listener behind this port does not use SASL"
            )
        if handshake.error_code:
            enabled = ", ".join(handshake.mechanisms) or "none"
            raise self._failure_of(
                Unreachable.WRONG_MECHANISM,
                f"{login.sent_as} is not enabled there; it has {enabled}",
            )
        mechanism = self._mechanism(login, host)
        while not mechanism.is_done():
            answer = self._ask(
                SaslAuthenticateRequest(auth_bytes=mechanism.auth_bytes(), version=0)
            )
            if answer.error_code:
                by_password = isinstance(login, PasswordLogin)
                raise self._failure_of(
                    Unreachable.WRONG_PASSWORD if by_password else Unreachable.LOGIN_REFUSED,
                    f"{login.principal} was not authenticated: {answer.error_message}",
                )
            mechanism.receive(answer.auth_bytes)

    def _mechanism(self, login: Login, host: str) -> Any:
        """kafka-python's side of the mechanism. Kerberos asks for its ticket when it is made."""
        from kafka.net.sasl import get_sasl_mechanism

        make = get_sasl_mechanism(login.sent_as)
        if not isinstance(login, KerberosLogin):
            return make(host=host, **login.kafka_python())
        from gssapi.exceptions import GSSError

        try:
            return make(host=host, **login.kafka_python())
        except GSSError as error:
            raise self._failure_of(
                Unreachable.NO_CREDENTIALS, f"there is no Kerberos ticket for it: {error}"
            ) from error

    def introduce(self) -> str:
        """Ask for the cluster's brokers: proof that requests are served."""
        from kafka.protocol.metadata import MetadataRequest

        metadata = self._ask(
            MetadataRequest(
                topics=MetadataRequest.NO_TOPICS, allow_auto_topic_creation=False, version=4
            )
        )
        return (
            f"Connected to cluster {metadata.cluster_id} through {self._where} "
            f"({self._connection.how}) as "
            f"{self._connection.principal}; brokers: "
            f"{', '.join(str(broker.node_id) for broker in metadata.brokers)}."
        )

    def _ask(self, request: Any) -> Any:
        import kafka.errors

        self._protocol.send_request(request)
        try:
            self._sock.settimeout(_seconds_left(self._deadline))
            self._sock.sendall(self._protocol.send_bytes())
            responses: list[Any] = []
            while not responses:
                self._sock.settimeout(_seconds_left(self._deadline))
                received = self._sock.recv(65536)
                if not received:
                    raise ConnectionResetError("closed by the broker")
                responses = self._protocol.receive_bytes(received)
        except TimeoutError as error:
            raise self._failure_of(
                Unreachable.NO_ANSWER, "it accepts connections but does not answer requests"
            ) from error
        except ssl.SSLError as error:
            # TLS 1.3 reports a refused client certificate only after the handshake.
            raise self._failure_of(
                Unreachable.TLS, f"the broker ended TLS: {error.reason or error}"
            ) from error
        except (ConnectionError, kafka.errors.KafkaProtocolError) as error:
            raise self._failure_of(
                Unreachable.WRONG_PROTOCOL,
                f"it broke off a {self._connection.security_protocol} conversation; the listener "
                "behind this port probably speaks another protocol",
            ) from error
        return responses[0][1]

    def _failure_of(self, cause: Unreachable, what: str) -> ClusterUnreachableError:
        return _failure(cause, f"{self._where}: {what}")


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("deadline passed")
    return left


def _failure(cause: Unreachable, what: str) -> ClusterUnreachableError:
    return ClusterUnreachableError(
        f"The cluster cannot be reached ({cause.replace('_', ' ')}): {what}.",
        cause=cause,
        next_step=_NEXT_STEPS[cause],
    )


def _most_telling(failures: list[ClusterUnreachableError]) -> ClusterUnreachableError:
    return min(failures, key=lambda failure: _MOST_TELLING.index(failure.cause))
