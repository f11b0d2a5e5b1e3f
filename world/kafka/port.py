"""How a client sees the cluster: every call of ``ClusterPort``, through brokers with views.

A call takes no virtual time by itself, except where the real client would wait: for an answer that
does not come (its timeout), for a broker to catch up, for a controller. Before and after each call
the port's hooks run; there the scheduler lets others act, and faults strike.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from rehome.cluster.interface.errors import (
    ClusterError,
)
from rehome.cluster.interface.rights import Call, naming_right
from rehome.domain.configs import ConfigChange, ConfigResource
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    ReplicaId,
    TopicPartition,
)
from world.kafka import answers, config_answers
from world.kafka import errors as codes
from world.kafka.acls import AclResource, Operation
from world.kafka.calling import (
    PARTITIONS_PER_REQUEST,
    UNKNOWN_STATE,
)
from world.kafka.reading_port import ReadingPort


class ModelPort(ReadingPort):
    """Implements :class:`rehome.cluster.interface.port.ClusterPort` on a model."""

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[BrokerId] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> dict[TopicPartition, BrokerError | None]:
        """Start, change or (None) cancel reassignments: the verdict per partition."""
        verdicts: dict[TopicPartition, BrokerError | None] = {}
        parts = list(targets)
        for first in range(0, len(parts), PARTITIONS_PER_REQUEST):
            batch = parts[first : first + PARTITIONS_PER_REQUEST]
            asked = {part: targets[part] for part in batch}
            try:
                verdicts |= self._call(
                    Call.ALTER_REASSIGNMENTS,
                    (asked,),
                    partial(self._alter, asked, allow_replication_factor_change),
                    controller=True,
                    state_left=UNKNOWN_STATE,
                )
            except ClusterError as error:
                if not verdicts:
                    raise
                verdicts |= dict.fromkeys(batch, answers.of_whole_request(error))
        return verdicts

    def _alter(
        self, targets: Mapping[TopicPartition, Sequence[BrokerId] | None], may_change: bool
    ) -> dict[TopicPartition, BrokerError | None]:
        self._require(Operation.ALTER, Call.ALTER_REASSIGNMENTS)
        controller = self._model.controller
        may_change = may_change or self._model.version < (4, 1)  # older ones know no such switch
        return {
            part: controller.error_of(
                partial(controller.alter_reassignment, part, target, may_change)
            )
            for part, target in targets.items()
        }

    def alter_configs(
        self, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> dict[ConfigResource, BrokerError | None]:
        """IncrementalAlterConfigs: the verdict per resource."""
        wanted: dict[ConfigResource, list[ConfigChange]] = {}
        for change in config_answers.lists_joined(changes):
            wanted.setdefault(change.resource, []).append(change)
        own = {int(one.name): one for one in wanted if config_answers.of_one_broker(one)}
        others = [one for one in wanted if not config_answers.of_one_broker(one)]
        verdicts: dict[ConfigResource, BrokerError | None] = {}
        if others:
            verdicts |= self._call(
                Call.ALTER_CONFIGS,
                (tuple(change for one in others for change in wanted[one]), validate_only),
                lambda: {
                    one: config_answers.altered(self, self._any(), one, wanted[one], validate_only)
                    for one in others
                },
                controller=True,
                state_left=UNKNOWN_STATE,
            )
        if own:
            verdicts |= self._call(
                Call.ALTER_CONFIGS,
                (tuple(change for one in own.values() for change in wanted[one]), validate_only),
                lambda: self._alter_own(own, wanted, validate_only),
                state_left=UNKNOWN_STATE,
            )
        return {
            one: naming_right(verdicts[one], Call.ALTER_CONFIGS, config_answers.topic_of(one))
            for one in wanted
        }

    def _alter_own(
        self,
        own: Mapping[BrokerId, ConfigResource],
        wanted: Mapping[ConfigResource, Sequence[ConfigChange]],
        validate_only: bool,
    ) -> dict[ConfigResource, BrokerError | None]:
        found, missing = self._each(
            own,
            lambda node: config_answers.altered(
                self, node, own[node.id], wanted[own[node.id]], validate_only
            ),
            controller=True,
        )
        verdicts = {own[broker]: answer for broker, answer in found.items()}
        for broker, reason in missing.items():
            one = own[broker]
            if self.controllers_named and self._world.controllers_up:
                verdicts[one] = config_answers.altered(self, None, one, wanted[one], validate_only)
            else:
                verdicts[one] = reason
        return verdicts

    def alter_replica_log_dirs(
        self, targets: Mapping[ReplicaId, str]
    ) -> dict[ReplicaId, BrokerError | None]:
        """Move replicas between log dirs of their brokers: each broker's verdict per replica."""

        def ask() -> dict[ReplicaId, BrokerError | None]:
            by_broker: dict[BrokerId, dict[ReplicaId, str]] = {}
            for replica, path in targets.items():
                by_broker.setdefault(replica.broker, {})[replica] = path
            found, missing = self._each(
                by_broker, lambda node: answers.log_dirs_altered(self, node, by_broker[node.id])
            )
            verdicts: dict[ReplicaId, BrokerError | None] = {
                replica: missing.get(replica.broker) for replica in targets
            }
            for each in found.values():
                for replica, verdict in each.items():
                    verdicts[replica] = naming_right(verdict, Call.ALTER_REPLICA_LOG_DIRS)
            return verdicts

        return self._call(Call.ALTER_REPLICA_LOG_DIRS, (targets,), ask, state_left=UNKNOWN_STATE)

    def create_partitions(
        self,
        totals: Mapping[str, int],
        assignments: Mapping[str, Sequence[Sequence[BrokerId]]] | None = None,
        *,
        validate_only: bool = False,
    ) -> dict[str, BrokerError | None]:
        """Raise topics to these partition totals: the verdict per topic."""
        if not totals:
            return {}
        controller = self._model.controller

        def ask() -> dict[str, BrokerError | None]:
            return {
                name: self._topic_verdict(
                    Call.CREATE_PARTITIONS,
                    name,
                    self.may(self._world.image, Operation.ALTER, AclResource.TOPIC, name),
                    partial(
                        controller.create_partitions,
                        name,
                        total,
                        (assignments or {}).get(name),
                        validate_only,
                    ),
                )
                for name, total in totals.items()
            }

        return self._call(
            Call.CREATE_PARTITIONS,
            (totals, assignments, validate_only),
            ask,
            controller=True,
            state_left=UNKNOWN_STATE,
        )

    def create_topics(
        self,
        assignments: Mapping[str, Sequence[Sequence[BrokerId]]],
        configs: Mapping[str, Mapping[str, str]],
        *,
        validate_only: bool = False,
    ) -> dict[str, BrokerError | None]:
        """Create topics with these replicas and configs: the verdict per topic."""
        if not assignments:
            return {}
        controller = self._model.controller

        def ask() -> dict[str, BrokerError | None]:
            everywhere = self.may(self._world.image, Operation.CREATE, AclResource.CLUSTER)
            return {
                name: self._topic_verdict(
                    Call.CREATE_TOPICS,
                    name,
                    everywhere
                    or self.may(self._world.image, Operation.CREATE, AclResource.TOPIC, name),
                    partial(
                        controller.create_topic, name, rows, configs.get(name, {}), validate_only
                    ),
                )
                for name, rows in assignments.items()
            }

        return self._call(
            Call.CREATE_TOPICS,
            (assignments, configs, validate_only),
            ask,
            controller=True,
            state_left=UNKNOWN_STATE,
        )

    def elect_preferred_leaders(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, BrokerError | None]:
        """Hand leadership to the preferred replicas; None also where they lead already."""
        if not partitions:
            return {}
        controller = self._model.controller

        def ask() -> dict[TopicPartition, BrokerError | None]:
            self._require(Operation.ALTER, Call.ELECT_LEADERS)
            verdicts = {
                part: controller.error_of(partial(controller.elect, part)) for part in partitions
            }
            needless = codes.ELECTION_NOT_NEEDED
            return {
                part: None if error is not None and error.code == needless else error
                for part, error in verdicts.items()
            }

        return self._call(
            Call.ELECT_LEADERS, (partitions,), ask, controller=True, state_left=UNKNOWN_STATE
        )
