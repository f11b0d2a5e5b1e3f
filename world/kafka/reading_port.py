"""What a client of the model may read: every call of ``ClusterPort`` that changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import (
    ClusterError,
)
from rehome.cluster.interface.rights import Call, naming_right
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    ClusterDescription,
    ConfigValue,
    ConsumerGroup,
    HighWatermark,
    LogDir,
    OngoingReassignment,
    Partial,
    ReplicaId,
    SupportedVersions,
    TopicDescription,
    TopicPartition,
)
from world.kafka import answers, config_answers
from world.kafka.acls import AclResource, Operation
from world.kafka.calling import (
    CATCH_UP_ATTEMPTS,
    CATCH_UP_PAUSE_S,
    CallingPort,
)
from world.kafka.nodes import Process


class ReadingPort(CallingPort):
    """The reads of a port."""

    # -- reads that brokers answer by themselves ----------------------------------------------

    def describe_cluster(self) -> ClusterDescription:
        """Who is alive, as one broker knows it."""
        return self._call(
            Call.DESCRIBE_CLUSTER, (), lambda: answers.cluster(self._model, self, self._any())
        )

    def finalized_features(self) -> Mapping[str, int]:
        """Levels of features, as one broker knows them."""
        return self._call(Call.API_VERSIONS, (), lambda: dict(self._any().view.image.features))

    def supported_versions(
        self, brokers: Collection[BrokerId]
    ) -> Partial[dict[BrokerId, SupportedVersions]]:
        """What each of these brokers can, as far as the model knows versions."""
        return self._call(
            Call.API_VERSIONS,
            (brokers,),
            lambda: Partial(*self._each(brokers, answers.supported_versions)),
        )

    def describe_topics(
        self, names: Collection[str] | None = None, *, operations: bool = False
    ) -> dict[str, TopicDescription]:
        """Topics, as one broker knows them."""
        if names is not None and not names:
            return {}
        return self._call(
            Call.DESCRIBE_TOPICS,
            (names,),
            lambda: answers.topics(self, self._any().view.image, names, operations),
        )

    def describe_log_dirs(
        self,
        brokers: Collection[BrokerId] | None = None,
        partitions: Collection[TopicPartition] | None = None,
    ) -> Partial[list[LogDir]]:
        """Log dirs, each from its own broker."""
        return self._call(
            Call.DESCRIBE_LOG_DIRS,
            (brokers, partitions),
            lambda: self._describe_log_dirs(brokers, partitions),
        )

    def _describe_log_dirs(
        self, brokers: Collection[BrokerId] | None, partitions: Collection[TopicPartition] | None
    ) -> Partial[list[LogDir]]:
        known = self._known_alive()
        found, missing = self._each(
            sorted(known) if brokers is None else brokers,
            lambda node: (
                self.may(node.view.image, Operation.DESCRIBE, AclResource.CLUSTER)
                and answers.log_dirs(self._model, node, partitions)
            ),
        )
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED.error()
        refusing = [broker for broker, answer in found.items() if answer is False]
        if brokers is None and refusing and len(refusing) == len(found):
            raise self._lacks(Call.DESCRIBE_LOG_DIRS)
        missing |= dict.fromkeys(refusing, naming_right(refused, Call.DESCRIBE_LOG_DIRS))
        return Partial([one for dirs in found.values() if dirs for one in dirs], missing)

    def log_end_offsets(
        self, replicas: Collection[ReplicaId]
    ) -> Partial[dict[ReplicaId, int | BrokerError]]:
        """Log end offset of each replica, from its own broker."""
        return self._offsets(replicas, answers.log_end)

    def log_start_offsets(
        self, replicas: Collection[ReplicaId]
    ) -> Partial[dict[ReplicaId, int | BrokerError]]:
        """Where each replica's log on its own broker's disk begins."""
        return self._offsets(replicas, answers.local_log_start)

    def high_watermarks(
        self, leaders: Mapping[TopicPartition, BrokerId]
    ) -> Partial[dict[TopicPartition, HighWatermark | BrokerError]]:
        """High watermark of each partition, from its leader."""

        def ask() -> Partial[dict[TopicPartition, HighWatermark | BrokerError]]:
            by_leader: dict[BrokerId, list[TopicPartition]] = {}
            for partition, leader in sorted(leaders.items()):
                by_leader.setdefault(leader, []).append(partition)
            found, missing = self._each(
                by_leader, lambda node: answers.high_watermarks(self, node, by_leader[node.id])
            )
            return Partial({p: at for each in found.values() for p, at in each.items()}, missing)

        return self._call(Call.LIST_OFFSETS, (leaders,), ask)

    def _offsets(
        self, replicas: Collection[ReplicaId], which: answers.Offset
    ) -> Partial[dict[ReplicaId, int | BrokerError]]:
        def ask() -> Partial[dict[ReplicaId, int | BrokerError]]:
            by_broker: dict[BrokerId, list[ReplicaId]] = {}
            for replica in sorted(replicas):
                by_broker.setdefault(replica.broker, []).append(replica)
            found, missing = self._each(
                by_broker, lambda node: answers.offsets(self, node, by_broker[node.id], which)
            )
            return Partial(
                {one: at for each in found.values() for one, at in each.items()}, missing
            )

        return self._call(Call.LIST_OFFSETS, (replicas,), ask)

    def consumer_groups(self) -> Partial[list[ConsumerGroup]]:
        """Every group, with what it has committed, from its coordinator."""

        def ask() -> Partial[list[ConsumerGroup]]:
            found, missing = self._each(
                sorted(self._known_alive()), lambda node: answers.groups(self, node)
            )
            groups = [group for each in found.values() for group in each]
            return Partial(sorted(groups, key=lambda group: group.name), missing)

        return self._call(Call.LIST_GROUPS, (), ask)

    def describe_configs(
        self, resources: Collection[ConfigResource], keys: Collection[str] | None = None
    ) -> dict[ConfigResource, dict[str, ConfigValue] | BrokerError]:
        """Configs of topics from one broker, a broker's own from that broker."""

        def ask() -> dict[ConfigResource, dict[str, ConfigValue] | BrokerError]:
            own = {int(r.name): r for r in resources if config_answers.of_one_broker(r)}
            others = [
                resource for resource in resources if not config_answers.of_one_broker(resource)
            ]
            found: dict[ConfigResource, dict[str, ConfigValue] | BrokerError] = {}
            shown: dict[ConfigResource, int] = {}
            if others:
                node = self._any()
                shown |= dict.fromkeys(others, node.view.read_to)
                found |= {one: config_answers.configs(self, node, one, keys) for one in others}
            if own:
                got, missing = self._each(
                    own, lambda node: config_answers.configs(self, node, own[node.id], keys)
                )
                found |= {own[broker]: answer for broker, answer in got.items()}
                found |= {own[broker]: error for broker, error in missing.items()}
                nodes = self._world.nodes
                shown |= {own[broker]: nodes[broker].view.read_to for broker in got}
            self.hooks.after_reading(shown)
            return {
                one: naming_right(found[one], Call.DESCRIBE_CONFIGS, config_answers.topic_of(one))
                for one in resources
            }

        return self._call(Call.DESCRIBE_CONFIGS, (resources, keys), ask)

    # -- calls that wait for the controller ---------------------------------------------------

    def list_reassignments(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        """What is in flight, as the controller knows it."""
        if partitions is not None and not partitions:
            return {}

        def ask() -> dict[TopicPartition, OngoingReassignment]:
            self._require(Operation.DESCRIBE, Call.LIST_REASSIGNMENTS)
            return answers.reassignments(self._world, partitions)

        return self._call(Call.LIST_REASSIGNMENTS, (partitions,), ask, controller=True)

    def current_topics(self, names: Collection[str] | None) -> dict[str, TopicDescription]:
        """Topics from a broker that has read all that the controllers had written at the call."""
        if names is not None and not names:
            return {}

        def ask() -> dict[str, TopicDescription]:
            self._require(Operation.DESCRIBE, Call.DESCRIBE_QUORUM)
            committed = self._world.log.end
            for attempt in range(CATCH_UP_ATTEMPTS):
                if attempt:
                    self._wait(CATCH_UP_PAUSE_S)
                ready = [
                    node
                    for node in self._world.nodes.values()
                    if node.view.read_to >= committed and node.process is Process.RUNNING
                ]
                if ready:
                    node = self._world.rng.choice(ready)
                    return answers.topics(self, node.view.image, names, False)
            raise ClusterError(
                "No broker has read the metadata log as far as the controller has written it, so "
                "what they "
                "say of topics may be out of date",
                state_left="What is in flight goes on.",
                next_step="Look at the brokers' connections to the controllers.",
            )

        return self._call(Call.DESCRIBE_QUORUM, (names,), ask, controller=True)
