"""The one module on kafka-python's connections: any request, to any broker, bounded in time.

kafka-python has the protocol messages that librdkafka lacks, but its admin client asks one broker
after the other, gives up on all when one is dead, and sets no limit to a TLS handshake. So Rehome
keeps the library's connections and event loop and does its own routing:

- *which brokers are alive* is asked of several brokers at once; the first answer wins, so that a
  broker that hangs costs nothing (metadata from a race is always fresh);
- *what is asked* goes to all brokers concurrently, each with its own limit; one that does not
  answer is named with a reason, and the rest is kept.

``KafkaConnectionManager`` and ``NetworkSelector`` are not part of kafka-python's public interface:
``tests/cluster/clients/test_wire.py`` says when an upgrade breaks what is used of them here.
"""

from __future__ import annotations

import concurrent.futures
import functools
import logging
import random
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import kafka.errors as kafka_errors
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from rehome.cluster.connection.settings import Connection
from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import ClusterUnreachableError, broker_error
from rehome.domain.kafka import BrokerError
from rehome.errors import PickledAsRaised

log = logging.getLogger(__name__)
T = TypeVar("T")

# Brokers asked for metadata at once: enough that a few hanging ones do not matter.
RACERS = 4
# ClusterAuthorizedOperations left the metadata response after version 10.
METADATA_API_VERSION = 10
MAX_RESPONSE_BYTES = 1 << 30

NodeId = int | str

# Every failed connection is returned to the caller; the library would also log each as an error.
logging.getLogger("kafka.net").setLevel(logging.CRITICAL)


