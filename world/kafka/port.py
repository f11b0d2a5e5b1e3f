"""How a client sees the cluster: every call of ``ClusterPort``, through brokers with views.

A call takes no virtual time by itself, except where the real client would wait: for an answer that
does not come (its timeout), for a broker to catch up, for a controller. Before and after each call
the port's hooks run; there the scheduler lets others act, and faults strike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from include.cluster.interface.error_codes import ErrorCode
from include.cluster.interface.errors import (
    ClusterError,
    ClusterUnreachableError,
    MissingRightError,
    Unreachable,
)
from include.cluster.interface.rights import Call, naming_right
from include.domain.configs import ConfigChange, ConfigResource
from include.domain.kafka import (
    BrokerError,
    BrokerId,
    ClusterDescription,
    ConfigValue,
    ConsumerGroup,
    LogDir,
    OngoingReassignment,
    Partial,
    ReplicaId,
    TopicDescription,
    TopicPartition,
)
from world.kafka import answers
from world.kafka import errors as codes
from world.kafka.acls import AclResource, Binding, Operation, allowed
from world.kafka.controller import Controller
from world.kafka.hooks import Fault, FaultKind, Hooks
from world.kafka.metadata import Image, Paths
from world.kafka.nodes import Node, Process
from world.kafka.world_state import WorldState

if TYPE_CHECKING:
    from world.kafka.cluster import KafkaModel

T = TypeVar("T")

TIMEOUT_S = 10.0
CONTROLLER_ATTEMPTS, CONTROLLER_PAUSE_S = 3, 0.5
CATCH_UP_ATTEMPTS, CATCH_UP_PAUSE_S = 20, 0.1
PARTITIONS_PER_REQUEST = 5_000
UNKNOWN_STATE = "It is not known whether the cluster acted on it; the next reading shows it."
UNCHANGED = "The request changed nothing."
NOT_ALIVE = ErrorCode.BROKER_NOT_AVAILABLE.error("the broker is not alive")
NO_ANSWER = ErrorCode.REQUEST_TIMED_OUT.error(f"no answer within {TIMEOUT_S:g} s")
NO_CONNECTION = ErrorCode.NETWORK_EXCEPTION.error("connection refused")


class ModelPort:
    """Implements :class:`include.cluster.interface.port.ClusterPort` on a model.

    :param principal: who asks: "User:rehome".
    :param controllers_named: whether the connection names the controllers' own listener, so that
        the configs of a broker that is dead can be changed.
    """

    def __init__(
        self, model: KafkaModel, principal: str, name: str, controllers_named: bool = False
    ) -> None:
        self._model = model
        self._world = model.world
        self.principal = principal
        self._name = name
        self.controllers_named = controllers_named
        self.hooks = Hooks()
        self._fault: Fault | None = None

    @property
    def name(self) -> str:
        """How people know the connection."""
        return self._name

    # -- reads that brokers answer by themselves ----------------------------------------------

    def describe_cluster(self) -> ClusterDescription:
        """Who is alive, as one broker knows it."""
        return self._call(
            Call.DESCRIBE_CLUSTER, (), lambda: answers.cluster(self._model, self, self._any())
        )

    def finalized_features(self) -> Mapping[str, int]:
        """Levels of features, as one broker knows them."""
        return self._call(Call.API_VERSIONS, (), lambda: dict(self._any().view.image.features))

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
            own = {int(r.name): r for r in resources if answers.of_one_broker(r)}
            others = [resource for resource in resources if not answers.of_one_broker(resource)]
            found: dict[ConfigResource, dict[str, ConfigValue] | BrokerError] = {}
            if others:
                node = self._any()
                found |= {one: answers.configs(self, node, one, keys) for one in others}
            if own:
                got, missing = self._each(
                    own, lambda node: answers.configs(self, node, own[node.id], keys)
                )
                found |= {own[broker]: answer for broker, answer in got.items()}
                found |= {own[broker]: error for broker, error in missing.items()}
            return {
                one: naming_right(found[one], Call.DESCRIBE_CONFIGS, answers.topic_of(one))
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
                "No broker has read the metadata log as far as the controller has written it",
                state_left="What is in flight goes on.",
                next_step="Look at the brokers' connections to the controllers.",
            )

        return self._call(Call.DESCRIBE_QUORUM, (names,), ask, controller=True)

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
        for change in answers.lists_joined(changes):
            wanted.setdefault(change.resource, []).append(change)
        own = {int(one.name): one for one in wanted if answers.of_one_broker(one)}
        others = [one for one in wanted if not answers.of_one_broker(one)]
        verdicts: dict[ConfigResource, BrokerError | None] = {}
        if others:
            verdicts |= self._call(
                Call.ALTER_CONFIGS,
                (tuple(change for one in others for change in wanted[one]), validate_only),
                lambda: {
                    one: answers.altered(self, self._any(), one, wanted[one], validate_only)
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
            one: naming_right(verdicts[one], Call.ALTER_CONFIGS, answers.topic_of(one))
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
            lambda node: answers.altered(
                self, node, own[node.id], wanted[own[node.id]], validate_only
            ),
            controller=True,
        )
        verdicts = {own[broker]: answer for broker, answer in found.items()}
        for broker, reason in missing.items():
            one = own[broker]
            if self.controllers_named and self._world.controllers_up:
                verdicts[one] = answers.altered(self, None, one, wanted[one], validate_only)
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

    # -- how a call goes ----------------------------------------------------------------------

    def _call(
        self,
        call: Call,
        args: tuple[Any, ...],
        ask: Callable[[], T],
        *,
        controller: bool = False,
        state_left: str = UNCHANGED,
    ) -> T:
        fault = self.hooks.before_call(call, args)
        self._fault = fault
        self._model.catch_up_with_clock()
        kind = fault.kind if fault is not None else None
        self._meet(call, kind, controller, state_left)
        answer = ask()
        self.hooks.after_call(call, args)
        self._model.catch_up_with_clock()
        if kind is FaultKind.ANSWER_LOST:
            self._wait(TIMEOUT_S)
            raise _no_answer(call, state_left)
        return answer

    def _meet(self, call: Call, kind: FaultKind | None, controller: bool, state_left: str) -> None:
        """What keeps a whole call from being answered."""
        if kind is FaultKind.REFUSED or not any(
            node.process in (Process.RUNNING, Process.PAUSED) for node in self._world.nodes.values()
        ):
            raise ClusterUnreachableError(
                f"{self._name}: no broker accepts a connection",
                cause=Unreachable.REFUSED,
                next_step="Check that the brokers run.",
            )
        if not any(node.running for node in self._world.nodes.values()):
            self._wait(TIMEOUT_S)
            raise ClusterUnreachableError(
                f"{self._name}: no broker answers", cause=Unreachable.NO_ANSWER
            )
        if kind is FaultKind.REQUEST_LOST:
            self._wait(TIMEOUT_S)
            raise _no_answer(call, state_left)
        if not controller:
            return
        if kind is FaultKind.NOT_CONTROLLER:
            for _ in range(CONTROLLER_ATTEMPTS - 1):
                self._wait(CONTROLLER_PAUSE_S)
            raise ClusterError(f"{call.api} was refused", error=ErrorCode.NOT_CONTROLLER.error())
        if not self._world.controller_sees(self._any()):
            self._wait(TIMEOUT_S)
            raise _no_answer(call, state_left)

    def _each(
        self,
        brokers: Collection[BrokerId],
        ask: Callable[[Node], T],
        *,
        controller: bool = False,
    ) -> tuple[dict[BrokerId, T], dict[BrokerId, BrokerError]]:
        """Ask each broker for itself: the answers, and for each without one the reason."""
        alive = self._known_alive()
        found: dict[BrokerId, T] = {}
        missing: dict[BrokerId, BrokerError] = {}
        fault = self._fault
        lost = fault.broker if fault is not None else None
        for broker in sorted(brokers):
            node = self._world.nodes.get(broker)
            if broker not in alive or node is None:
                missing[broker] = NOT_ALIVE
            elif node.process in (Process.DEAD, Process.REGISTERING):
                missing[broker] = NO_CONNECTION
            elif node.process is Process.PAUSED or (
                controller and not self._world.controller_sees(node)
            ):
                missing[broker] = NO_ANSWER
            elif broker == lost and fault is not None:
                missing[broker] = NO_ANSWER
                if fault.kind is FaultKind.BROKER_ANSWER_LOST:
                    ask(node)
            else:
                found[broker] = ask(node)
        if NO_ANSWER in missing.values():
            self._wait(TIMEOUT_S)
        return found, missing

    def _any(self) -> Node:
        """The broker that answers fastest: one that runs."""
        running = [node for node in self._world.nodes.values() if node.running]
        return self._world.rng.choice(running)

    def _known_alive(self) -> set[BrokerId]:
        """Brokers in a fresh metadata answer."""
        image = self._any().view.image
        return {one.broker for one in image.brokers.values() if not one.fenced}

    def _wait(self, seconds: float) -> None:
        self._model.clock.wait(seconds)
        self._model.catch_up_with_clock()

    # -- for the answers ----------------------------------------------------------------------

    @property
    def world(self) -> WorldState:
        """The truth."""
        return self._world

    @property
    def controller(self) -> Controller:
        """The active controller."""
        return self._model.controller

    def cordoned(self, node: Node) -> Paths:
        """Log dirs that a broker takes for cordoned."""
        return self._model.brokers.cordoned(node)

    def changed(self) -> None:
        """Something was changed that moves data."""
        self._world.flows_changed = True

    def may(
        self, image: Image, operation: Operation, resource: AclResource, name: str = "kafka-cluster"
    ) -> bool:
        """Whether a node that has read this lets the port's principal do something."""
        if not self._world.secured or self.principal in self._world.super_users:
            return True
        bindings: Collection[Binding] = image.acls
        return allowed(bindings, self.principal, operation, resource, name)

    def _require(self, operation: Operation, call: Call) -> None:
        if not self.may(self._world.image, operation, AclResource.CLUSTER):
            raise self._lacks(call)

    def _lacks(self, call: Call) -> MissingRightError:
        refusal = ErrorCode.CLUSTER_AUTHORIZATION_FAILED.error()
        return MissingRightError(call.api, call.right, error=refusal)

    def _topic_verdict(
        self, call: Call, topic: str, may: bool, action: Callable[[], None]
    ) -> BrokerError | None:
        if not may:
            return naming_right(ErrorCode.TOPIC_AUTHORIZATION_FAILED.error(), call, topic)
        return self._model.controller.error_of(action)


def _no_answer(call: Call, state_left: str) -> ClusterError:
    return ClusterError(
        f"{call.api} got no answer",
        error=NO_ANSWER,
        state_left=state_left,
        next_step="Is the controller up? Try again when it is.",
    )
