"""What every request to the active controller needs: partitions found, terms, records put."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rehome.domain.kafka import BrokerError, BrokerId, TopicPartition
from world.kafka import errors as codes
from world.kafka.config_definitions import MIN_ISR, TIERS_THERE, UNCLEAN
from world.kafka.errors import Refusal
from world.kafka.metadata import Partition, PartitionKey, Table
from world.kafka.partition_changes import Election, Terms, change
from world.kafka.world_state import WorldState

ELR = "eligible.leader.replicas.version"


class Controlling:
    """The active controller's view of a world."""

    def __init__(self, world: WorldState) -> None:
        self._world = world

    @property
    def elr_enabled(self) -> bool:
        """Whether eligible leader replicas are kept: new clusters since 4.1 do."""
        return self._world.image.features.get(ELR, 0) > 0

    @property
    def _tiers_there(self) -> bool:
        return any(node.static.get(TIERS_THERE) == "true" for node in self._world.nodes.values())

    def active(self, broker: BrokerId) -> bool:
        """Whether a broker may be in an ISR: neither fenced nor shutting down."""
        known = self._world.image.brokers.get(broker)
        return known is not None and not known.fenced and not known.shutting_down

    def error_of(self, action: Callable[[], None]) -> BrokerError | None:
        """Do something; returns how it was refused."""
        try:
            action()
        except Refusal as refusal:
            return refusal.error
        return None

    def _find(self, part: TopicPartition) -> tuple[PartitionKey, Partition]:
        if part.topic not in self._world.image.topics:
            raise Refusal(
                codes.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {part.topic}."
            )
        found = self._world.partition(part)
        if found is None:
            raise Refusal(
                codes.UNKNOWN_TOPIC_OR_PARTITION,
                f"Unable to find partition {part.topic}:{part.partition}.",
            )
        return found

    def _terms(self, topic: str, part: Partition) -> Terms:
        image = self._world.image
        min_isr = int(self._world.topic_config(image, topic, MIN_ISR))
        first = image.of_topic(topic).get(0, part)
        unclean = self._world.topic_config(image, topic, UNCLEAN).strip().lower() == "true"

        def acceptable(broker: BrokerId) -> bool:
            path = dict(part.dirs).get(broker)
            known = image.brokers.get(broker)
            online = known is not None and (path is None or path in known.online_dirs)
            return self.active(broker) and online

        return Terms(
            acceptable,
            min(min_isr, len(first.replicas)),
            self.elr_enabled,
            Election.UNCLEAN if unclean else Election.ONLINE,
        )

    def _put(self, key: PartitionKey, before: Partition, after: Partition) -> None:
        if after is not before and after != before:
            self._world.commit([Table("partitions", key, after)])

    def _without(self, broker: BrokerId, which: Callable[[Partition], bool]) -> None:
        """Take a broker out of ISRs, and out of the lead."""
        self._change_all(
            lambda part: (broker in part.isr or part.leader == broker) and which(part),
            lambda part, terms: change(
                part,
                replace(terms, acceptable=lambda one: one != broker and terms.acceptable(one)),
                out_of_isr(part, broker),
            ),
        )

    def _change_all(
        self,
        which: Callable[[Partition], bool],
        how: Callable[[Partition, Terms], Partition],
    ) -> None:
        for key, before in list(self._world.image.partitions.items()):
            if which(before):
                topic = self._world.image.names[key.topic_id]
                self._put(key, before, how(before, self._terms(topic, before)))


def out_of_isr(part: Partition, broker: BrokerId) -> Partition:
    """A partition whose ISR lacks a broker."""
    return replace(part, isr=tuple([one for one in part.isr if one != broker]))
