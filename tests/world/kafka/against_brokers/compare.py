"""Runs a script on both sides: each answer is compared, and then the state, once it has settled."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from local.process.waiting import wait_until
from rehome.cluster.interface.errors import ClusterError
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerError, ReplicaId, TopicPartition
from tests.world.kafka.against_brokers.sides import ModelSide, RealSide
from tests.world.kafka.against_brokers.steps import Side, Step, do, plain, settles_in

SETTLED_S = 40.0
POLL_S = 0.2
TOPIC_KEYS = (
    "cleanup.policy",
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "min.insync.replicas",
    "retention.ms",
    "unclean.leader.election.enable",
)
BROKER_KEYS = (
    "cordoned.log.dirs",
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "log.retention.ms",
    "min.insync.replicas",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


def state_of(side: Side, topics: Collection[str]) -> dict[str, Any]:
    """What clients can know, but for what a cluster chooses by itself (topic ids, log dirs)."""
    port = side.port
    alive = sorted(port.describe_cluster().brokers)
    described = port.current_topics(topics)
    parts = [
        (TopicPartition(name, number), part)
        for name, topic in sorted(described.items())
        for number, part in topic.partitions.items()
    ]
    replicas = [
        ReplicaId(part.topic, part.partition, broker)
        for part, state in parts
        for broker in state.replicas
        if broker in alive
    ]
    ends = port.log_end_offsets(replicas).value
    starts = port.log_start_offsets(replicas).value
    resources = [
        *map(ConfigResource.topic, sorted(topics)),
        *map(ConfigResource.broker, alive),
        ConfigResource.cluster_default(),
    ]
    keys = (*TOPIC_KEYS, *BROKER_KEYS)
    moving = port.list_reassignments()
    dirs = port.describe_log_dirs(alive).value
    wanted = {part for part, _ in parts}
    return {
        "alive": alive,
        "features": dict(port.finalized_features()),
        "topics": {
            name: None if topic.error is None else topic.error.code
            for name, topic in described.items()
        },
        "partitions": {
            str(part): (state.leader, state.replicas, sorted(state.isr)) for part, state in parts
        },
        "moving": {
            str(part): (one.replicas, one.adding, one.removing)
            for part, one in moving.items()
            if part.topic in topics
        },
        "ends": {str(one): _end(one, ends, parts) for one in replicas},
        "starts": {str(one): plain(starts.get(one)) for one in replicas if _in_isr(one, parts)},
        "configs": {
            str(one): plain(found) for one, found in port.describe_configs(resources, keys).items()
        },
        "hosted": sorted(
            (str(part), one.broker, on_disk.is_future)
            for one in dirs
            for part, on_disk in one.replicas.items()
            if part in wanted
        ),
        "cordoned": sorted((one.broker, one.path) for one in dirs if one.cordoned),
    }


def _in_isr(one: ReplicaId, parts: Sequence[tuple[TopicPartition, Any]]) -> bool:
    return one.broker in dict(parts)[one.topic_partition].isr


def _end(one: ReplicaId, ends: dict[ReplicaId, Any], parts: Any) -> Any:
    """Exact in the ISR; how far a copy has come depends on brokers' fetches: it is behind."""
    found = ends.get(one)
    if isinstance(found, BrokerError) or _in_isr(one, parts):
        return plain(found)
    return "behind"


def _read(side: Side, topics: Collection[str]) -> dict[str, Any]:
    try:
        return state_of(side, topics)
    except (ClusterError, KeyError) as error:  # a topic that goes between two of the reads
        return {"unreadable": repr(error)}


def differences(model: ModelSide, real: RealSide, topics: Collection[str]) -> list[str]:
    """In which parts the real state differs from the model's, when there was time to settle."""
    wanted = _read(model, topics)
    differing: list[str] = []

    def alike() -> bool:
        found = _read(real, topics)
        differing[:] = [
            f"{part} {key}: model {left!r}, brokers {right!r}"
            for part in sorted(wanted.keys() | found.keys())
            for key, left, right in _unlike(wanted.get(part), found.get(part))
        ]
        return not differing

    with suppress(TimeoutError):
        wait_until(alike, "the same state", SETTLED_S, POLL_S)
    return differing


def _unlike(left: Any, right: Any) -> list[tuple[str, Any, Any]]:
    if left == right:
        return []
    if not isinstance(left, dict) or not isinstance(right, dict):
        return [("", left, right)]
    keys = sorted(left.keys() | right.keys())
    return [(key, left.get(key), right.get(key)) for key in keys if left.get(key) != right.get(key)]


def run(
    script: Sequence[Step], model: ModelSide, real: RealSide, topics: Collection[str]
) -> list[str]:
    """What differs first; [] where nothing does."""
    for number, step in enumerate(script):
        said_by_model = do(model, step)
        model.settle(settles_in(step))
        said_by_brokers = do(real, step)
        if said_by_model != said_by_brokers:
            return [f"step {number} {step}: model {said_by_model}, brokers {said_by_brokers}"]
        differing = differences(model, real, topics)
        if differing:
            return [f"after step {number} {step}", *differing]
    return []
