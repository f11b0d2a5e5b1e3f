"""``min.insync.replicas`` of topics, and cancels that would leave fewer in sync than that."""

from __future__ import annotations

from collections.abc import Collection

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import MIN_ISR, ConfigResource
from rehome.domain.kafka import BrokerError, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.observation import Observation


def min_isr_of(cluster: ClusterPort, topics: Collection[str]) -> dict[str, int]:
    """By topic; those whose configs may not be read are left out.

    :raises ClusterError: the cluster did not answer.
    """
    resources = [ConfigResource.topic(name) for name in sorted(topics)]
    found = cluster.describe_configs(resources, [MIN_ISR]) if resources else {}
    known: dict[str, int] = {}
    for resource, configs in found.items():
        value = None if isinstance(configs, BrokerError) else configs.get(MIN_ISR)
        if value is not None and value.value is not None:
            known[resource.name] = int(value.value)
    return known


def too_few_without(
    cluster: ClusterPort, moves: Collection[Move], seen: Observation
) -> dict[TopicPartition, BrokerError]:
    """Moves in flight whose cancel would take a partition below its min.insync.replicas: what was
    added is in sync, and what was there before is not. The controller would do it, and producers
    with acks=all would be refused from then on.

    Of what cannot be read nothing is held back.

    :raises ClusterError: the cluster did not answer.
    """
    left = {}
    for move in moves:
        state, entry = seen.partitions.get(move.partition), seen.ongoing.get(move.partition)
        if state is None or entry is None:
            continue
        before = state.isr.difference(entry.adding)
        if before and before != state.isr:  # where none is left, the controller refuses
            left[move.partition] = len(before), len(state.isr), len(move.current)
    least = min_isr_of(cluster, {partition.topic for partition in left})
    found = {}
    for partition, (kept, now, replicas) in left.items():
        needed = min(least.get(partition.topic, 0), replicas)
        if kept < needed <= now:
            text = f"a cancel would leave {kept} in sync, below min.insync.replicas={needed}"
            found[partition] = ErrorCode.NOT_ENOUGH_REPLICAS.error(text)
    return found
