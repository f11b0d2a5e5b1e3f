"""How a call of a client goes: through brokers that answer or do not, with faults that strike."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, TypeVar

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import (
    ClusterError,
    ClusterUnreachableError,
    MissingRightError,
    Unreachable,
)
from rehome.cluster.interface.rights import Call, naming_right
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
)
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


class CallingPort:
    """What every call of a port needs.

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
