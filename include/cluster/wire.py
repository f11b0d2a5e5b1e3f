"""The one module on kafka-python's connections: any request, to any broker, bounded in time.

kafka-python has the protocol messages that librdkafka lacks, but its admin client asks one broker
after the other, gives up on all when one is dead, and sets no limit to a TLS handshake. So Rehome
keeps the library's connections and event loop and does its own routing:

- *who is there* is asked of several brokers at once; the first answer wins, so that one hanging
  broker costs nothing (metadata from a race is always fresh);
- *what is asked* goes to all brokers concurrently, each with its own limit; whoever does not
  answer is named with a reason, and the rest is kept.

``KafkaConnectionManager`` and ``NetworkSelector`` are not part of kafka-python's public interface:
``tests/cluster/test_wire.py`` says when an upgrade breaks what is used of them here.
"""

from __future__ import annotations

import concurrent.futures
import logging
import random
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

import kafka.errors as kafka_errors
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from include.cluster.connection import Connection
from include.cluster.errors import broker_error
from include.cluster.model import BrokerError

log = logging.getLogger(__name__)
T = TypeVar("T")

# Brokers asked for metadata at once: enough that a few hanging ones do not matter.
RACERS = 4
# ClusterAuthorizedOperations left the metadata response after version 10.
METADATA_VERSION = 10
MAX_RESPONSE_BYTES = 1 << 30

NodeId = int | str


class NoAnswerError(Exception):
    """A broker, or every broker asked, gave no answer; ``error`` says why."""

    def __init__(self, error: BrokerError) -> None:
        self.error = error
        super().__init__(str(error))


