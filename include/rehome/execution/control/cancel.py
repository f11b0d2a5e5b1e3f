"""Cancelling what is ours, and only that; with the order of replicas that a cancel loses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.clock import utc_now
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    PartitionState,
    TopicDescription,
    TopicPartition,
)
from rehome.domain.plan.move import Move
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.ledger_view import MoveStep
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.access.progress_timeout import ProgressTimeout, pause
from rehome.execution.control.words.cancel_words import (
    NEW_ONES_STAY,
    NOT_AGREED,
    found_ended,
    left_in_flight,
    not_as_wanted,
    not_read_text,
    owed_until_back,
    with_unread,
)
from rehome.execution.observation.agreed_topics import agreed_topics
from rehome.execution.observation.log_dir_copies import (
    LogDirState,
    all_there,
    places,
    stop_copies,
    wanted_log_dirs,
)
from rehome.execution.observation.min_isr import too_few_without
from rehome.execution.observation.move_status import is_recreated
from rehome.execution.observation.observe import observe
from rehome.ledger.base.records import EndReason
from rehome.ledger.store import Ledger
from rehome.ledger.stores.events import REHOME

SETTLED_TIMEOUT_S = 10.0
SETTLED_POLL_S = 0.1
BETWEEN_S = 300.0
"""Replicas that have read as those of before and after for so long, while the controller has
nothing in flight, are not metadata that lags."""


@dataclass(frozen=True)
class Cancelled:
    """What became of moves that were to be cancelled.

    :param cancelled: stopped; their old replicas are back in the old order.
    :param ended: found to have ended otherwise: done, superseded, or gone with their topic.
    :param errors: still in flight, because the controller, or a broker, refused, or because a
        cancel would leave too few in sync.
    :param unread: partitions whose topic the brokers do not describe, or do not agree on. Of those
        cancelled it is not known whether their replicas are back in the old order; of those ended
        (as FAILED) or owed only that nothing is in flight.
    :param owed: copies between log dirs of a broker that is not alive: it goes on when it
        returns; and partitions that may be between two steps, whose topic the brokers do not
        describe. Their moves stay admitted until ``stop_owed_copies`` takes them back.
    """

    cancelled: tuple[TopicPartition, ...] = ()
    ended: Mapping[TopicPartition, MoveState] = field(default_factory=dict)
    errors: Mapping[TopicPartition, BrokerError] = field(default_factory=dict)
    owed: Mapping[TopicPartition, BrokerError] = field(default_factory=dict)
    unread: Mapping[TopicPartition, BrokerError] = field(default_factory=dict)

    @property
    def not_cancelled(self) -> Mapping[TopicPartition, BrokerError]:
        """What could not be cancelled, and why."""
        return {**self.errors, **self.owed}


def abort(
    plan_id: str,
    ledger: Ledger,
    cluster: OwnCluster,
    cause: str,
    *,
    state: PlanState = PlanState.FAILED,
    actor: str = REHOME,
) -> Cancelled:
    """End a plan now: cancel what is ours in flight, restore orders, record it. Idempotent.

    The ledger alone says what that is: the plan's files are not needed.

    Reassignments that the ledger did not admit, or that go elsewhere than the plan does, are
    another client's and are left alone. A plan that has ended already is not touched; one that
    never started only changes its state.

    :param state: what the plan ends as: FAILED or CANCELLED.
    :raises ClusterError: the cluster could not be reached; the plan is as it was, try again.
    """
    record = ledger.plan(plan_id)
    if record.state.ended:
        return Cancelled()
    ours = ledger.planned_moves(plan_id, MoveState.ADMITTED)
    result = cancel_moves(plan_id, ours, ledger, cluster, cause, MoveState.CANCELLED)
    cause = left_in_flight(cause, record, result.errors)
    cause = with_unread(owed_until_back(cause, result.owed), result.unread)
    reason = EndReason.CANCELLED if actor != REHOME else None
    ledger.transition(plan_id, state, cause, actor, reason)
    return result


def cancel_moves(
    plan_id: str,
    moves: Collection[Move],
    ledger: Ledger,
    cluster: OwnCluster,
    cause: str | Mapping[TopicPartition, str],
    then: MoveState,
) -> Cancelled:
    """Cancel admitted moves, restore the order of their replicas, and settle them.

    :param cause: why; where that differs, of each.
    :param then: what cancelled moves become: CANCELLED, or PENDING to be taken up again.
    """
    if not moves:
        return Cancelled()
    observation, steps = observe(cluster, moves, utc_now()), ledger.steps(plan_id)
    ended = {
        m.partition: state
        for m in moves
        if (state := _ended_otherwise(m, observation, steps.get(m.partition)))
    }
    left = [move for move in moves if move.partition not in ended]
    in_steps = {p for m in left if (p := m.partition) in steps and steps[p].of_several(m)}
    isr_errors = too_few_without(cluster, left, observation, in_steps)
    errors, idle = _cancel(cluster, [move for move in left if move.partition not in isr_errors])
    errors |= isr_errors
    ended |= {
        partition: MoveState.GONE
        for partition, error in errors.items()
        if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }
    errors = {partition: error for partition, error in errors.items() if partition not in ended}
    cancelled = [m for m in left if m.partition not in errors and m.partition not in ended]
    ours = [move for move in moves if ended.get(move.partition) is not MoveState.GONE]
    copies = stop_copies(cluster, ours, observation)
    after = ended_before_cancel(cluster, [m for m in cancelled if m.partition in idle], in_steps)
    stays = _left_between(plan_id, ledger, after.unclear)
    already_ended = after.ended | dict.fromkeys(stays, MoveState.SUPERSEDED)
    unclear = {p: error for p, error in after.unclear.items() if p not in stays}
    errors |= {**unclear, **copies.errors}
    back = [m for m in cancelled if m.partition not in already_ended and m.partition not in unclear]
    order_refusals, unread = restore_order(cluster, back, idle)
    errors |= order_refusals
    errors |= _not_back_yet(cluster, [m for m in back if m.partition in in_steps])
    ended |= _arrived_by_now(cancelled, already_ended, copies.arrived)
    owed = {**copies.owed, **{p: after.unread[p] for p in after.unread.keys() & in_steps}}
    left_over = {*errors, *owed}
    result = Cancelled(
        tuple(m.partition for m in cancelled if m.partition not in {*left_over, *ended}),
        {partition: state for partition, state in ended.items() if partition not in left_over},
        errors,
        owed,
        {**after.unread, **unread},
    )
    causes = dict.fromkeys((m.partition for m in moves), cause) if isinstance(cause, str) else cause
    _record(plan_id, ledger, result, causes, then)
    return result


def _left_between(
    plan_id: str, ledger: Ledger, unclear: Collection[TopicPartition]
) -> set[TopicPartition]:
    """Partitions with all replicas of before and after, and nothing in flight, for so long that no
    broker is just behind: another client's reassignment took the plan's over, and was cancelled.
    """
    if not unclear:
        return set()
    refusals, now = ledger.plan(plan_id).refused_cancels, utc_now()
    return {p for p in unclear if p in refusals and refusals[p].given_up(now, BETWEEN_S)}


def _arrived_by_now(
    cancelled: Collection[Move],
    already_ended: Mapping[TopicPartition, MoveState],
    in_log_dirs: Collection[TopicPartition],
) -> dict[TopicPartition, MoveState]:
    """Moves that ended before they could be cancelled; none is done without its log dirs."""
    short = {m.partition for m in cancelled if wanted_log_dirs(m)} - set(in_log_dirs)
    ended = {p: s for p, s in already_ended.items() if s is not MoveState.DONE or p not in short}
    stayed = {move.partition for move in cancelled if move.target == move.current}
    return ended | dict.fromkeys(stayed & set(in_log_dirs), MoveState.DONE)


def _record(
    plan_id: str,
    ledger: Ledger,
    result: Cancelled,
    causes: Mapping[TopicPartition, str],
    then: MoveState,
) -> None:
    back = [Settle(partition, then, causes[partition]) for partition in result.cancelled]
    ended = [
        Settle(partition, state, found_ended(causes[partition]))
        for partition, state in result.ended.items()
    ]
    ledger.settle_all(plan_id, [*back, *ended])
    refusals = {partition: str(error) for partition, error in result.not_cancelled.items()}
    ledger.note_not_cancelled(plan_id, refusals, over={*result.cancelled, *result.ended})
    if result.unread:
        ledger.add_event(
            EventKind.NOT_READ_AFTER_CANCEL, not_read_text(result.unread), plan_id=plan_id
        )


def _not_back_yet(
    cluster: ClusterPort, moves: Collection[Move]
) -> dict[TopicPartition, BrokerError]:
    """Moves in steps whose old replicas alone are not enough for the controller by now: they have
    left the ISR in the moment of the cancel.
    """
    listed = cluster.list_reassignments([move.partition for move in moves]) if moves else {}
    return {
        move.partition: ErrorCode.NOT_ENOUGH_REPLICAS.error(NEW_ONES_STAY)
        for move in moves
        if (entry := listed.get(move.partition)) and entry.leads_to(move.current)
    }


def _ended_otherwise(
    move: Move, observation: Observation, step: MoveStep | None
) -> MoveState | None:
    if move.partition in observation.unconfirmed:
        return None
    state = observation.partitions.get(move.partition)
    entry = observation.ongoing.get(move.partition)
    unknown = move.partition.topic in observation.unreadable
    if (state is None and not unknown) or is_recreated(move, observation):
        return MoveState.GONE
    if entry is not None:
        ours = {move.target, *([] if step is None else [step.target])}
        if step is not None and step.of_several(move):
            ours.add(move.current)  # an earlier cancel has sent it back
        return None if entry.target in ours else MoveState.SUPERSEDED
    if state is None:
        return None  # whether anything of it is in flight, the cancel itself will show
    if state.replicas == move.target and all_there(move, observation):
        return MoveState.DONE if _is_arrived(move, state) or wanted_log_dirs(move) else None
    if LogDirState.TAKEN in places(move, observation).values():
        return MoveState.SUPERSEDED
    if set(state.replicas) - set(move.current) - set(move.target):
        return MoveState.SUPERSEDED
    return None


def _is_arrived(move: Move, state: PartitionState) -> bool:
    return state.replicas == move.target != move.current


def _cancel(
    cluster: ClusterPort, moves: Collection[Move]
) -> tuple[dict[TopicPartition, BrokerError], set[TopicPartition]]:
    """Cancel every one, also what is not listed: it may have been sent a moment ago.

    :returns: what was refused, and the partitions that had nothing in flight (any more).
    """
    if not moves:
        return {}, set()
    verdicts = cluster.alter_reassignments({move.partition: None for move in moves})
    errors = {partition: error for partition, error in verdicts.items() if error is not None}
    idle = {p for p, error in errors.items() if error.code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS}
    return {p: error for p, error in errors.items() if p not in idle}, idle


class _EndedBeforeCancel(NamedTuple):
    """What moves ended as; those of which brokers still show no end, and those they do not
    describe.
    """

    ended: dict[TopicPartition, MoveState]
    unclear: dict[TopicPartition, BrokerError]
    unread: dict[TopicPartition, BrokerError]


def ended_before_cancel(
    cluster: ClusterPort, idle: Collection[Move], in_steps: Collection[TopicPartition] = ()
) -> _EndedBeforeCancel:
    """Moves that ended between the poll and the cancel: their replicas must stay where they are.

    Putting the old ones back would be another reassignment, with all its data, that no one
    watches or throttles. Metadata may be behind the controller, so it is given time.

    :param in_steps: partitions that go back from between two steps: that copies nothing.
    """
    ended: dict[TopicPartition, MoveState] = {}
    unread: dict[TopicPartition, BrokerError] = {}
    left, timeout = list(idle), ProgressTimeout(SETTLED_TIMEOUT_S)
    while left:
        topics = cluster.current_topics({move.partition.topic for move in left})
        unclear = {}
        for move in left:
            if error := _describe_error(topics, move):
                unread[move.partition], ended[move.partition] = error, MoveState.FAILED
                continue
            topic = topics.get(move.partition.topic)
            if topic is None:
                unclear[move.partition] = _DISAGREE
                continue
            state = topic.partitions.get(move.partition.partition)
            if state is None or _is_back(move, state):
                continue
            if move.partition in in_steps and move.copies_at(state.replicas) is not None:
                continue
            if set(state.replicas) == {*move.current, *move.target} and not _is_arrived(
                move, state
            ):
                unclear[move.partition] = _unclear(state)
            else:
                done = _is_arrived(move, state)
                ended[move.partition] = MoveState.DONE if done else MoveState.SUPERSEDED
        timeout.note_answer(progress=len(unclear) < len(left))
        if not unclear or timeout.exhausted:
            return _EndedBeforeCancel(ended, unclear, unread)
        left = [move for move in left if move.partition in unclear]
        pause(SETTLED_POLL_S)
    return _EndedBeforeCancel(ended, {}, unread)


def _describe_error(topics: Mapping[str, TopicDescription], move: Move) -> BrokerError | None:
    """Why the brokers do not describe a move's topic; None where they do, or it has gone."""
    topic = topics.get(move.partition.topic)
    if (
        topic is None
        or topic.error is None
        or topic.error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ):
        return None
    return topic.error


