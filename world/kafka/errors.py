"""Refusals of brokers, raised inside the model and answered per item."""

from __future__ import annotations

from functools import cache

from rehome.cluster.interface.errors import broker_error
from rehome.domain.kafka import BrokerError

UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_LEADER_OR_FOLLOWER = 6
INVALID_TOPIC = 17
TOPIC_AUTHORIZATION_FAILED = 29
GROUP_AUTHORIZATION_FAILED = 30
CLUSTER_AUTHORIZATION_FAILED = 31
TOPIC_ALREADY_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
INVALID_CONFIG = 40
INVALID_REQUEST = 42
KAFKA_STORAGE_ERROR = 56
LOG_DIR_NOT_FOUND = 57
REPLICA_NOT_AVAILABLE = 9
RESOURCE_NOT_FOUND = 91
PREFERRED_LEADER_NOT_AVAILABLE = 80
ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
ELECTION_NOT_NEEDED = 84
NO_REASSIGNMENT_IN_PROGRESS = 85
OFFSET_OUT_OF_RANGE = 1
OFFSET_NOT_AVAILABLE = 78

STANDARD = {
    PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
}
"""Texts that brokers send where they have none of their own (``Errors`` in Kafka)."""


class Refusal(Exception):
    """One item of a request is refused, with Kafka's code and the broker's message."""

    def __init__(self, code: int, message: str = "") -> None:
        self.error = error(code, message)
        super().__init__(str(self.error))


@cache
def error(code: int, message: str = "") -> BrokerError:
    """The answer with this code; its name is Kafka's."""
    return broker_error(code, message)
