"""What the active controller does: reassignments, elections, ISRs, brokers' lives, configs.

Every method is one request or one event, checked and committed at once. Texts and order of checks
are those of ReplicationControlManager, ClusterControlManager and Topic in Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rehome.domain.configs import ConfigChange, ConfigResource, ResourceType
from rehome.domain.kafka import BrokerId, TopicPartition
from world.kafka import config_rules
from world.kafka import errors as codes
from world.kafka.controlling import out_of_isr
from world.kafka.errors import Refusal
from world.kafka.metadata import PartitionKey, Paths, Registration, Table
from world.kafka.partition_changes import Election, change, reassigned, reverted, target_of
from world.kafka.topic_control import TopicControl
from world.kafka.topic_names import check_topic_name


class Controller(TopicControl):
    """The active controller of a world."""

    # -- reassignments -------------------------------------------------------------------------

    def alter_reassignment(
        self, part: TopicPartition, target: Sequence[BrokerId] | None, may_change_factor: bool
    ) -> None:
        """Begin, change or (None) cancel one reassignment.

        :raises Refusal: 3, 38, 39 or 85.
        """
        key, before = self._find(part)
        if target is None:
            if not before.reassigning:
                raise Refusal(codes.NO_REASSIGNMENT_IN_PROGRESS)
            after = reverted(before, self._terms(part.topic, before), part.topic, part.partition)
        else:
            self.check_assignment(target)
            now, new = len(target_of(before)), len(target)
            if not may_change_factor and now != new:
                raise Refusal(
                    codes.INVALID_REPLICATION_FACTOR,
                    f"The replication factor is changed from {now} to {new}",
                )
            terms = replace(self._terms(part.topic, before), election=Election.ONLINE)
            after = reassigned(before, target, terms)
        self._put(key, before, after)

    # -- elections -----------------------------------------------------------------------------

    def elect(self, part: TopicPartition, unclean: bool = False) -> None:
        """ElectLeaders of one partition.

        :raises Refusal: 3, 80, 83 or 84.
        """
        image = self._world.image
        if part.topic not in image.topics:
            raise Refusal(codes.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {part.topic}")
        found = self._world.partition(part)
        if found is None:
            raise Refusal(codes.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {part}")
        key, before = found
        if before.leader is not None and (unclean or before.leader == before.replicas[0]):
            raise Refusal(codes.ELECTION_NOT_NEEDED)
        election = Election.UNCLEAN if unclean else Election.PREFERRED
        after = change(before, replace(self._terms(part.topic, before), election=election))
        if after is before:
            code = (
                codes.ELIGIBLE_LEADERS_NOT_AVAILABLE
                if unclean
                else codes.PREFERRED_LEADER_NOT_AVAILABLE
            )
            raise Refusal(code, codes.STANDARD[code])
        self._put(key, before, after)

    def elect_unclean_where_allowed(self) -> None:
        """Partitions without a leader whose topic allows unclean elections get one."""
        for key, before in list(self._world.image.partitions.items()):
            topic = self._world.image.names[key.topic_id]
            terms = self._terms(topic, before)
            if before.leader is None and terms.election is Election.UNCLEAN:
                self._put(key, before, change(before, terms))

    def elect_preferred_everywhere(self) -> None:
        """What auto.leader.rebalance.enable does: every preferred leader that may lead does."""
        for key, before in list(self._world.image.partitions.items()):
            if before.leader is not None and before.leader != before.replicas[0]:
                terms = self._terms(self._world.image.names[key.topic_id], before)
                preferred = replace(terms, election=Election.PREFERRED)
                self._put(key, before, change(before, preferred))

    # -- what brokers report -------------------------------------------------------------------

    def alter_isr(
        self, key: PartitionKey, leader: BrokerId, epoch: int, isr: set[BrokerId]
    ) -> bool:
        """AlterPartition of a leader; returns whether it was accepted."""
        before = self._world.image.partitions.get(key)
        if before is None or before.leader != leader or before.leader_epoch != epoch:
            return False
        if not isr <= set(before.replicas) or not all(map(self.active, isr)):
            return False
        order = [broker for broker in before.isr if broker in isr]
        order += sorted(isr - set(order))
        topic = self._world.image.names[key.topic_id]
        wanted = replace(before, recovering=False, isr=tuple(order))
        after = change(before, self._terms(topic, before), wanted)
        self._put(key, before, after)
        return True

    def assign_dir(self, key: PartitionKey, broker: BrokerId, path: str) -> None:
        """AssignReplicasToDirs: a broker tells where a replica is."""
        before = self._world.image.partitions.get(key)
        if before is None or broker not in before.replicas or (broker, path) in before.dirs:
            return
        dirs = (*(pair for pair in before.dirs if pair[0] != broker), (broker, path))
        self._world.commit([Table("partitions", key, replace(before, dirs=dirs))])

    def dirs_offline(self, broker: BrokerId, online: Paths) -> None:
        """A heartbeat tells which log dirs have failed: their replicas leave ISR and lead."""
        registration = self._world.image.brokers[broker]
        gone = set(registration.online_dirs) - set(online)
        if not gone:
            return
        self._world.commit([Table("brokers", broker, replace(registration, online_dirs=online))])
        self._without(broker, lambda part: dict(part.dirs).get(broker) in gone)

    def dirs_cordoned(self, broker: BrokerId, cordoned: Paths) -> None:
        """A heartbeat tells which log dirs take no replicas (KIP-1066)."""
        registration = self._world.image.brokers.get(broker)
        if registration is not None and registration.cordoned_dirs != cordoned:
            new = replace(registration, cordoned_dirs=cordoned)
            self._world.commit([Table("brokers", broker, new)])

    # -- brokers' lives ------------------------------------------------------------------------

    def register(self, new: Registration, clean: bool) -> None:
        """A broker that has started is taken in, fenced at first.

        After an unclean end it is no longer trusted to have what its ISR had (KIP-966).
        """
        self._world.commit([Table("brokers", new.broker, replace(new, fenced=True))])
        if not clean and self.elr_enabled:
            self._change_all(
                lambda part: new.broker in (*part.isr, *part.elr),
                lambda part, terms: change(
                    part,
                    terms,
                    out_of_isr(part, new.broker),
                    unclean_shutdown=new.broker,
                ),
            )

    def unfence(self, broker: BrokerId) -> None:
        """A broker has caught up: it may lead again."""
        registration = self._world.image.brokers.get(broker)
        if registration is None or not registration.fenced:
            return
        unfenced = replace(registration, fenced=False, shutting_down=False)
        self._world.commit([Table("brokers", broker, unfenced)])
        self._change_all(lambda part: part.leader is None, change)

    def fence(self, broker: BrokerId) -> None:
        """A broker is silent, or has shut down."""
        registration = self._world.image.brokers.get(broker)
        if registration is None or registration.fenced:
            return
        self._world.commit([Table("brokers", broker, replace(registration, fenced=True))])
        self._without(broker, lambda part: True)

    def unregister(self, broker: BrokerId) -> None:
        """UnregisterBroker: the cluster forgets a broker."""
        self._without(broker, lambda part: True)
        self._world.commit([Table("brokers", broker, None)])

    def shut_down(self, broker: BrokerId) -> None:
        """A clean shutdown begins: leaders are handed over first."""
        registration = self._world.image.brokers[broker]
        going = replace(registration, shutting_down=True)
        self._world.commit([Table("brokers", broker, going)])
        self._without(broker, lambda part: True)

    # -- configs -------------------------------------------------------------------------------

    def alter_configs(
        self,
        resource: ConfigResource,
        changes: Sequence[ConfigChange],
        validate_only: bool = False,
    ) -> None:
        """IncrementalAlterConfigs of one resource, as far as the controller decides.

        :raises Refusal: 3, 17, 40 or 42.
        """
        image = self._world.image
        now = image.config(resource)
        values = config_rules.altered(resource, now, changes)
        if resource.type is ResourceType.TOPIC:
            if not resource.name:
                raise Refusal(codes.INVALID_REQUEST, "Default topic resources are not allowed.")
            check_topic_name(resource.name)
            config_rules.check_topic_values(values)
            config_rules.check_tiered(values, self._tiers_there)
            if resource.name not in image.topics:
                raise Refusal(
                    codes.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist."
                )
        elif self.elr_enabled:
            config_rules.check_min_isr(resource, changes)
        if not validate_only and values != now:
            self._world.commit([Table("configs", resource, values or None)])
