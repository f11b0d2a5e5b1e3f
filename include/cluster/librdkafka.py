"""The calls that confluent-kafka has: topics, new partitions, leader elections. Bounded in time.

librdkafka keeps one broker in mind as "the controller" of its admin calls. When that broker dies
or hangs, calls time out although the others would answer; a fresh client does not remember it.
So each call gets half of its time on the client at hand, and the other half on a fresh one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
from confluent_kafka import TopicCollection as _TopicCollection
from confluent_kafka.admin import AdminClient, NewPartitions

from include.cluster import model
from include.cluster.connection import Connection
from include.cluster.errors import broker_error
from include.cluster.model import BrokerError, PartitionState, TopicDescription

log = logging.getLogger(__name__)
T = TypeVar("T")

_GAVE_UP = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)


class CallTimedOutError(Exception):
    """librdkafka gave up on the whole call."""


class Librdkafka:
    """An admin client of one cluster, for one kind of traffic. Connects on first use."""

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
        """Let go of the client; librdkafka closes its connections when nobody holds it."""
        self._client = None

    def describe_topics(
        self, names: Collection[str] | None, *, operations: bool
    ) -> dict[str, TopicDescription]:
        """Topics by name; a topic that the broker refused carries the error."""

        def call(client: AdminClient, timeout_s: float) -> dict[str, TopicDescription]:
            wanted = list(names) if names is not None else _all_topics(client, timeout_s)
            if not wanted:
                return {}
            futures = client.describe_topics(
                _TopicCollection(wanted),
                include_authorized_operations=operations,
                request_timeout=timeout_s,
            )
            return {
                name: _topic(name, future, timeout_s, operations)
                for name, future in futures.items()
            }

        return self._twice(call)

    def create_partitions(
        self,
        totals: Mapping[str, int],
        assignments: Mapping[str, Sequence[Sequence[int]]],
        *,
        validate_only: bool,
    ) -> dict[str, BrokerError | None]:
        """CreatePartitions; assignments are those of the new partitions only."""

        def call(client: AdminClient, timeout_s: float) -> dict[str, BrokerError | None]:
            futures = client.create_partitions(
                [
                    NewPartitions(
                        name,
                        total,
                        [list(replicas) for replicas in assignments[name]]
                        if name in assignments
                        else None,
                    )
                    for name, total in totals.items()
                ],
                validate_only=validate_only,
                operation_timeout=timeout_s,
                request_timeout=timeout_s,
            )
            return {name: _verdict(future, timeout_s) for name, future in futures.items()}

        return self._twice(call)

    def elect_preferred_leaders(
        self, partitions: Collection[model.TopicPartition]
    ) -> dict[model.TopicPartition, BrokerError | None]:
        """ElectLeaders, preferred (KIP-460). Raises KafkaException for a refusal as a whole."""

        def call(
            client: AdminClient, timeout_s: float
        ) -> dict[model.TopicPartition, BrokerError | None]:
            # The client's request_timeout raises SystemError here: bound the wait instead.
            future = client.elect_leaders(
                ElectionType.PREFERRED,
                [TopicPartition(part.topic, part.partition) for part in partitions],
            )
            return {
                model.TopicPartition(part.topic, part.partition): (
                    broker_error(error.code(), error.str()) if error else None
                )
                for part, error in _result(future, timeout_s).items()
            }

        return self._twice(call)

    def _twice(self, call: Callable[[AdminClient, float], T]) -> T:
        half_s = self._request_timeout_s / 2
        try:
            return call(self._current(), half_s)
        except CallTimedOutError as error:
            log.info("A fresh client takes over after: %s", error)
            self.close()
            return call(self._current(), half_s)

    def _current(self) -> AdminClient:
        with self._lock:
            if self._client is None:
                self._client = AdminClient(self._settings)
            return self._client


def _all_topics(client: AdminClient, timeout_s: float) -> list[str]:
    try:
        return list(client.list_topics(timeout=timeout_s).topics)
    except KafkaException as error:
        _raise_if_gave_up(error)
        raise


def _topic(name: str, future: Future[Any], timeout_s: float, operations: bool) -> TopicDescription:
    try:
        found = _result(future, timeout_s)
    except KafkaException as error:
        return TopicDescription(name, "", False, {}, error=_of(error))
    return TopicDescription(
        name=name,
        topic_id=str(found.topic_id),
        internal=found.is_internal,
        partitions={
            part.id: PartitionState(
                leader=part.leader.id if part.leader is not None and part.leader.id >= 0 else None,
                replicas=tuple(node.id for node in part.replicas),
                isr=frozenset(node.id for node in part.isr),
            )
            for part in found.partitions
        },
        operations=frozenset(operation.name for operation in found.authorized_operations)
        if operations
        else None,
    )


def _verdict(future: Future[Any], timeout_s: float) -> BrokerError | None:
    try:
        _result(future, timeout_s)
    except KafkaException as error:
        return _of(error)
    return None


def _result(future: Future[Any], timeout_s: float) -> Any:
    try:
        return future.result(timeout=timeout_s + 0.5)
    except TimeoutError as error:
        raise CallTimedOutError(f"no answer within {timeout_s} s") from error
    except KafkaException as error:
        _raise_if_gave_up(error)
        raise


def _raise_if_gave_up(error: KafkaException) -> None:
    if error.args[0].code() in _GAVE_UP:
        raise CallTimedOutError(error.args[0].str()) from error


def _of(error: KafkaException) -> BrokerError:
    return broker_error(error.args[0].code(), error.args[0].str())
