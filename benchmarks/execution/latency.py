"""What producers feel while partitions move: the time until a message is acknowledged."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from multiprocessing import get_context
from multiprocessing.connection import Connection

import numpy as np
from confluent_kafka import KafkaError, Message, Producer

MESSAGE_BYTES = 1_000
START_TIMEOUT_S, FLUSH_TIMEOUT_S = 60.0, 30.0


@dataclass(frozen=True)
class Produced:
    """What a producer has measured.

    :param latencies_s: from produce to acknowledgement, as librdkafka measures it.
    :param errors: of messages that were lost.
    :param unanswered: messages without an answer ``FLUSH_TIMEOUT_S`` after the last one.
    """

    latencies_s: list[float]
    errors: list[str]
    unanswered: int


class LatencyProbe:
    """Produces at a steady pace to every partition of a topic, with acks=all and no lingering.

    It does so in a process of its own: librdkafka takes the time when Python is given the
    acknowledgement, and a thread beside Rehome's engine would wait for the interpreter.

    :param settings: librdkafka settings of a client.
    """

    def __init__(
        self, settings: Mapping[str, str], topic: str, partitions: int, messages_per_s: float
    ) -> None:
        context = get_context("spawn")
        self._stopping, there = context.Pipe()
        arguments = (there, dict(settings), topic, partitions, 1 / messages_per_s)
        self._process = context.Process(target=_produce, args=arguments, daemon=True)
        self._there = there
        self._produced: Produced | None = None

    def __enter__(self) -> LatencyProbe:
        self._process.start()
        self._there.close()
        if not self._stopping.poll(START_TIMEOUT_S):
            raise TimeoutError(f"no message was acknowledged within {START_TIMEOUT_S:.0f} s")
        self._stopping.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.send(None)
        self._produced = self._stopping.recv()
        self._process.join()

    @property
    def messages(self) -> int:
        """How many were acknowledged.

        :raises RuntimeError: a message was not, or the probe has not ended.
        """
        return len(self._latencies_s)

    def percentile_ms(self, percent: float) -> float:
        """Of the time from produce to acknowledgement.

        :raises RuntimeError: a message was not acknowledged, or the probe has not ended.
        """
        return float(np.percentile(self._latencies_s, percent)) * 1000

    @property
    def _latencies_s(self) -> list[float]:
        produced = self._produced
        if produced is None:
            raise RuntimeError("the latency probe has not ended")
        if produced.errors:
            raise RuntimeError(f"A message of the latency probe was lost: {produced.errors[0]}")
        if produced.unanswered:
            late = f"not acknowledged {FLUSH_TIMEOUT_S:.0f} s after the last one"
            raise RuntimeError(f"{produced.unanswered} messages of the latency probe were {late}")
        return produced.latencies_s


def _produce(
    parent: Connection, settings: dict[str, str], topic: str, partitions: int, interval_s: float
) -> None:
    """Until the parent says so, or is gone."""
    # The cluster ends before the producer does; librdkafka would print each lost connection.
    producer = Producer(settings | {"log_level": "0", "acks": "all", "linger.ms": "0"})
    latencies_s: list[float] = []
    errors: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        latency_s = message.latency()
        if error is not None:
            errors.append(str(error))
        elif latency_s is not None:
            latencies_s.append(latency_s)

    value = os.urandom(MESSAGE_BYTES)
    for partition in range(partitions):  # the first ones wait for metadata and connections
        producer.produce(topic, value, partition=partition, on_delivery=delivered)
    producer.flush(FLUSH_TIMEOUT_S)
    latencies_s.clear()
    parent.send(None)
    due = time.monotonic()
    for partition in cycle(range(partitions)):
        producer.produce(topic, value, partition=partition, on_delivery=delivered)
        due += interval_s
        producer.poll(max(0.0, due - time.monotonic()))
        if parent.poll(max(0.0, due - time.monotonic())):
            break
    unanswered = producer.flush(FLUSH_TIMEOUT_S)
    parent.recv()
    parent.send(Produced(latencies_s, errors, unanswered))
