"""Plans as a person writes them, of what there is now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from rehome.domain.kafka import ANY_LOG_DIR, TopicPartition
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import Cordon
from world import script
from world.kafka.metadata import Partition, PartitionKey
from world.kafka.nodes import Node
from world.kafka.world_state import WorldState
from world.plan_of_moves import plan_of_moves
from world.running.outside import EPOCH

CLUSTER = "model"


def written_plan(
    plan_id: str, asked: script.Plan, world: WorldState, topics: Mapping[str, script.Topic]
) -> Plan:
    """The plan of a script; partitions that are gone, or need nothing, are left out."""
    return plan_of_moves(plan_id, CLUSTER, list(_moves(asked, world, topics)))


def _moves(
    asked: script.Plan, world: WorldState, topics: Mapping[str, script.Topic]
) -> Iterator[Move]:
    for topic, number, target in asked.moves:
        part = TopicPartition(topic, number)
        found = world.partition(part)
        if found is None or found[1].reassigning:
            continue
        key, state = found
        goal = state.replicas if asked.log_dirs else target
        before, after = _log_dirs(state, world) if asked.log_dirs else ((), ())
        if state.replicas == goal and before == after:
            continue
        yield Move(
            *(part, state.replicas, goal, topics[topic].size_bytes),
            MoveReason.LOG_DIR if asked.log_dirs else MoveReason.REQUESTED,
            current_log_dirs=before,
            target_log_dirs=after,
            topic_id=key.topic_id,
            in_sync=len(state.isr),
            end_offset=_end_offset(key, state, world),
        )


def _end_offset(key: PartitionKey, state: Partition, world: WorldState) -> int:
    """As a snapshot has it: of what a broker does not answer, nothing is known."""
    nodes = [world.nodes[broker] for broker in state.isr]
    if not nodes or not all(node.running and key in node.replicas for node in nodes):
        return -1
    return int(min(node.replicas[key].log.end for node in nodes))


def _log_dirs(state: Partition, world: WorldState) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where its replicas are, and the other log dir of each one's broker."""
    known = dict(state.dirs)
    before = tuple(known.get(broker, "") for broker in state.replicas)
    if not all(before):
        return (), ()
    after = (_other(world.nodes[broker], known[broker]) for broker in state.replicas)
    return before, tuple(after)


def _other(node: Node, path: str) -> str:
    return next((one for one in sorted(node.disks) if one != path), ANY_LOG_DIR)


def params_of(asked: script.Plan, plan: Plan | None) -> dict[str, Any]:
    """Parameters of the run that a person triggers; ``plan``: as that person has written it."""
    pace: dict[str, Any] = {"max_moves_per_broker": asked.slots}
    pace |= {"approval": True} if asked.approval else {}
    pace |= {"unthrottled": True} if asked.unthrottled else {"throttle": str(asked.rate)}
    pace |= {"throttle_by_broker": script.own_as_param(asked.own)} if asked.own else {}
    pace |= {"max_new_replicas_at_once": asked.at_once} if asked.at_once else {}
    pace |= {"dry_run": True} if asked.dry_run else {}
    pace |= {"kafka_config_id": asked.through} if asked.through else {}
    if asked.window_s is not None:
        pace["window_end"] = (EPOCH + timedelta(seconds=asked.window_s)).isoformat()
    if plan is None:
        cordons = Cordon.UNDO if asked.cordons else Cordon.NO
        drains = {"action": "drain", "brokers": list(asked.drains), "cordon": cordons.value}
        return pace | drains
    moves = [
        {"topic": m.partition.topic, "partition": m.partition.partition, "replicas": list(m.target)}
        for m in plan.moves
    ]
    return pace | {
        "action": "reassign",
        "reassignment": {"version": 1, "partitions": moves},
    }
