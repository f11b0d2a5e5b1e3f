"""Errors of whole calls: unreachable clusters, missing rights, hidden topics."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from rehome.domain.kafka import BrokerError
from rehome.errors import RehomeError

_SHOWN = 10  # rights named in one error


class ClusterError(RehomeError):
    """A call to the cluster failed as a whole.

    :param error: the broker's code and message, where a broker answered.
    """

    def __init__(
        self,
        what: str,
        *,
        error: BrokerError | None = None,
        state_left: str = "",
        next_step: str = "",
    ) -> None:
        self.error = error
        super().__init__(
            f"{what}: {error}" if error else what, state_left=state_left, next_step=next_step
        )


class MissingRightError(ClusterError):
    """The principal lacks a right. ``right`` names it as an ACL does: "Cluster Describe"."""

    def __init__(self, call: str, right: str, *, error: BrokerError | None = None) -> None:
        self.call = call
        self.right = right
        super().__init__(
            f"{call} needs the right {right}, which this principal lacks",
            error=error,
            next_step=f"Grant {right} to the principal of the connection (docs/security.md). Then "
            "repeat what was refused: clear the task, or ask again.",
        )


class BrokersDisagreeError(ClusterError):
    """Brokers show different metadata, and it is not known which of them is up to date."""


def require(call: str, missing: Sequence[str]) -> None:
    """Raise when rights are missing for a call; all of them are named, of many the first few.

    :param missing: as :func:`rehome.cluster.interface.rights.missing_rights` returns them.
    :raises MissingRightError: unless ``missing`` is empty.
    """
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise MissingRightError(call, ", ".join(missing[:_SHOWN]) + more)


class Unreachable(enum.StrEnum):
    """Why no broker could be reached or authenticated against."""

    REFUSED = "refused"
    NO_ANSWER = "no_answer"
    UNKNOWN_HOST = "unknown_host"
    WRONG_CA = "wrong_ca"
    EXPIRED_CERTIFICATE = "expired_certificate"
    WRONG_HOST = "wrong_host"
    WRONG_PASSWORD = "wrong_password"
    WRONG_MECHANISM = "wrong_mechanism"
    NO_CREDENTIALS = "no_credentials"
    LOGIN_REFUSED = "login_refused"
    WRONG_PROTOCOL = "wrong_protocol"
    TLS = "tls"
    UNKNOWN = "unknown"


class ClusterUnreachableError(ClusterError):
    """No broker could be reached or authenticated against, and why."""

    def __init__(self, what: str, *, cause: Unreachable, next_step: str = "") -> None:
        self.cause = cause
        super().__init__(what, next_step=next_step)


# Where librdkafka's names differ from those of Kafka's own protocol.
_RENAMED = {
    -1: "UNKNOWN_SERVER_ERROR",
    2: "CORRUPT_MESSAGE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    4: "INVALID_FETCH_SIZE",
    6: "NOT_LEADER_OR_FOLLOWER",
    10: "MESSAGE_TOO_LARGE",
    11: "STALE_CONTROLLER_EPOCH",
    17: "INVALID_TOPIC_EXCEPTION",
}


def broker_error(code: int, message: str | None = None) -> BrokerError:
    """A broker's numeric error code with its name in Kafka's protocol (``Errors`` in Kafka)."""
    from confluent_kafka import KafkaError

    name = _RENAMED.get(code) or KafkaError(code).name()
    return BrokerError(code, name, message or "")


def verdict(code: int, message: str | None = None) -> BrokerError | None:
    """None for code 0, which means accepted; else the error."""
    return broker_error(code, message) if code else None
