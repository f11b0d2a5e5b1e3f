"""What has become of a move, in words: they are kept with it, and stand beside it on its page."""

from __future__ import annotations

from collections.abc import Sequence

from rehome.domain.kafka import BrokerId, ReplicaId

RECREATED = "its topic was deleted, and another one created under its name"
STEP_CANCELLED = "another client cancelled one of its steps"
CANCELLED_BY_OTHER = "another client cancelled it"
GOES_BACK = "it is on its way back"
BETWEEN_LOG_DIRS = "a replica is moving between log dirs"
METADATA_BEHIND = "metadata is behind the controller"


def unreadable_text(topic: str, error: object) -> str:
    """Of a topic that brokers do not describe."""
    return f"topic {topic} cannot be read: {error}"


def gone_text(*, topic: bool) -> str:
    """Of a partition that is not there any more, with its topic or without it."""
    return f"{'topic' if topic else 'partition'} does not exist any more"


def reassigned_text(target: Sequence[BrokerId]) -> str:
    """Of a partition that is on its way to what another client wants."""
    return f"another client is reassigning it to {list(target)}"


def replaced_text(replicas: Sequence[BrokerId], planned_from: Sequence[BrokerId]) -> str:
    """Of a partition that another client has moved."""
    return f"its replicas are {list(replicas)}, not {list(planned_from)}"


def log_dir_unknown_text(replica: ReplicaId) -> str:
    """Of a replica whose broker does not say where it is."""
    return f"log dir on broker {replica.broker} is not known"


def stopped_text(replica: ReplicaId, log_dir: str) -> str:
    """Of a copy between log dirs that has come to nothing."""
    return (
        f"nothing copies it to {log_dir} on broker {replica.broker} any more: another client has "
        "taken that back, or the log dir has failed"
    )


def taken_text(replica: ReplicaId, log_dir: str, *, arrived: bool) -> str:
    """Of a replica that another client moves, or has moved, to a log dir."""
    moves = "has moved" if arrived else "is moving"
    return f"another client {moves} it to {log_dir} on broker {replica.broker}"