def _is_back(move: Move, state: PartitionState) -> bool:
    return set(state.replicas) == set(move.current) and not _is_arrived(move, state)


_DISAGREE = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS.error(NOT_AGREED)


def _unclear(state: PartitionState) -> BrokerError:
    return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS.error(not_as_wanted(state.replicas))


def restore_order(
    cluster: ClusterPort, moves: Collection[Move], idle: Collection[TopicPartition]
) -> tuple[dict[TopicPartition, BrokerError], dict[TopicPartition, BrokerError]]:
    """Put the preferred leader first again. The same set in another order moves no data; nor does
    it to give up what earlier steps of a move have added.

    What the controller has just cancelled has its old set, and is put in order also where its topic
    may not be described any more: later nobody would do it.

    :param idle: partitions that had nothing in flight: what they are on only a reading shows.
    :returns: what the controller refused; and partitions whose order the brokers do not report, or
        do not agree on.
    """
    topics = agreed_topics(cluster, {move.partition.topic for move in moves})
    hidden = {
        m.partition: error for m in moves if (error := _describe_error(topics, m)) is not None
    }
    unread = {m.partition: _DISAGREE for m in moves if m.partition.topic not in topics}
    back: dict[TopicPartition, tuple[BrokerId, ...]] = {}
    for move in moves:
        topic = topics.get(move.partition.topic)
        state = topic.partitions.get(move.partition.partition) if topic else None
        reordered = state is not None and state.replicas != move.current
        if reordered or (move.partition in hidden and move.partition not in idle):
            back[move.partition] = move.current
    resized = {m.partition for m in moves if _is_resized(m, topics)}
    verdicts: dict[TopicPartition, BrokerError | None] = {}
    for allow in (False, True):
        some = {p: replicas for p, replicas in back.items() if (p in resized) is allow}
        if some:
            verdicts |= cluster.alter_reassignments(some, allow_replication_factor_change=allow)
    refusals = {p: error for p, error in verdicts.items() if error is not None}
    unread |= {p: e for p, e in hidden.items() if p not in back or p in refusals}
    return {p: error for p, error in refusals.items() if p not in hidden}, unread


def _is_resized(move: Move, topics: Mapping[str, TopicDescription]) -> bool:
    """Whether it has another number of replicas than before: it is between two steps."""
    topic = topics.get(move.partition.topic)
    state = topic.partitions.get(move.partition.partition) if topic else None
    return state is None or len(state.replicas) != len(move.current)
