"""The writes that confluent-kafka has: new partitions and leader elections. Bounded in time.

librdkafka keeps one broker in mind as "the controller" of its admin calls, and can wait for it in
vain when it dies, although the others would answer. A fresh client does not remember it: it gets
the second half of a call's time, when the first half ended without the request being sent.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import confluent_kafka
from confluent_kafka import ElectionType, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from rehome.cluster.connection.settings import Connection
from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import broker_error
from rehome.domain.kafka import BrokerError, TopicPartition
from rehome.errors import PickledAsRaised

log = logging.getLogger(__name__)
T = TypeVar("T")

_GAVE_UP = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
# How librdkafka says that a timed-out request never left: it was looking for its controller.
_NEVER_SENT = "waiting for controller"


class CallTimedOutError(PickledAsRaised, Exception):
    """librdkafka gave up on the whole call; ``sent`` says whether a broker may have acted on it."""

    def __init__(self, what: str, *, sent: bool) -> None:
        self.sent = sent
        super().__init__(what)


class Librdkafka:
    """An admin client of one cluster. Connects on first use; thread-safe."""

    def __init__(
        self,
        connection: Connection,
        *,
        client_id: str,
        request_timeout_s: float,
        connect_timeout_s: float,
    ) -> None:
        self._request_timeout_s = request_timeout_s
        self._settings = {
            **connection.librdkafka_settings(),
            "client.id": client_id,
            "socket.timeout.ms": max(1000, int(request_timeout_s * 1000)),
            "socket.connection.setup.timeout.ms": max(1000, int(connect_timeout_s * 1000)),
            "topic.metadata.refresh.interval.ms": 5000,
            "reconnect.backoff.max.ms": 1000,
            # Whatever goes wrong is returned to the caller; librdkafka would print it as well.
            "log_level": 0,
        }
        self._client: AdminClient | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Let go of the client; librdkafka closes its connections when nothing refers to it."""
        self._client = None

    def create_partitions(
        self,
        totals: Mapping[str, int],
        assignments: Mapping[str, Sequence[Sequence[int]]],
        *,
        validate_only: bool,
    ) -> dict[str, BrokerError | None]:
        """CreatePartitions; assignments are those of the new partitions only.

        :raises CallTimedOutError: when no broker answered in time.
        """
        new = [
            NewPartitions(name, total, [list(replicas) for replicas in assignments[name]])
            if name in assignments
            else NewPartitions(name, total)
            for name, total in totals.items()
        ]
        return self._create(AdminClient.create_partitions, new, validate_only)

    def create_topics(
        self,
        assignments: Mapping[str, Sequence[Sequence[int]]],
        configs: Mapping[str, Mapping[str, str]],
        *,
        validate_only: bool,
    ) -> dict[str, BrokerError | None]:
        """CreateTopics with the replicas of every partition.

        :raises CallTimedOutError: when no broker answered in time.
        """
        new = [
            NewTopic(
                name,
                num_partitions=len(rows),
                replica_assignment=[list(row) for row in rows],
                config=dict(configs.get(name, {})),
            )
            for name, rows in assignments.items()
        ]
        return self._create(AdminClient.create_topics, new, validate_only)

    def _create(
        self,
        create: Callable[..., dict[str, Future[None]]],
        new: Sequence[Any],
        validate_only: bool,
    ) -> dict[str, BrokerError | None]:
        def call(client: AdminClient, timeout_s: float) -> dict[str, BrokerError | None]:
            bounds = {"operation_timeout": timeout_s, "request_timeout": timeout_s}
            futures = create(client, new, validate_only=validate_only, **bounds)
            return {name: _verdict(future, timeout_s) for name, future in futures.items()}

        return self._twice(call)

    def elect_preferred_leaders(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, BrokerError | None]:
        """ElectLeaders, preferred (KIP-460). None also where the preferred replica led already.

        :raises KafkaException: when the call is refused as a whole.
        :raises CallTimedOutError: when no broker answered in time.
        """

        def call(client: AdminClient, timeout_s: float) -> dict[TopicPartition, BrokerError | None]:
            # The client's own request_timeout raises SystemError here: the wait is bounded instead.
            future = client.elect_leaders(
                ElectionType.PREFERRED,
                [confluent_kafka.TopicPartition(p.topic, p.partition) for p in partitions],
            )
            return {
                TopicPartition(elected.topic, elected.partition): (
                    broker_error(error.code(), error.str())
                    if error and error.code() != ErrorCode.ELECTION_NOT_NEEDED
                    else None
                )
                for elected, error in _result(future, timeout_s).items()
            }

        return self._twice(call)

    def _twice(self, call: Callable[[AdminClient, float], T]) -> T:
        half_s = self._request_timeout_s / 2
        try:
            return call(self._current(), half_s)
        except CallTimedOutError as error:
            self.close()
            if error.sent:
                raise
            log.info("A fresh client takes over: %s", error)
            return call(self._current(), half_s)

    def _current(self) -> AdminClient:
        with self._lock:
            if self._client is None:
                self._client = AdminClient(self._settings)
            return self._client


def _verdict(future: Future[Any], timeout_s: float) -> BrokerError | None:
    try:
        _result(future, timeout_s)
    except KafkaException as error:
        return broker_error(error.args[0].code(), error.args[0].str())
    return None


def _result(future: Future[Any], timeout_s: float) -> Any:
    try:
        return future.result(timeout=timeout_s + 0.5)
    except TimeoutError as error:
        raise CallTimedOutError(f"no answer within {timeout_s:g} s", sent=True) from error
    except KafkaException as error:
        reason = error.args[0]
        if reason.code() in _GAVE_UP:
            raise CallTimedOutError(reason.str(), sent=_NEVER_SENT not in reason.str()) from error
        raise
