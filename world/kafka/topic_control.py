"""Topics and their partitions: created, deleted, raised, and who may have a replica.

Texts and order of checks are those of ReplicationControlManager and Topic in Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerId
from world.kafka import config_rules
from world.kafka import errors as codes
from world.kafka.controlling import Controlling
from world.kafka.errors import Refusal
from world.kafka.metadata import Partition, PartitionKey, Table
from world.kafka.topic_names import check_topic_name, colliding

CORDONS_COUNT = (4, 4)
"""From this version on manual assignments go to no broker whose log dirs are all cordoned."""


class TopicControl(Controlling):
    """What the active controller does to topics."""

    def create_topic(
        self,
        name: str,
        assignment: Sequence[Sequence[BrokerId]],
        configs: Mapping[str, str],
        validate_only: bool = False,
    ) -> None:
        """Create a topic with these replicas.

        :raises Refusal: 17, 36, 39 or 40.
        """
        image = self._world.image
        if name in image.topics:
            raise Refusal(codes.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        check_topic_name(name)
        like = colliding(name, image.topics)
        if like is not None:
            raise Refusal(
                codes.INVALID_TOPIC, f"Topic '{name}' collides with existing topic: {like}"
            )
        config_rules.check_topic_values(configs)
        config_rules.check_tiered(configs, self._tiers_there)
        topic_id, factor = self._world.new_id(), None
        records = [Table("topics", name, topic_id), Table("names", topic_id, name)]
        if configs:
            records.append(Table("configs", ConfigResource.topic(name), dict(configs)))
        for number, replicas in enumerate(assignment):
            self.check_assignment(replicas, factor)
            factor = len(replicas)
            records.append(self._new(topic_id, number, replicas))
        if not validate_only:
            self._world.commit(records)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, its configs too.

        :raises Refusal: 3.
        """
        image = self._world.image
        topic_id = image.topics.get(name)
        if topic_id is None:
            raise Refusal(codes.UNKNOWN_TOPIC_OR_PARTITION)
        records = [
            Table("partitions", PartitionKey(topic_id, number), None)
            for number in image.of_topic(name)
        ]
        records.append(Table("topics", name, None))
        records.append(Table("names", topic_id, None))
        if ConfigResource.topic(name) in image.configs:
            records.append(Table("configs", ConfigResource.topic(name), None))
        self._world.commit(records)

    def create_partitions(
        self,
        name: str,
        total: int,
        assignment: Sequence[Sequence[BrokerId]] | None,
        validate_only: bool = False,
    ) -> None:
        """Raise a topic to ``total`` partitions; without an assignment replicas are chosen here.

        :raises Refusal: 3, 37 or 39.
        """
        parts = self._world.image.of_topic(name)
        if not parts:
            raise Refusal(codes.UNKNOWN_TOPIC_OR_PARTITION, "Broker: Unknown topic or partition")
        if total == len(parts):
            raise Refusal(codes.INVALID_PARTITIONS, f"Topic already has {len(parts)} partition(s).")
        if total < len(parts):
            raise Refusal(
                codes.INVALID_PARTITIONS,
                f"The topic {name} currently has {len(parts)} partition(s); {total} would not be "
                "an increase.",
            )
        more, factor = total - len(parts), len(parts[0].replicas)
        if assignment is not None and len(assignment) != more:
            raise Refusal(
                codes.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {more} additional partition(s), but only {len(assignment)} "
                "assignment(s) were specified.",
            )
        records = []
        for place in range(more):
            replicas = assignment[place] if assignment is not None else self._place(factor, place)
            self.check_assignment(replicas, factor)
            topic_id = self._world.image.topics[name]
            records.append(self._new(topic_id, len(parts) + place, replicas))
        if not validate_only:
            self._world.commit(records)

    def _place(self, factor: int, turn: int) -> list[BrokerId]:
        """Stripes over the brokers that are active and have a log dir that is not cordoned."""
        brokers = [
            one.broker
            for one in self._world.image.brokers.values()
            if not one.fenced and set(one.online_dirs) - set(one.cordoned_dirs)
        ]
        brokers.sort()
        if len(brokers) < factor:
            raise Refusal(
                codes.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {factor} time(s): The target replication "
                f"factor of {factor} cannot be reached because only {len(brokers)} broker(s) are "
                "registered.",
            )
        first = self._world.rng.randrange(len(brokers)) + turn
        return [brokers[(first + step) % len(brokers)] for step in range(factor)]

    def _new(self, topic_id: str, number: int, replicas: Sequence[BrokerId]) -> Table:
        isr = tuple([broker for broker in replicas if self.active(broker)])
        if not isr:
            raise Refusal(
                codes.INVALID_REPLICA_ASSIGNMENT,
                "All brokers specified in the manual partition assignment for partition "
                f"{number} are fenced or in controlled shutdown.",
            )
        return Table(
            "partitions",
            PartitionKey(topic_id, number),
            Partition(replicas=tuple(replicas), isr=isr, leader=isr[0]),
        )

    def check_assignment(self, replicas: Sequence[BrokerId], factor: int | None = None) -> None:
        """The manual assignment of one partition (validateManualPartitionAssignment).

        :raises Refusal: 39.
        """
        said = "The manual partition assignment includes"
        if not replicas:
            raise Refusal(codes.INVALID_REPLICA_ASSIGNMENT, f"{said} an empty replica list.")
        before = None
        for broker in sorted(replicas):
            if broker not in self._world.image.brokers:
                raise Refusal(
                    codes.INVALID_REPLICA_ASSIGNMENT,
                    f"{said} broker {broker}, but no such broker is registered.",
                )
            registration = self._world.image.brokers[broker]
            cordoned = set(registration.online_dirs) <= set(registration.cordoned_dirs)
            if cordoned and self._world.version >= CORDONS_COUNT:
                raise Refusal(
                    codes.INVALID_REPLICA_ASSIGNMENT,
                    f"{said} broker {broker}, but all its log directories are cordoned.",
                )
            if broker == before:
                raise Refusal(
                    codes.INVALID_REPLICA_ASSIGNMENT,
                    f"{said} the broker {broker} more than once.",
                )
            before = broker
        if factor is not None and len(replicas) != factor:
            raise Refusal(
                codes.INVALID_REPLICA_ASSIGNMENT,
                f"{said} a partition with {len(replicas)} replica(s), but this is not consistent "
                f"with previous partitions, which have {factor} replica(s).",
            )
