"""Cancels reassignments of other clients that a person has named, and only those."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import ClusterError, MissingRightError
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.clock import utc_now
from rehome.domain.kafka import BrokerError, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import MoveState
from rehome.errors import STEP_UNCHANGED
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.control.cancel import ended_before_cancel, restore_order
from rehome.execution.foreign.in_flight import in_flight_of_plans
from rehome.execution.foreign.named import NamedReassignments, set_meanwhile
from rehome.execution.observation.drift import DriftError
from rehome.execution.observation.min_isr import too_few_without
from rehome.execution.observation.observe import observe
from rehome.ledger.store import Ledger


@dataclass(frozen=True)
class ForeignCancelled:
    """What became of reassignments that were to be cancelled, by readings.

    :param cancelled: stopped: the replicas of before are back.
    :param ended: had ended before, and as what.
    :param left: still in flight, and why.
    :param unread: nothing of them is in flight, but their replicas could not be read.
    :param unordered: cancelled; in which order their replicas were before is not known.
    """

    cancelled: tuple[TopicPartition, ...] = ()
    ended: Mapping[TopicPartition, MoveState] = field(default_factory=dict)
    left: Mapping[TopicPartition, BrokerError] = field(default_factory=dict)
    unread: Mapping[TopicPartition, BrokerError] = field(default_factory=dict)
    unordered: tuple[TopicPartition, ...] = ()


class SetMeanwhileError(DriftError):
    """What is in flight is not what was approved any more."""


def refuse_set_meanwhile(
    selection: NamedReassignments, observation: Observation, ledger: Ledger
) -> None:
    """See that the named partitions have in flight what was named, or nothing.

    :raises SetMeanwhileError: something else was set on one of them. Nothing was changed.
    """
    ours = in_flight_of_plans(ledger.open_starts(selection.cluster_id), observation.ongoing)
    if changes := list(set_meanwhile(selection, observation, ours)):
        raise SetMeanwhileError(
            f"Since the approval, some of the named partitions have changed: {' '.join(changes)}",
            state_left=STEP_UNCHANGED,
            next_step="Trigger a new run: it describes what is in flight now, and asks anew.",
        )


def cancel_foreign(
    selection: NamedReassignments, ledger: Ledger, cluster: OwnCluster
) -> ForeignCancelled:
    """Cancel what was named, put replicas in the order of before where that is known, and read what
    is left. Again after a lost answer it finds by reading what was done.

    Kafka cancels by partition and compares nothing: what another client sets between the last
    reading and the request, some milliseconds, is cancelled too.

    :raises SetMeanwhileError: something else was set on one of them. Nothing was changed.
    :raises ClusterError: the cluster could not be read.
    """
    moves = [each.move for each in selection.reassignments]
    observation = observe(cluster, moves, utc_now())
    refuse_set_meanwhile(selection, observation, ledger)
    flying = [move for move in moves if move.partition in observation.ongoing]
    isr_errors = too_few_without(cluster, flying, observation)
    sent = [move for move in flying if move.partition not in isr_errors]
    refusals, idle = _send(cluster, sent)
    gone = {p for p, e in refusals.items() if e.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    left = {**isr_errors, **{p: error for p, error in refusals.items() if p not in gone}}
    stopped = [move for move in moves if move.partition not in {*left, *gone}]
    unsure = [m for m in stopped if m.partition in idle or m.partition not in observation.ongoing]
    before = ended_before_cancel(cluster, unsure)
    back = [m for m in stopped if m.partition not in {*before.ended, *before.unclear}]
    order_refused, unread = restore_order(cluster, back, {move.partition for move in unsure})
    by_partition = selection.by_partition
    flying_still = _still_listed(cluster, back)
    left |= {**before.unclear, **order_refused, **flying_still}
    cancelled = tuple(move.partition for move in back if move.partition not in left)
    return ForeignCancelled(
        cancelled,
        {**before.ended, **dict.fromkeys(gone, MoveState.GONE)},
        left,
        {**before.unread, **unread},
        tuple(partition for partition in cancelled if by_partition[partition].order is None),
    )


def _send(
    cluster: ClusterPort, moves: Collection[Move]
) -> tuple[dict[TopicPartition, BrokerError], set[TopicPartition]]:
    """What was refused, and the partitions of which only a reading tells what has become of them:
    nothing was in flight any more, or the answer was lost.
    """
    partitions = [move.partition for move in moves]
    if not partitions:
        return {}, set()
    try:
        verdicts = cluster.alter_reassignments(dict.fromkeys(partitions))
    except MissingRightError:
        raise
    except ClusterError as error:
        listed = cluster.list_reassignments(partitions)
        lost = ErrorCode.REQUEST_TIMED_OUT.error(f"the answer was lost: {error.what}")
        refusals = dict.fromkeys((p for p in partitions if p in listed), lost)
        return refusals, {p for p in partitions if p not in listed}
    errors = {p: error for p, error in verdicts.items() if error is not None}
    idle = {p for p, e in errors.items() if e.code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}
    return {p: error for p, error in errors.items() if p not in idle}, idle


def _still_listed(
    cluster: ClusterPort, moves: Collection[Move]
) -> dict[TopicPartition, BrokerError]:
    """What the controller lists of these all the same: another client has started it anew."""
    partitions = [move.partition for move in moves]
    listed = cluster.list_reassignments(partitions) if partitions else {}
    return {
        partition: ErrorCode.REASSIGNMENT_IN_PROGRESS.error(
            f"it leads to {list(entry.target)}: another client has started it again"
        )
        for partition, entry in listed.items()
        if entry.adding or entry.removing
    }