class NoAnswerError(PickledAsRaised, Exception):
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
        self._tokens = connection.login.tokens if connection.login else None
        self._greetings: dict[NodeId, Future] = {}
        self._lock = threading.Lock()
        self._started = False

    def close(self) -> None:
        """Close every connection and stop the loop's thread."""
        if not self._started:
            return
        self._loop.call_soon_threadsafe(self._manager.close)
        self._loop.stop(timeout_ms=2000)
        self._loop.close()

    def metadata(self, topics: Iterable[str] | None = (), *, operations: bool = False) -> Any:
        """A fresh MetadataResponse.

        :param topics: names, () for none, None for every topic this principal may describe.
        :param operations: ask what this principal may do to each topic. What it may do to the
            cluster is always asked.
        :raises NoAnswerError: when no broker answers; the reason of the last one.
        """
        names = None if topics is None else list(topics)
        return self._run(lambda: self._metadata(names, operations))

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

    def ask_bootstrap(self, request: Any) -> list[Any]:
        """Send a request to every bootstrap server, for listeners that serve no metadata.

        :returns: the answers of those that gave one.
        """
        return self._run(lambda: self._ask_bootstrap(request))

    # -- on the loop's thread ---------------------------------------------------------------

    async def _metadata(self, topics: list[str] | None, operations: bool) -> Any:
        brokers, node = await self._race()
        if topics == []:
            return brokers
        return await self._ask(node, metadata_request(topics, operations))

    async def _race(self) -> tuple[Any, NodeId]:
        """Who is there, by the first of several nodes to answer: known brokers, else bootstrap."""
        brokers = [broker.node_id for broker in self._manager.cluster.brokers()]
        random.shuffle(brokers)
        bootstrap = [broker.node_id for broker in self._manager.cluster.bootstrap_brokers()]
        failure = ErrorCode.BROKER_NOT_AVAILABLE.error("no bootstrap server is known")
        for nodes in filter(None, (brokers[:RACERS], bootstrap)):
            try:
                response, node = await self._manager.wait_for(
                    self._first_of(nodes), self._connect_timeout_ms
                )
            except NoAnswerError as error:
                failure = error.error
            except kafka_errors.KafkaTimeoutError:
                failure = _too_late("no broker answered", self._connect_timeout_ms)
            else:
                self._manager.cluster.update_metadata(response)
                return response, node
        raise NoAnswerError(failure)

    def _first_of(self, nodes: Sequence[NodeId]) -> Future:
        """(answer, node) of the first node to answer; fails when all have failed."""
        first: Future = Future()
        waiting = set(nodes)

        def won(node: NodeId, response: Any) -> None:
            if not first.is_done:
                first.success((response, node))

        def lose(node: NodeId, error: Exception) -> None:
            waiting.discard(node)
            if not waiting and not first.is_done:
                first.failure(error)

        for node in nodes:
            answer = self._greet(node)
            answer.add_callback(functools.partial(won, node))
            answer.add_errback(functools.partial(lose, node))
        return first

    def _greet(self, node: NodeId) -> Future:
        """Ask a node which brokers are alive. A node that hangs gets one request at a time."""
        greeting = self._greetings.get(node)
        if greeting is None or greeting.is_done:
            greeting = self._manager.call_soon(self._ask, node, metadata_request([], False))
            self._greetings[node] = greeting
        return greeting

    async def _ask_each(
        self, requests: Mapping[int, Any]
    ) -> tuple[dict[int, Any], dict[int, BrokerError]]:
        await self._race()
        alive = {broker.node_id for broker in self._manager.cluster.brokers()}
        missing = {
            broker: ErrorCode.BROKER_NOT_AVAILABLE.error("the broker is not alive")
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

    async def _ask_bootstrap(self, request: Any) -> list[Any]:
        pending = [
            self._manager.call_soon(self._ask, server.node_id, request)
            for server in self._manager.cluster.bootstrap_brokers()
        ]
        answers = []
        for future in pending:
            try:
                answers.append(await future)
            except NoAnswerError as error:
                log.warning("A controller gave no answer: %s", error)
        return answers

    async def _ask(self, node: NodeId, request: Any) -> Any:
        """One request to one node, within connect_timeout_s + request_timeout_s."""
        limit_ms = self._request_timeout_ms
        try:
            connection = await self._connection_to(node)
            return await self._manager.wait_for(
                connection.send_request(request, request_timeout_ms=limit_ms), limit_ms
            )
        except (kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError) as error:
            raise NoAnswerError(_too_late("no answer", limit_ms)) from error
        except kafka_errors.KafkaError as error:
            raise NoAnswerError(_client_side(error)) from error

    async def _connection_to(self, node: NodeId) -> Any:
        delay_s = self._manager.connection_delay(node)
        if delay_s > 0:
            await self._loop.sleep(delay_s)
        connection = self._manager.get_connection(
            node, timeout_ms=self._connect_timeout_ms, refresh_metadata_on_err=False
        )
        try:
            if not connection.connected:
                await self._manager.wait_for(connection.init_future, self._connect_timeout_ms)
            await self._wait_until_unpaused(connection)
        except (kafka_errors.KafkaTimeoutError, kafka_errors.RequestTimedOutError) as error:
            # The library ends requests of the set-up that are not answered in this time, with
            # RequestTimedOutError, but no TLS handshake: give the connection up here, or every
            # later request would queue behind it.
            connection.close(error)
            raise NoAnswerError(
                _too_late("no connection was ready", self._connect_timeout_ms)
            ) from error
        return connection

    async def _wait_until_unpaused(self, connection: Any) -> None:
        """Wait while the broker's quota, or the limit of requests in flight, holds us back."""
        for _ in range(self._connect_timeout_ms // 50):
            if connection.closed or not connection.paused:
                return
            await self._loop.sleep(0.05)
        raise kafka_errors.KafkaTimeoutError("held back by the broker's quota")

    def _run(self, work: Callable[[], Awaitable[T]]) -> T:
        if self._tokens is not None:
            try:  # here, for a token server that is slow would hold up every answer on the loop
                self._tokens.current()
            except ClusterUnreachableError as error:
                raise NoAnswerError(broker_error(58, str(error))) from error
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
            raise NoAnswerError(_too_late("the client gave up", self._patience_s * 1000)) from error


def metadata_request(topics: list[str] | None, operations: bool = False) -> Any:
    """Metadata of these topics, of none ([]), or of all (None)."""
    return MetadataRequest(
        topics=None
        if topics is None
        else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=topics == [],
        include_topic_authorized_operations=operations,
        max_version=METADATA_API_VERSION,
    )


def _too_late(what: str, limit_ms: float) -> BrokerError:
    return ErrorCode.REQUEST_TIMED_OUT.error(f"{what} within {limit_ms / 1000:g} s")


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
