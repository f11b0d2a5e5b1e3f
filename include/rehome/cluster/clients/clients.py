"""The clients behind the gateway, made on first use, and their failures in Rehome's words."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar, cast

from confluent_kafka import KafkaException

from rehome.cluster.clients.librdkafka import CallTimedOutError, Librdkafka
from rehome.cluster.clients.wire import NoAnswerError, Wire
from rehome.cluster.connection.check import check_connection
from rehome.cluster.connection.settings import Connection
from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import ClusterError, MissingRightError, broker_error
from rehome.cluster.interface.rights import Call

T = TypeVar("T")
C = TypeVar("C", Wire, Librdkafka)

UNANSWERED = ErrorCode.UNKNOWN_SERVER_ERROR.error("the broker's answer leaves it out")
_UNCHANGED = "The request changed nothing."
UNKNOWN_STATE = "It is not known whether the cluster acted on it; the next reading shows it."
CONTROLLER_ATTEMPTS = 3
CONTROLLER_PAUSE_S = 0.5


class Clients:
    """Connections of one gateway, of three kinds.

    ``reads``: what brokers answer by themselves. ``controller``: what waits for the controller,
    and every write; with the controller away these stand still and must not hold up the reads.
    ``admin``: confluent-kafka, for the writes it has.
    """

    def __init__(
        self, connection: Connection, request_timeout_s: float, connect_timeout_s: float
    ) -> None:
        self._connection = connection
        self._request_timeout_s = request_timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._made: dict[str, Wire | Librdkafka] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close every connection. Idempotent; a later call connects again."""
        with self._lock:
            made, self._made = list(self._made.values()), {}
        for client in made:
            client.close()

    @property
    def reads(self) -> Wire:
        """For what brokers answer by themselves."""
        return self._wire("reads", self._connection)

    @property
    def controller(self) -> Wire:
        """For what waits for the controller, and for writes."""
        return self._wire("controller", self._connection)

    @property
    def admin(self) -> Librdkafka:
        """confluent-kafka."""
        return self._make("admin", lambda **options: Librdkafka(self._connection, **options))

    def ask(self, call: Call, question: Callable[[], T], *, state_left: str = _UNCHANGED) -> T:
        """Put a question to the wire; ``call`` names it in errors.

        :raises ClusterUnreachableError: with the cause, when no broker can be reached or
            authenticated against.
        :raises ClusterError: when it does, but this question got no answer.
        """
        try:
            return question()
        except NoAnswerError as error:
            check_connection(self._connection, self._connect_timeout_s)
            raise ClusterError(
                f"{call.api} got no answer",
                error=error.error,
                state_left=state_left,
                next_step="Is the controller up? Try again when it is.",
            ) from error

    def ask_controller(self, call: Call, request: Any, *, state_left: str = _UNCHANGED) -> Any:
        """A request that any broker passes on to the controller, refused as a whole or not.

        :raises MissingRightError: when the principal may not do this.
        :raises ClusterError: on any other refusal of the whole, or no answer.
        """
        for attempt in range(CONTROLLER_ATTEMPTS):
            answer = self.ask(call, lambda: self.controller.ask_any(request), state_left=state_left)
            code = getattr(answer, "error_code", 0)
            if code != ErrorCode.NOT_CONTROLLER or attempt == CONTROLLER_ATTEMPTS - 1:
                break
            time.sleep(CONTROLLER_PAUSE_S)
        refuse(call, code, getattr(answer, "error_message", None))
        return answer

    def ask_quorum(self, request: Any) -> Any | None:
        """A request to the controllers' own listener.

        :returns: the active controller's answer, None when there is none or it is out of reach.
        """
        address = self._connection.of_controllers()
        if address is None:
            return None
        quorum = self._wire("quorum", address)
        for answer in quorum.ask_bootstrap(request):
            if all(item.error_code != ErrorCode.NOT_CONTROLLER for item in answer.responses):
                return answer
        return None

    def ask_admin(self, call: Call, question: Callable[[], T]) -> T:
        """Put a question to confluent-kafka. Raises as :meth:`ask_controller` does."""
        try:
            return question()
        except KafkaException as error:
            reason = error.args[0]
            refuse(call, reason.code(), reason.str())
            raise
        except CallTimedOutError as error:
            check_connection(self._connection, self._connect_timeout_s)
            raise ClusterError(
                f"{call.api} got no answer",
                error=broker_error(7, str(error)),
                state_left=UNKNOWN_STATE if error.sent else _UNCHANGED,
                next_step="Is the controller up? Try again when it is.",
            ) from error

    def _wire(self, name: str, connection: Connection) -> Wire:
        return self._make(name, lambda **options: Wire(connection, **options))

    def _make(self, name: str, build: Callable[..., C]) -> C:
        with self._lock:
            if not self._made:
                # Neither library says why it cannot connect; this does, before they try.
                check_connection(self._connection, self._connect_timeout_s)
            client = self._made.get(name)
            if client is None:
                client = self._made[name] = build(
                    client_id=f"rehome-{name}",
                    request_timeout_s=self._request_timeout_s,
                    connect_timeout_s=self._connect_timeout_s,
                )
            return cast(C, client)


def refuse(call: Call, code: int, message: str | None = None) -> None:
    """Raise what a refusal of a whole call means; code 0 is none."""
    if code == 0:
        return
    if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        # The broker's message prints its own internals here, and says no more than the name.
        raise MissingRightError(call.api, call.right, error=broker_error(code))
    raise ClusterError(f"{call.api} was refused", error=broker_error(code, message))


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of at most ``size`` items, in order."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
