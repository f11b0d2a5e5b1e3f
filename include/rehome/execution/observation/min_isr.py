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
    answers = cluster.describe_configs(resources, [MIN_ISR]) if resources else {}
    min_isr_by_topic: dict[str, int] = {}
    for resource, configs in answers.items():
        value = None if isinstance(configs, BrokerError) else configs.get(MIN_ISR)
        if value is not None and value.value is not None:
            min_isr_by_topic[resource.name] = int(value.value)
    return min_isr_by_topic


def too_few_without(
    cluster: ClusterPort,
    moves: Collection[Move],
    observation: Observation,
    in_steps: Collection[TopicPartition] = (),
) -> dict[TopicPartition, BrokerError]:
    """Moves in flight whose cancel would take a partition below its min.insync.replicas: what was
    added is in sync, and what was there before is not. The controller would do it, and producers
    with acks=all would be refused from then on.

    Of what cannot be read nothing is held back.

    :param in_steps: partitions that may have new replicas of steps that are done: those go, too.
        The controller does not refuse that, even where it leaves none in sync.
    :raises ClusterError: the cluster did not answer.
    """
    left = {}
    for move in moves:
        state, entry = (
            observation.partitions.get(move.partition),
            observation.ongoing.get(move.partition),
        )
        if state is None:
            continue
        if move.partition in in_steps:
            before = state.isr.intersection(move.current)
        elif entry is None:
            continue
        else:
            before = state.isr.difference(entry.adding)
        if before == state.isr:
            continue
        if before or move.partition in in_steps:  # else the controller itself refuses
            left[move.partition] = len(before), len(state.isr), len(move.current)
    least = min_isr_of(cluster, {partition.topic for partition in left})
    errors = {}
    for partition, (kept, now, replicas) in left.items():
        needed = max(min(least.get(partition.topic, 0), replicas), 0 if kept else 1)
        if kept < needed <= now:
            text = f"a cancel would leave {kept} in sync, below min.insync.replicas={needed}"
            text = text if kept else "a cancel would leave none in sync"
            errors[partition] = ErrorCode.NOT_ENOUGH_REPLICAS.error(text)
    return errors
