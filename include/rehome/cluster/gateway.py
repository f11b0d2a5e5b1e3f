"""Every call to a cluster, in one place.

Reads that brokers answer by themselves, and calls that wait for the controller, have connections
of their own: with the controller away the latter stand still, and must not hold up the former.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import TracebackType
from typing import Self

from rehome.cluster.calls import configs, fresh_metadata, groups, high_watermarks, versions
from rehome.cluster.clients.clients import (
    UNANSWERED,
    UNKNOWN_STATE,
    Clients,
    batches,
    refuse,
)
from rehome.cluster.connection.settings import Connection
from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import ClusterError, MissingRightError, broker_error
from rehome.cluster.interface.rights import Call, naming_right
from rehome.cluster.messages import admin as messages
from rehome.cluster.messages.metadata import read_cluster, read_topics
from rehome.domain.configs import ConfigChange, ConfigResource
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

# The controller refuses a request that makes more than 10,000 records, as a whole.
PARTITIONS_PER_REQUEST = 5_000


class ClusterGateway:
    """Implements :class:`rehome.cluster.interface.port.ClusterPort` on a real cluster.

    Thread-safe; connects on first use. Use it as a context manager, or call :meth:`close`.

    :param name: how people know the connection; else its addresses are shown.
    :param request_timeout_s: bound on each answer of a broker.
    :param connect_timeout_s: bound on connecting to a broker, TLS and SASL included.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        name: str = "",
        request_timeout_s: float = 10.0,
        connect_timeout_s: float = 5.0,
    ) -> None:
        self._name = name or connection.librdkafka_settings()["bootstrap.servers"]
        self.clients = Clients(connection, request_timeout_s, connect_timeout_s)
        # What a broker may take to answer, less what the way back takes.
        self._broker_timeout_ms = int(request_timeout_s * 900)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """How people know the connection."""
        return self._name

    def close(self) -> None:
        """Close every connection. Idempotent; a later call connects again."""
        self.clients.close()

    # -- reads that brokers answer by themselves ---------------------------------------------

    def describe_cluster(self) -> ClusterDescription:
        """Who is alive by a fresh metadata answer, and what this principal may do.

        :raises ClusterUnreachableError: when no broker answers.
        """
        return read_cluster(self.clients.ask(Call.DESCRIBE_CLUSTER, self.clients.reads.metadata))

    def finalized_features(self) -> dict[str, int]:
        """Level of each finalized feature (KIP-584), as the broker that answers knows it.

        A level is finalized only while every broker supports it, and a broker that does not
        can no longer join: what a level promises holds for all of them. Needs no right.
        """
        answer = self.clients.ask(
            Call.API_VERSIONS, lambda: self.clients.reads.ask_any(messages.features_request())
        )
        refuse(Call.API_VERSIONS, answer.error_code)
        return messages.read_finalized_features(answer)

    def supported_versions(
        self, brokers: Collection[BrokerId]
    ) -> Partial[dict[BrokerId, SupportedVersions]]:
        """What each of these brokers can, by its own answer. Needs no right."""
        return versions.supported_versions(self.clients, brokers)

    def describe_topics(
        self, names: Collection[str] | None = None, *, operations: bool = False
    ) -> dict[str, TopicDescription]:
        """Topics by name. A named topic that is unknown or hidden carries the broker's error.

        Of all topics (``names=None``) Kafka silently leaves out those that this principal may not
        describe: :func:`rehome.cluster.interface.rights.hidden_topics` finds them.
        """
        if names is not None and not names:
            return {}
        return read_topics(
            self.clients.ask(
                Call.DESCRIBE_TOPICS,
                lambda: self.clients.reads.metadata(names, operations=operations),
            )
        )

    def describe_log_dirs(
        self,
        brokers: Collection[BrokerId] | None = None,
        partitions: Collection[TopicPartition] | None = None,
    ) -> Partial[list[LogDir]]:
        """Log dirs of these brokers (None: of all that are alive), all asked at once.

        A broker that refuses is among the missing, and does not stop the others from being read.

        :raises MissingRightError: every broker that is alive refuses: Cluster Describe
            is missing.
        """
        broker_ids = brokers if brokers is not None else self.describe_cluster().brokers
        request = messages.describe_log_dirs_request(partitions)
        answers, missing = self.clients.ask(
            Call.DESCRIBE_LOG_DIRS,
            lambda: self.clients.reads.ask_each(dict.fromkeys(broker_ids, request)),
        )
        dirs: list[LogDir] = []
        refusals = {broker: a.error_code for broker, a in answers.items() if a.error_code}
        if brokers is None and refusals and len(refusals) == len(answers):
            refuse(Call.DESCRIBE_LOG_DIRS, min(refusals.values()))
        for broker, answer in sorted(answers.items()):
            if broker in refusals:
                error = broker_error(refusals[broker])
                missing[broker] = naming_right(error, Call.DESCRIBE_LOG_DIRS)
                continue
            broker_dirs = messages.read_log_dirs(broker, answer)
            dirs += broker_dirs
            if not broker_dirs:
                # Brokers before 3.3 have no other way to say that the right is missing.
                missing[broker] = broker_error(
                    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                    "it shows no log dir at all: Cluster Describe is probably missing",
                )
        return Partial(dirs, missing)

    def log_end_offsets(
        self, replicas: Collection[ReplicaId]
    ) -> Partial[dict[ReplicaId, int | BrokerError]]:
        """Log end offset of each replica, from its own broker."""
        return self.offsets(replicas, messages.LATEST)

    def log_start_offsets(
        self, replicas: Collection[ReplicaId]
    ) -> Partial[dict[ReplicaId, int | BrokerError]]:
        """Offset at which each replica's log on its own broker's disk begins, tiers left out.

        Of brokers that do not know of tiers the log start offset, which is the same there.
        """
        offsets = self.offsets(replicas, messages.EARLIEST_LOCAL)
        old = {
            b for b, error in offsets.missing.items() if error.code == ErrorCode.UNSUPPORTED_VERSION
        }
        if not old:
            return offsets
        rest = self.offsets([r for r in replicas if r.broker in old], messages.EARLIEST)
        missing = {broker: e for broker, e in offsets.missing.items() if broker not in old}
        return Partial(offsets.value | rest.value, {**missing, **rest.missing})

    def offsets(
        self, replicas: Collection[ReplicaId], timestamp: int
    ) -> Partial[dict[ReplicaId, int | BrokerError]]:
        """Offsets of replicas at a timestamp of ListOffsets, each asked of its own broker."""
        requests = messages.list_offsets_requests(replicas, timestamp, self._broker_timeout_ms)
        answers, missing = self.clients.ask(
            Call.LIST_OFFSETS, lambda: self.clients.reads.ask_each(requests)
        )
        offsets: dict[ReplicaId, int | BrokerError] = {}
        for broker, answer in answers.items():
            for replica, offset in messages.read_list_offsets(broker, answer).items():
                offsets[replica] = naming_right(offset, Call.LIST_OFFSETS, replica.topic)
        return Partial(offsets, missing)

    def high_watermarks(
        self, leaders: Mapping[TopicPartition, BrokerId]
    ) -> Partial[dict[TopicPartition, HighWatermark | BrokerError]]:
        """High watermark of each partition, from its leader."""
        return high_watermarks.high_watermarks(self.clients, leaders, self._broker_timeout_ms)

    def consumer_groups(self) -> Partial[list[ConsumerGroup]]:
        """Every group with the offsets it has committed, from its own coordinator.

        A group whose offsets could not be read carries the error; a coordinator that does not list
        its groups is among the missing. Without Cluster Describe Kafka silently leaves out groups
        that this principal may not describe.
        """
        return groups.consumer_groups(self.clients, self.describe_cluster().brokers)

    def describe_configs(
        self, resources: Collection[ConfigResource], keys: Collection[str] | None = None
    ) -> dict[ConfigResource, dict[str, ConfigValue] | BrokerError]:
        """Configs of each resource, or why there are none. A broker's own come from that broker."""
        return configs.describe(self.clients, resources, keys)

    # -- calls that wait for the controller, and writes ---------------------------------------

    def list_reassignments(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        """What is in flight; of these partitions, or of the whole cluster.

        :raises MissingRightError: without Cluster Describe (or Alter, which implies it).
        """
        if partitions is not None and not partitions:
            return {}
        request = messages.list_reassignments_request(partitions, self._broker_timeout_ms)
        answer = self.clients.ask_controller(Call.LIST_REASSIGNMENTS, request)
        return messages.read_list_reassignments(answer)

    def current_topics(self, names: Collection[str] | None) -> dict[str, TopicDescription]:
        """Topics as :meth:`describe_topics` returns them, but known to be up to date.

        What a broker says that is cut off from the controller is not among it. Where brokers know
        no metadata quorum, topics on whose replicas or leaders they differ are left out.

        :raises BrokersDisagreeError: all topics were asked for, and brokers differ on one.
        :raises ClusterError: no broker is known to be up to date.
        """
        if names is not None and not names:
            return {}
        return fresh_metadata.current_topics(self.clients, names)

    def alter_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[BrokerId] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> dict[TopicPartition, BrokerError | None]:
        """Start, change or (None) cancel reassignments: the controller's verdict per partition.

        Large calls are sent in batches. A batch that fails after another was answered is returned
        per partition, so that what was accepted is never hidden: with code 31 where a right is
        missing, else with code -1, for it is not known whether the controller acted on it.

        :raises MissingRightError: without Cluster Alter.
        """
        verdicts: dict[TopicPartition, BrokerError | None] = {}
        for batch in batches(targets, PARTITIONS_PER_REQUEST):
            request = messages.alter_reassignments_request(
                {partition: targets[partition] for partition in batch},
                allow_replication_factor_change=allow_replication_factor_change,
                timeout_ms=self._broker_timeout_ms,
            )
            try:
                answer = self.clients.ask_controller(
                    Call.ALTER_REASSIGNMENTS, request, state_left=UNKNOWN_STATE
                )
            except ClusterError as error:
                if not verdicts:
                    raise
                verdicts |= dict.fromkeys(batch, _verdict_of_each(error))
            else:
                read = messages.read_alter_reassignments(answer)
                verdicts |= {part: read.get(part, UNANSWERED) for part in batch}
        return verdicts

    def alter_configs(
        self, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> dict[ConfigResource, BrokerError | None]:
        """IncrementalAlterConfigs: the verdict per resource.

        A broker accepts its own configs only. Those of a broker that is not there go to the
        controllers' listener where the connection names it; else the verdict says it is missing.
        """
        return configs.alter(self.clients, changes, validate_only=validate_only)

    def alter_replica_log_dirs(
        self, targets: Mapping[ReplicaId, str]
    ) -> dict[ReplicaId, BrokerError | None]:
        """Move replicas between log dirs of their brokers: each broker's verdict per replica."""
        requests = messages.alter_log_dirs_requests(targets)
        answers, missing = self.clients.ask(
            Call.ALTER_REPLICA_LOG_DIRS,
            lambda: self.clients.controller.ask_each(requests),
            state_left=UNKNOWN_STATE,
        )
        verdicts: dict[ReplicaId, BrokerError | None] = {
            replica: missing.get(replica.broker, UNANSWERED) for replica in targets
        }
        for broker, answer in answers.items():
            for replica, error in messages.read_alter_log_dirs(broker, answer).items():
                verdicts[replica] = naming_right(error, Call.ALTER_REPLICA_LOG_DIRS)
        return verdicts

    def create_partitions(
        self,
        totals: Mapping[str, int],
        assignments: Mapping[str, Sequence[Sequence[BrokerId]]] | None = None,
        *,
        validate_only: bool = False,
    ) -> dict[str, BrokerError | None]:
        """Raise topics to these partition totals: the verdict per topic.

        :param assignments: replicas of the new partitions, in order of partition.
        """
        if not totals:
            return {}
        verdicts = self.clients.ask_admin(
            Call.CREATE_PARTITIONS,
            lambda: self.clients.admin.create_partitions(
                totals, assignments or {}, validate_only=validate_only
            ),
        )
        return {
            topic: naming_right(error, Call.CREATE_PARTITIONS, topic)
            for topic, error in verdicts.items()
        }

    def create_topics(
        self,
        assignments: Mapping[str, Sequence[Sequence[BrokerId]]],
        configs: Mapping[str, Mapping[str, str]],
        *,
        validate_only: bool = False,
    ) -> dict[str, BrokerError | None]:
        """Create topics with these replicas and configs: the verdict per topic.

        :param assignments: replicas of each topic's partitions, in order of partition.
        """
        if not assignments:
            return {}
        verdicts = self.clients.ask_admin(
            Call.CREATE_TOPICS,
            lambda: self.clients.admin.create_topics(
                assignments, configs, validate_only=validate_only
            ),
        )
        return {
            topic: naming_right(error, Call.CREATE_TOPICS, topic)
            for topic, error in verdicts.items()
        }

    def elect_preferred_leaders(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, BrokerError | None]:
        """Hand leadership to the preferred replicas; None also where they lead already.

        :raises MissingRightError: without Cluster Alter.
        """
        if not partitions:
            return {}
        return self.clients.ask_admin(
            Call.ELECT_LEADERS, lambda: self.clients.admin.elect_preferred_leaders(partitions)
        )


def _verdict_of_each(error: ClusterError) -> BrokerError:
    """What the failure of a whole request says about each partition in it.

    Brokers check rights before they act. Any other failure may hide that the controller has acted:
    its code is that of an answer that is not known, whatever the failure's own code is.
    """
    if isinstance(error, MissingRightError) and error.error is not None:
        return naming_right(error.error, Call.ALTER_REASSIGNMENTS)
    return ErrorCode.UNKNOWN_SERVER_ERROR.error(error.what)
