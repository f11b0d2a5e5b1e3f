"""What could be cancelled of a plan, what could not, and why a plan was cancelled, in words."""

from __future__ import annotations

from collections.abc import Mapping

from rehome.domain.kafka import BrokerError, Replicas, TopicPartition
from rehome.domain.run.states import PlanState
from rehome.domain.text import count_text, named_errors
from rehome.execution.observation.agreed_topics import DISAGREE
from rehome.ledger.base.records import PlanRecord

FOUND_ENDED = "found when its plan had ended"
"""Why a move that could not be cancelled has ended."""
BROKER_BACK = "its broker is back"
"""Why a copy between log dirs that was owed is over."""
NOT_AGREED = f"nothing is in flight, but {DISAGREE}"
"""Of a partition after its cancel."""
NEW_ONES_STAY = "its old replicas are not in sync, and its new ones stay until they are"
"""Why a move in steps is not back yet."""


def left_in_flight(
    cause: str, record: PlanRecord, left: Mapping[TopicPartition, BrokerError]
) -> str:
    """Why a plan has ended, with what of it could not be cancelled."""
    if not left:
        return cause
    goes_on = f"what of the plan could not be cancelled goes on, {record.goes_on}"
    return f"{cause}; {goes_on}: {named_errors(left)}"


def owed_until_back(cause: str, owed: Mapping[TopicPartition, BrokerError]) -> str:
    """The same, with what cannot be taken back yet: as a broker is not alive, or a
    topic not described.
    """
    if not owed:
        return cause
    return f"{cause}; is taken back by a sweep, when that is possible again: {named_errors(owed)}"


def taken_back_text(moves: int) -> str:
    """``1 move in flight was taken back``."""
    return f"{count_text(moves, 'move')} in flight {'was' if moves == 1 else 'were'} taken back"


def not_read_text(unread: Mapping[TopicPartition, BrokerError]) -> str:
    """What could not be read after a cancel, as a part of a sentence."""
    return (
        "nothing is in flight of the following partitions, but their replicas could not be read: "
        f"{named_errors(unread)}"
    )


def with_unread(cause: str, unread: Mapping[TopicPartition, BrokerError]) -> str:
    """Why a plan has ended, with what could not be read after its cancel."""
    return f"{cause}; {not_read_text(unread)}" if unread else cause


def found_ended(cause: str) -> str:
    """Why a move is settled that had ended before it could be cancelled."""
    return f"found when cancelling: {cause}"


def not_as_wanted(replicas: Replicas) -> str:
    """Of a partition that has other replicas after its cancel than before its move."""
    return f"nothing is in flight, but its replicas read {list(replicas)}"


def cancelled_cause(record: PlanRecord) -> str:
    """Why a plan that no run cancels is cancelled: a person has asked for it."""
    cause = f"cancelled while it was {record.state}"
    if record.state is PlanState.RUNNING:
        return f"{cause}, for its run {record.driver} sent no heartbeat"
    return cause
