"""What the active controller does: topics, reassignments, elections, ISRs, brokers' lives.

Every method is one request or one event, checked and committed at once. Texts and order of checks
are those of ReplicationControlManager, ClusterControlManager and Topic in Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from include.domain.configs import ConfigChange, ConfigResource, ResourceType
from include.domain.kafka import BrokerError, BrokerId, TopicPartition
from world.kafka import config_rules
from world.kafka import errors as codes
from world.kafka.config_definitions import MIN_ISR, TIERS_THERE, UNCLEAN
from world.kafka.errors import Refusal
from world.kafka.metadata import Partition, PartitionKey, Paths, Registration, Table
from world.kafka.partition_changes import (
    Election,
    Terms,
    change,
    reassigned,
    reverted,
    target_of,
)
from world.kafka.topic_names import check_topic_name, colliding
from world.kafka.world_state import WorldState

CORDONS_COUNT = (4, 4)
"""From this version on manual assignments go to no broker whose log dirs are all cordoned."""
ELR = "eligible.leader.replicas.version"


class Controller:
    """The active controller of a world."""

    def __init__(self, world: WorldState) -> None:
        self._world = world

    # -- reassignments ------------------------------------------------------------------------

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

    # -- topics -------------------------------------------------------------------------------

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

    # -- elections ----------------------------------------------------------------------------

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

    # -- what brokers report ------------------------------------------------------------------

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

    # -- brokers' lives -----------------------------------------------------------------------

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
                    _out_of_isr(part, new.broker),
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

    def _without(self, broker: BrokerId, which: Callable[[Partition], bool]) -> None:
        """Take a broker out of ISRs, and out of the lead."""
        self._change_all(
            lambda part: (broker in part.isr or part.leader == broker) and which(part),
            lambda part, terms: change(
                part,
                replace(terms, acceptable=lambda one: one != broker and terms.acceptable(one)),
                _out_of_isr(part, broker),
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

    # -- configs ------------------------------------------------------------------------------

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

    # -- small things -------------------------------------------------------------------------

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


def _out_of_isr(part: Partition, broker: BrokerId) -> Partition:
    return replace(part, isr=tuple([one for one in part.isr if one != broker]))
