"""What producers feel while partitions move: the time until a message is acknowledged."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from itertools import cycle

import numpy as np
from confluent_kafka import KafkaError, Message, Producer

MESSAGE_BYTES = 1_000
FLUSH_TIMEOUT_S = 30.0


class LatencyProbe:
    """Produces at a steady pace to every partition of a topic, with acks=all and no lingering.

    :param settings: librdkafka settings of a client.
    """

    def __init__(
        self, settings: Mapping[str, str], topic: str, partitions: int, messages_per_s: float
    ) -> None:
        # The cluster ends before the producer does; librdkafka would print each lost connection.
        quiet = dict(settings) | {"log_level": "0"}
        self._producer = Producer(quiet | {"acks": "all", "linger.ms": "0"})
        self._topic = topic
        self._partitions = partitions
        self._interval_s = 1 / messages_per_s
        self._latencies_s: list[float] = []
        self._errors: list[KafkaError] = []
        self._left = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._produce, name="latency-probe", daemon=True)

    def __enter__(self) -> LatencyProbe:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(FLUSH_TIMEOUT_S)
        self._left = self._producer.flush(FLUSH_TIMEOUT_S)

    @property
    def messages(self) -> int:
        """Acknowledged so far."""
        return len(self._latencies_s)

    def percentile_ms(self, percent: float) -> float:
        """Of the time from produce to acknowledgement, as librdkafka measures it.

        :raises RuntimeError: a message was not acknowledged.
        """
        if self._errors:
            raise RuntimeError(f"A message of the latency probe was lost: {self._errors[0]}")
        if self._left:
            late = f"not acknowledged {FLUSH_TIMEOUT_S:.0f} s after the last one"
            raise RuntimeError(f"{self._left} messages of the latency probe were {late}")
        return float(np.percentile(self._latencies_s, percent)) * 1000

    def _produce(self) -> None:
        value, due = os.urandom(MESSAGE_BYTES), time.monotonic()
        for partition in cycle(range(self._partitions)):
            self._producer.produce(
                self._topic, value, partition=partition, on_delivery=self._delivered
            )
            due += self._interval_s
            self._producer.poll(max(0.0, due - time.monotonic()))
            if self._stopping.wait(max(0.0, due - time.monotonic())):
                return

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._errors.append(error)
            return
        latency_s = message.latency()
        if latency_s is not None:
            self._latencies_s.append(latency_s)
