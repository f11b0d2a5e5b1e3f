"""Whether the cluster is still the one that was planned on, and approved."""

from __future__ import annotations

from include.cluster.model import TopicDescription
from include.cluster.port import ClusterPort
from include.errors import PlanConflictError
from include.planning.plan import Move, Plan

_SHOWN = 10


def drift(plan: Plan, cluster: ClusterPort) -> list[str]:
    """One sentence per partition whose replicas are not what the plan started from."""
    topics = cluster.describe_topics({move.partition.topic for move in plan.moves})
    return [found for move in plan.moves if (found := _drifted(move, topics))]


def refuse_drift(plan: Plan, cluster: ClusterPort) -> None:
    """Let only a plan pass that still fits.

    :raises PlanConflictError: naming the partitions that changed since the snapshot.
    """
    changed = drift(plan, cluster)
    if changed:
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        raise PlanConflictError(
            f"The cluster has changed since plan {plan.plan_id} was made: "
            + "; ".join(changed[:_SHOWN])
            + more,
            state_left="Nothing was changed; the approval has lapsed.",
            next_step="Trigger again: a new plan is made from what is there now.",
        )


def _drifted(move: Move, topics: dict[str, TopicDescription]) -> str:
    topic = topics.get(move.partition.topic)
    if topic is None or topic.error is not None:
        return f"topic {move.partition.topic} is gone"
    state = topic.partitions.get(move.partition.partition)
    if state is None:
        return f"{move.partition} is gone"
    if state.replicas != move.current:
        return f"{move.partition} has replicas {list(state.replicas)}, not {list(move.current)}"
    return ""
