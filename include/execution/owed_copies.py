"""Copies between log dirs that outlived their plan, because a broker was away when it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from include.cluster.model import BrokerError, TopicPartition
from include.cluster.port import ClusterPort
from include.execution.log_dir_copies import stop_copies
from include.execution.model import MoveState, Observation, PlanState
from include.execution.observe import observe
from include.execution.outcome import recreated
from include.ledger.database import utc_now
from include.ledger.store import Ledger
from include.planning.plan import Move, Plan


@dataclass(frozen=True)
class OwedCopies:
    """Moves whose copies were owed: what was taken back, and what is owed still, and why."""

    taken_back: tuple[TopicPartition, ...]
    owed: dict[TopicPartition, BrokerError]


def stop_owed_copies(
    ledger: Ledger, cluster: ClusterPort, cluster_id: str, load: Callable[[str], Plan]
) -> OwedCopies:
    """Take back what plans that do not run any more still copy between log dirs.

    To be called under the cluster's lease. Reassignments are left alone: those of such a plan
    were cancelled when it ended, and whoever makes the same one now is somebody else.

    :param load: reads a plan from its directory's URI.
    :raises ClusterError: the cluster could not be read; ask again.
    """
    taken_back: list[TopicPartition] = []
    owed: dict[TopicPartition, BrokerError] = {}
    for plan_id in ledger.stopped_with_admitted(cluster_id):
        record, states = ledger.plan(plan_id), ledger.view(plan_id).moves
        moves = [
            move
            for move in load(record.plan_dir).moves
            if move.target_log_dirs and states[move.partition] is MoveState.ADMITTED
        ]
        if not moves:
            continue
        seen = observe(cluster, moves, utc_now())
        done = stop_copies(cluster, [m for m in moves if not recreated(m, seen)], seen)
        open_still = {**done.owed, **done.errors}
        then = MoveState.PENDING if record.state is PlanState.PAUSED else MoveState.CANCELLED
        for move in moves:
            partition = move.partition
            if partition in open_still:
                continue
            state = MoveState.DONE if _arrived(move, seen, partition in done.arrived) else then
            ledger.settle(plan_id, partition, state, "its broker is back")
            taken_back.append(partition)
        owed |= open_still
    return OwedCopies(tuple(taken_back), owed)


def _arrived(move: Move, seen: Observation, in_log_dirs: bool) -> bool:
    state = seen.partitions.get(move.partition)
    return in_log_dirs and state is not None and state.replicas == move.target
