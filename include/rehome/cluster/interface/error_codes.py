"""Error codes of Kafka's protocol that Rehome decides by; ``Errors`` in Kafka names them all."""

from __future__ import annotations

import enum

from rehome.domain.kafka import BrokerError


class ErrorCode(enum.IntEnum):
    """A code and its name in Kafka's protocol. Brokers send others, too: those only get shown."""

    UNKNOWN_SERVER_ERROR = -1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    NETWORK_EXCEPTION = 13
    NOT_ENOUGH_REPLICAS = 19
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    INVALID_REPLICA_ASSIGNMENT = 39
    NOT_CONTROLLER = 41
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    REASSIGNMENT_IN_PROGRESS = 60
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    THROTTLING_QUOTA_EXCEEDED = 89

    def error(self, message: str = "") -> BrokerError:
        """The error that a broker answers with this code."""
        return BrokerError(int(self), self.name, message)


NO_ANSWER = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""Given by the client where a broker does not answer."""

TRANSIENT = NO_ANSWER - {ErrorCode.BROKER_NOT_AVAILABLE} | {
    ErrorCode.UNKNOWN_SERVER_ERROR,  # also a part of a request that was left unanswered
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
}
"""The controller may have accepted the request all the same: the next poll decides."""

NOT_HOSTED = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER})
"""The broker has no such replica."""

LOG_DIR_REFUSED = frozenset({ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.LOG_DIR_NOT_FOUND})
"""A log dir cannot take a replica, and will not."""