class Wire:
    """Connections to the brokers of one cluster, for one kind of traffic.

    Thread-safe. Connects on first use. ``request_timeout_s`` bounds an answer and
    ``connect_timeout_s`` a connection, TLS handshake and SASL included.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        client_id: str,
        request_timeout_s: float,
        connect_timeout_s: float,
    ) -> None:
        self._request_timeout_ms = int(request_timeout_s * 1000)
        self._connect_timeout_ms = int(connect_timeout_s * 1000)
        # One DNS look-up blocks the loop for as long as the resolver likes: the caller's own bound.
        self._patience_s = 2 * request_timeout_s + 2 * connect_timeout_s + 5
        self._loop = NetworkSelector(client_id=client_id, slow_task_threshold_secs=0)
        self._manager = KafkaConnectionManager(
            self._loop,
            client_id=client_id,
            request_timeout_ms=self._request_timeout_ms,
            socket_connection_setup_timeout_ms=self._connect_timeout_ms,
            socket_connection_setup_timeout_max_ms=self._connect_timeout_ms,
            reconnect_backoff_ms=50,
            reconnect_backoff_max_ms=500,
            max_in_flight_requests_per_connection=100,
            receive_message_max_bytes=MAX_RESPONSE_BYTES,
            **connection.kafka_python_settings(),
        )
        self._lock = threading.Lock()
        self._started = False

    def close(self) -> None:
        """Close every connection and stop the loop's thread."""
        if not self._started:
            return
        self._loop.call_soon_threadsafe(self._manager.close)
        self._loop.stop(timeout_ms=2000)
        self._loop.close()

    def metadata(
        self, topics: Iterable[str] | None = (), *, operations: bool = False
    ) -> tuple[Any, NodeId]:
        """A fresh MetadataResponse, and the broker that gave it.

        :param topics: names, () for none, None for every topic this principal may describe.
        :param operations: ask what this principal may do to the cluster and to each topic.
        :raises NoAnswerError: when no broker answers; the reason of the last one.
        """
        wanted = None if topics is None else list(topics)
        return self._run(lambda: self._metadata(wanted, operations))

    def ask_each(
        self, requests: Mapping[int, Any]
    ) -> tuple[dict[int, Any], dict[int, BrokerError]]:
        """Send each broker its request, all at once.

        :returns: the answers, and for each broker without one the reason.
        :raises NoAnswerError: when no broker at all is there.
        """
        return self._run(lambda: self._ask_each(requests))

    def ask_any(self, request: Any) -> Any:
        """Send a request to the broker that answers fastest now.

        :raises NoAnswerError: when no broker is there, or the one asked does not answer.
        """
        return self._run(lambda: self._ask_any(request))

    def ask_bootstrap(self, request: Any) -> list[tuple[Any, BrokerError | None]]:
        """Send a request to every bootstrap server; for listeners that serve no metadata."""
        return self._run(lambda: self._ask_bootstrap(request))

    # -- on the loop's thread ---------------------------------------------------------------

    async def _metadata(self, topics: list[str] | None, operations: bool) -> tuple[Any, NodeId]:
        response, node = await self._race(operations)
        if topics == []:
            return response, node
        request = MetadataRequest(
            topics=topics,
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=operations,
            max_version=METADATA_VERSION,
        )
        return await self._ask(node, request), node

    async def _race(self, operations: bool = False) -> tuple[Any, NodeId]:
        """Ask several nodes for the brokers; known ones first, bootstrap servers with them."""
        known = [broker.node_id for broker in self._manager.cluster.brokers()]
        bootstrap = [broker.node_id for broker in self._manager.cluster.bootstrap_brokers()]
        random.shuffle(known)
        random.shuffle(bootstrap)
        rounds = [known[:RACERS], bootstrap] if known else [bootstrap]
        last = BrokerError(8, "BROKER_NOT_AVAILABLE", "no bootstrap server is known")
        for nodes in rounds:
            winner, last = await self._first(nodes, operations)
            if winner is not None:
                self._manager.cluster.update_metadata(winner[0])
                return winner
        raise NoAnswerError(last)

    async def _first(
        self, nodes: list[NodeId], operations: bool
    ) -> tuple[tuple[Any, NodeId] | None, BrokerError]:
        finished: Future = Future()
        failures: list[BrokerError] = []

        async def run(node: NodeId) -> None:
            request = MetadataRequest(
                topics=MetadataRequest.NO_TOPICS,
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=operations,
                include_topic_authorized_operations=False,
                max_version=METADATA_VERSION,
            )
            try:
                response = await self._ask(node, request)
            except NoAnswerError as error:
                failures.append(error.error)
                if len(failures) == len(nodes) and not finished.is_done:
                    finished.success(None)
            else:
                if not finished.is_done:
                    finished.success((response, node))

        for node in nodes:
            self._manager.call_soon(run, node)
        winner = await finished
        return winner, failures[-1] if failures else BrokerError(0, "NONE")

    async def _ask_each(
        self, requests: Mapping[int, Any]
    ) -> tuple[dict[int, Any], dict[int, BrokerError]]:
        await self._race()
        alive = {broker.node_id for broker in self._manager.cluster.brokers()}
        missing = {
            broker: BrokerError(8, "BROKER_NOT_AVAILABLE", "the broker is not alive")
            for broker in requests
            if broker not in alive
        }
        pending = {
            broker: self._manager.call_soon(self._ask, broker, request)
            for broker, request in requests.items()
            if broker in alive
        }
        answers = {}
        for broker, future in pending.items():
            try:
                answers[broker] = await future
            except NoAnswerError as error:
                missing[broker] = error.error
        return answers, missing

    async def _ask_any(self, request: Any) -> Any:
        _, node = await self._race()
        return await self._ask(node, request)

    async def _ask_bootstrap(self, request: Any) -> list[tuple[Any, BrokerError | None]]:
        nodes = [broker.node_id for broker in self._manager.cluster.bootstrap_brokers()]
        answers: list[tuple[Any, BrokerError | None]] = []
        for node in nodes:
            try:
                answers.append((await self._ask(node, request), None))
            except NoAnswerError as error:
                answers.append((None, error.error))
        return answers

    async def _ask(self, node: NodeId, request: Any) -> Any:
        """One request to one node, within connect_timeout_s + request_timeout_s."""
        try:
            connection = await self._connected(node)
            while connection.paused:  # the broker's quota, or too many requests in flight
                await self._loop.sleep(0.05)
            return await self._manager.wait_for(
                connection.send_request(request, request_timeout_ms=self._request_timeout_ms),
                self._request_timeout_ms,
            )
        except (kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError) as error:
            raise NoAnswerError(
                BrokerError(
                    7, "REQUEST_TIMED_OUT", f"no answer within {self._request_timeout_ms / 1000} s"
                )
            ) from error
        except kafka_errors.KafkaError as error:
            raise NoAnswerError(_client_side(error)) from error

    async def _connected(self, node: NodeId) -> Any:
        delay_s = self._manager.connection_delay(node)
        if delay_s > 0:
            await self._loop.sleep(delay_s)
        connection = self._manager.get_connection(
            node, timeout_ms=self._connect_timeout_ms, refresh_metadata_on_err=False
        )
        if connection.connected:
            return connection
        try:
            await self._manager.wait_for(connection.init_future, self._connect_timeout_ms)
        except kafka_errors.KafkaTimeoutError as error:
            # Nothing in the library ends a handshake that is never answered: give the
            # connection up here, or every later request would queue behind it.
            connection.close(error)
            raise NoAnswerError(
                BrokerError(
                    7,
                    "REQUEST_TIMED_OUT",
                    f"accepts connections, but none was ready in {self._connect_timeout_ms / 1000} s",
                )
            ) from error
        return connection

    def _run(self, work: Callable[[], Awaitable[T]]) -> T:
        with self._lock:
            if not self._started:
                self._loop.start()
                self._started = True
        done: concurrent.futures.Future[T] = concurrent.futures.Future()

        async def task() -> None:
            try:
                done.set_result(await work())
            except BaseException as error:  # noqa: BLE001 - handed over to the caller's thread
                done.set_exception(error)

        self._loop.call_soon_threadsafe(task)
        try:
            return done.result(timeout=self._patience_s)
        except concurrent.futures.TimeoutError as error:
            raise NoAnswerError(
                BrokerError(7, "REQUEST_TIMED_OUT", f"gave up after {self._patience_s} s")
            ) from error


def _client_side(error: kafka_errors.KafkaError) -> BrokerError:
    """What happened on this side of the wire, in Kafka's own error codes."""
    code = {
        kafka_errors.SaslAuthenticationFailedError: 58,
        kafka_errors.UnsupportedSaslMechanismError: 33,
        kafka_errors.IllegalSaslStateError: 34,
        kafka_errors.IncompatibleBrokerVersion: 35,
        kafka_errors.UnknownBrokerIdError: 8,
    }.get(type(error), 13)
    return broker_error(code, str(error.args[0]) if error.args else type(error).__name__)
