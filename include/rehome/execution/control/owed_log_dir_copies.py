"""Copies still in flight after their plan has ended: a broker was down then, or a cancel was
refused.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rehome.domain.clock import utc_now
from rehome.domain.kafka import BrokerError, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.control.cancel import cancel_moves
from rehome.execution.control.words.cancel_words import BROKER_BACK, FOUND_ENDED
from rehome.execution.observation.log_dir_copies import stop_copies
from rehome.execution.observation.move_status import Fate, fate, is_recreated
from rehome.execution.observation.observe import observe
from rehome.ledger.store import Ledger


@dataclass(frozen=True)
class OwedCopies:
    """Moves that were in flight when their plan ended.

    :param taken_back: copies between log dirs that are over by now.
    :param owed: copies between log dirs that are not, and why.
    :param ended: reassignments that could not be cancelled, and what they have ended as.
    :param copying: those that go on.
    :param unread: those of which nothing is in flight, and whose topic the brokers do not describe:
        what they have ended as is for a later poll.
    """

    taken_back: tuple[TopicPartition, ...]
    owed: dict[TopicPartition, BrokerError]
    ended: dict[TopicPartition, MoveState]
    copying: tuple[TopicPartition, ...]
    unread: tuple[TopicPartition, ...]


def stop_owed_copies(ledger: Ledger, cluster: OwnCluster, cluster_id: str) -> OwedCopies:
    """Take back what plans that do not run any more still copy between log dirs.

    To be called under the cluster's lease. A reassignment that the controller refused to cancel
    is followed to its end, and not cancelled again; one that was a step of several, whose next one
    is not sent any more, is taken back then.

    :raises ClusterError: the cluster could not be read; ask again.
    """
    owed_copies = OwedCopies((), {}, {}, (), ())
    for plan_id in ledger.stopped_with_admitted(cluster_id):
        record, view = ledger.plan(plan_id), ledger.view_of_open(plan_id)
        moves = ledger.planned_moves(plan_id, MoveState.ADMITTED)
        then = MoveState.PENDING if record.state is PlanState.PAUSED else MoveState.CANCELLED
        observation = observe(cluster, moves, utc_now())
        hidden = [m for m in moves if not m.target_log_dirs or _in_steps(m, view)]
        unread = tuple(m.partition for m in hidden if _unread(m, observation))
        read = [move for move in moves if move.partition not in unread]
        halfway = [move for move in read if _is_between_steps(move, view, observation)]
        rest = [move for move in read if move not in halfway]
        within = [move for move in rest if move.target_log_dirs]
        taken_back, owed = _stop(within, plan_id, then, ledger, cluster, observation)
        ended, copying = _follow(
            [m for m in rest if not m.target_log_dirs], view, then, observation
        )
        back = cancel_moves(plan_id, halfway, ledger, cluster, FOUND_ENDED, then)
        ended |= dict.fromkeys(back.cancelled, then) | dict(back.ended)
        copying += back.not_cancelled
        found_ended = [Settle(p, state, FOUND_ENDED) for p, state in ended.items()]
        ledger.settle_all(plan_id, found_ended)
        owed_copies = OwedCopies(
            (*owed_copies.taken_back, *taken_back),
            owed_copies.owed | owed,
            owed_copies.ended | ended,
            (*owed_copies.copying, *copying),
            (*owed_copies.unread, *unread),
        )
    return owed_copies


def _stop(
    moves: Collection[Move],
    plan_id: str,
    then: MoveState,
    ledger: Ledger,
    cluster: OwnCluster,
    observation: Observation,
) -> tuple[list[TopicPartition], dict[TopicPartition, BrokerError]]:
    """Take back copies between log dirs: those that are over, and those that are owed still."""
    done = stop_copies(cluster, [m for m in moves if not is_recreated(m, observation)], observation)
    open_still, over = {**done.owed, **done.errors}, []
    for move in moves:
        partition = move.partition
        if partition in open_still:
            continue
        state = (
            MoveState.DONE if _is_arrived(move, observation, partition in done.arrived) else then
        )
        ledger.settle(plan_id, partition, state, BROKER_BACK)
        over.append(partition)
    return over, open_still


def _unread(move: Move, observation: Observation) -> bool:
    what, _ = fate(move, observation, observation.taken_at, sent_at=None, grace_s=0)
    return what is Fate.UNREADABLE


def _follow(
    moves: Collection[Move],
    view: LedgerView,
    then: MoveState,
    observation: Observation,
) -> tuple[dict[TopicPartition, MoveState], list[TopicPartition]]:
    """What reassignments have ended as by now; and those that have not."""
    ended, copying = {}, []
    for move in moves:
        sent_at, step = view.sent.get(move.partition), view.steps.get(move.partition)
        what, _ = fate(
            move, observation, observation.taken_at, sent_at=sent_at, grace_s=0, step=step
        )
        if what in (Fate.IN_FLIGHT, Fate.MISPLACED):
            copying.append(move.partition)
        else:
            ended[move.partition] = _ENDS.get(what, then)
    return ended, copying


def _is_between_steps(move: Move, view: LedgerView, observation: Observation) -> bool:
    """Whether a step of it is done and nothing of it is in flight: there no move may stay."""
    state = observation.partitions.get(move.partition)
    if state is None or move.partition in observation.ongoing:
        return False
    return _in_steps(move, view) and move.copies_at(state.replicas) is not None


def _in_steps(move: Move, view: LedgerView) -> bool:
    step = view.steps.get(move.partition)
    return step is not None and step.of_several(move)


_ENDS = {
    Fate.DONE: MoveState.DONE,
    Fate.SUPERSEDED: MoveState.SUPERSEDED,
    Fate.GONE: MoveState.GONE,
}


def _is_arrived(move: Move, observation: Observation, in_log_dirs: bool) -> bool:
    state = observation.partitions.get(move.partition)
    return in_log_dirs and state is not None and state.replicas == move.target
