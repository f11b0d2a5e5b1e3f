"""The way back: a plan's moves in reverse, as a plan of its own."""

from __future__ import annotations

from collections.abc import Sequence

from include.cluster.model import TopicPartition
from include.cluster.snapshot import Snapshot
from include.errors import InvalidRequestError
from include.planning.arrays import ClusterArrays
from include.planning.kafka_json import Assignment
from include.planning.outcome import Outcome
from include.planning.plan import ANY_LOG_DIR, Infeasible, Move, MoveReason, Plan
from include.planning.planner import pace_of, plan_of
from include.planning.racks import RackTree
from include.planning.request import Action
from include.planning.requested import lay_out


def rollback_plan(
    done: Plan,
    snapshot: Snapshot,
    *,
    plan_id: str,
    rate_bytes_per_s: int | None = None,
    throttle_efficiency: float = 1.0,
    min_free_disk_fraction: float = 0.0,
    reaction_s: float = 0.0,
    max_moves_per_broker: int = 4,
    max_partitions_in_flight: int = 200,
) -> Plan:
    """Plan the way back from a plan that was carried out, wholly or in part.

    Partitions that are where they started need nothing. Those that are neither where the plan
    found them nor where it put them were moved by somebody else since: they are left alone and
    named in the summary's ``infeasible``, and so are partitions that no longer exist, or whose
    topic is another one of the same name.

    :param done: the plan to be taken back, as it was planned.
    :param snapshot: the cluster as it is now.
    :param plan_id: of the rollback itself.
    :param reaction_s, max_moves_per_broker, max_partitions_in_flight: see Pace.
    :raises InvalidRequestError: the plan is of another cluster, a broker or log dir to go back
        to is gone or full, or a partition is being reassigned now.
    """
    if done.cluster_id != snapshot.cluster_id:
        raise InvalidRequestError(
            [
                f"Plan {done.plan_id} was made for cluster {done.cluster_id}; this is cluster "
                f"{snapshot.cluster_id}. Name the connection of the other cluster."
            ]
        )
    arrays = ClusterArrays.from_snapshot(snapshot, min_free_disk_fraction=min_free_disk_fraction)
    wanted, left_alone = _way_back(done.moves, arrays)
    layout, log_dirs = lay_out(snapshot, arrays, wanted, keep_replication_factor=False)
    tree = RackTree(arrays.brokers.rack_paths, arrays.brokers.live, layout.rows.shape[1])
    outcome = Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=int(layout.incoming.sum()),
        reason=MoveReason.ROLLBACK,
        why=lambda _: "Taken back to where it was before the plan.",
        infeasible=left_alone,
        log_dirs=log_dirs,
    )
    return plan_of(
        snapshot,
        outcome,
        plan_id=plan_id,
        action=Action.ROLLBACK,
        rate_bytes_per_s=rate_bytes_per_s,
        pace=pace_of(
            rate_bytes_per_s,
            throttle_efficiency,
            reaction_s,
            max_moves_per_broker,
            max_partitions_in_flight,
        ),
        min_free_disk_fraction=min_free_disk_fraction,
    )


def _way_back(
    moves: Sequence[Move], arrays: ClusterArrays
) -> tuple[dict[TopicPartition, Assignment], tuple[Infeasible, ...]]:
    """Where each partition goes back to, and the partitions that are left alone."""
    index = arrays.partition_index()
    wanted, left_alone = {}, []
    for move in moves:
        p = index.get(move.partition)
        if p is None:
            left_alone.append(Infeasible(str(move.partition), "it no longer exists", 1, 0))
            continue
        if not move.is_of(arrays.topic_ids[arrays.topic_of[p]]):
            why = "its topic was deleted and created again since the plan"
            left_alone.append(Infeasible(str(move.partition), why, 1, 0))
            continue
        now = arrays.broker_ids(arrays.rows[p])
        if set(now) in (set(move.current), set(move.target)):
            log_dirs = move.current_log_dirs or (ANY_LOG_DIR,) * len(move.current)
            wanted[move.partition] = Assignment(move.current, log_dirs)
        else:
            why = f"something else moved it to {list(now)} since the plan"
            left_alone.append(Infeasible(str(move.partition), why, 1, 0))
    return wanted, tuple(left_alone)
