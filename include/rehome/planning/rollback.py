"""Rollback: a plan that reverses the moves of another plan."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.actions import Action
from rehome.domain.kafka import ANY_LOG_DIR, BrokerId, TopicPartition
from rehome.domain.plan.causes.move_cause import CauseCode
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.plan import Plan
from rehome.domain.reassignment_file import Assignment
from rehome.domain.request.limits import BrokerCaps, BrokerSet
from rehome.errors import InvalidRequestError
from rehome.planning.actions.reassign import lay_out
from rehome.planning.limits.apply_limits import apply_limits
from rehome.planning.limits.limit_checks import limit_notes, refuse_broken
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.scope import has_source, raise_if, shorten
from rehome.planning.options import PlanOptions
from rehome.planning.planner import plan_of
from rehome.planning.result.log_dir_choice import choose_log_dirs
from rehome.planning.result.outcome import Outcome, all_alike
from rehome.planning.result.plan_moves import planned_moves


def rollback_plan(
    done: Plan,
    snapshot: Snapshot,
    options: PlanOptions,
    *,
    max_moves_per_broker: int = 4,
    caps: BrokerCaps | None = None,
    broker_sets: tuple[BrokerSet, ...] | None = None,
) -> Plan:
    """Plan the rollback of a plan that was carried out, wholly or in part.

    Partitions on their old brokers need nothing. Partitions on neither their old nor their planned
    brokers were moved by another client since; they stay. So do partitions that no longer exist, or
    whose topic was deleted and created again. All these are listed in the summary's ``infeasible``.
    Listed as well: partitions whose old broker is not live, and those that go back to fewer
    replicas and keep one in sync instead of an old one that is not.

    :param done: the plan to roll back, as it was planned.
    :param snapshot: the cluster as it is now.
    :param options: of the rollback itself; max_moves_per_broker: see Pace.
    :param caps, broker_sets: limits that it keeps.
    :raises InvalidRequestError: the rollback breaks a limit, the plan is of another cluster, an old
        log dir is gone or a disk full, or a partition is being reassigned now.
    """
    if done.cluster_id != snapshot.cluster_id:
        raise InvalidRequestError(
            [
                f"Plan {done.plan_id} was made for cluster {done.cluster_id}; this is cluster "
                f"{snapshot.cluster_id}. Name the connection of the other cluster."
            ]
        )
    arrays = ClusterArrays.from_snapshot(
        snapshot, min_free_disk_fraction=options.min_free_disk_fraction, caps=caps
    )
    arrays = apply_limits(arrays, caps, broker_sets)
    assignments, left_alone = _way_back(done.moves, arrays)
    layout, log_dirs = lay_out(snapshot, arrays, assignments, keep_replication_factor=False)
    refuse_broken(arrays, layout.origin, layout.rows)
    tree = RackTree(arrays.brokers.rack_paths, arrays.brokers.live, layout.rows.shape[1])
    outcome = Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=int(layout.incoming.sum()),
        reason=MoveReason.ROLLBACK,
        causes=all_alike(CauseCode.TAKEN_BACK),
        infeasible=(*left_alone, *limit_notes(arrays, layout.rows, None)),
        log_dirs=log_dirs,
    )
    moves, misfits = choose_log_dirs(planned_moves(outcome), arrays.brokers, name=False)
    raise_if(shorten([misfit.problem for misfit in misfits]))
    pace = options.pace(max_moves_per_broker)
    return plan_of(snapshot, outcome, moves, options, action=Action.ROLLBACK, pace=pace)


def _way_back(
    moves: Sequence[Move], arrays: ClusterArrays
) -> tuple[dict[TopicPartition, Assignment], tuple[Infeasible, ...]]:
    """The target of each partition, and notes on those that stay, or that go to other brokers than
    before.
    """
    index = arrays.partition_index()
    live = set(arrays.brokers.ids[arrays.brokers.live].tolist())
    assignments, notes = {}, []
    for move in moves:
        p = index.get(move.partition)
        note = partial(Infeasible, Subject.of_partition(move.partition), wanted=1, nearest=0)
        if p is None:
            notes.append(note(obstacle=Obstacle.NO_LONGER_EXISTS))
            continue
        now = arrays.broker_ids(arrays.rows[p])
        why = _obstacle(move, arrays, p, now)
        if why is not None:
            notes.append(note(obstacle=why, brokers=now if why is Obstacle.MOVED_SINCE else ()))
            continue
        back = _way_back_of(move, arrays, p, now)
        gone = sorted(set(back.replicas) - live)
        if gone:
            notes.append(note(obstacle=Obstacle.WAY_BACK_NOT_LIVE, brokers=tuple(gone)))
            continue
        assignments[move.partition] = back
        if back.replicas != move.current:
            notes.append(
                note(obstacle=Obstacle.IN_SYNC_KEPT, brokers=back.replicas, instead_of=move.current)
            )
    return assignments, tuple(notes)


def _obstacle(
    move: Move, arrays: ClusterArrays, p: int, now: tuple[BrokerId, ...]
) -> Obstacle | None:
    """Why a partition stays; None = it goes back."""
    if not move.is_of(arrays.topic_ids[arrays.topic_of[p]]):
        return Obstacle.TOPIC_RECREATED
    if set(now) not in (set(move.current), set(move.target)) and move.copies_at(now) is None:
        return Obstacle.MOVED_SINCE
    if set(now) != set(move.current) and not has_source(arrays, np.array([p]))[0]:
        return Obstacle.NO_SOURCE
    return None


def _way_back_of(
    move: Move, arrays: ClusterArrays, p: int, now: tuple[BrokerId, ...]
) -> Assignment:
    """The target of a partition: its old replicas. If it goes back to fewer replicas, those in sync
    are preferred to old ones that it still has and that are not.
    """
    log_dirs = move.current_log_dirs or (ANY_LOG_DIR,) * len(move.current)
    if len(now) <= len(move.current) or arrays.in_sync is None:
        return Assignment(move.current, log_dirs)
    synced = {broker for broker, well in zip(now, arrays.in_sync[p].tolist(), strict=False) if well}
    others = iter([broker for broker in now if broker in synced.difference(move.current)])
    replicas = tuple([next(others, b) if b in now and b not in synced else b for b in move.current])
    log_dir_by_broker = dict(zip(move.current, log_dirs, strict=True))
    return Assignment(
        replicas, tuple(log_dir_by_broker.get(broker, ANY_LOG_DIR) for broker in replicas)
    )
