"""Real messages with a proof in them: every acknowledged one must be read back, in order.

Each message starts with its sequence number within its partition (8 bytes, big endian). The
producer is idempotent with acks=all and remembers, per partition, how many it sent and which
were never acknowledged. Reading back walks every partition from the beginning and names each
number that is missing, repeated or out of order.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as Position

from rehome.domain.kafka import TopicPartition

_SEQUENCE = struct.Struct(">Q")
_FLUSH_TIMEOUT_S = 180.0


@dataclass
class PartitionJournal:
    """What the producer knows of a partition: numbers 0 … sent-1, without ``unacknowledged``."""

    sent: int = 0
    acknowledged: int = 0
    unacknowledged: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Outcome of reading every partition from its beginning.

    :param acknowledged: messages the brokers acknowledged.
    :param read: of these, how many were read back.
    :param problems: one sentence per message lost, repeated or out of order (the first 20).
    """

    acknowledged: int
    read: int
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every acknowledged message was read back once, in order."""
        return not self.problems and self.read == self.acknowledged

    @property
    def lost(self) -> int:
        """Acknowledged messages that were not read back, whatever was repeated."""
        return self.acknowledged - self.read


class Workload:
    """A producer and a consumer that run while partitions move.

    :param settings: librdkafka settings of a client.
    :param partitions: number of partitions per topic to produce to.
    :param message_bytes: size of each message's value.
    :param messages_per_s: rate of the background producer over all partitions.
    :param consume: whether a consumer runs with the producer.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        partitions: Mapping[str, int],
        *,
        message_bytes: int = 1000,
        messages_per_s: float = 100.0,
        consume: bool = True,
    ) -> None:
        # Leaders move while this runs, and librdkafka would print each lost connection.
        self._settings = dict(settings) | {"log_level": "0"}
        self._partitions = [TopicPartition(t, p) for t, n in partitions.items() for p in range(n)]
        self._padding = os.urandom(message_bytes - _SEQUENCE.size)
        self._messages_per_s = messages_per_s
        self._targets = [self._produce, *([self._consume] if consume else [])]
        self._journals = {partition: PartitionJournal() for partition in self._partitions}
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._consumed = 0
        self._live_problems: list[str] = []
        self._producer = Producer(
            self._settings
            | {"enable.idempotence": "true", "acks": "all", "linger.ms": "20"}
            | {"delivery.timeout.ms": "120000", "queue.buffering.max.kbytes": "65536"}
        )

    def __enter__(self) -> Workload:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def acknowledged(self) -> int:
        """Messages acknowledged so far."""
        return sum(journal.acknowledged for journal in self._journals.values())

    @property
    def sent(self) -> int:
        """Messages sent so far, acknowledged or not."""
        return sum(journal.sent for journal in self._journals.values())

    @property
    def consumed(self) -> int:
        """Messages the background consumer has seen so far."""
        return self._consumed

    def fill(self, total_bytes: int, weights: Mapping[str, float] | None = None) -> int:
        """Produce ``total_bytes`` of values, spread over topics by weight; returns the messages.

        Blocks until every message is acknowledged or has failed.
        """
        share = {p: (weights or {}).get(p.topic, 1.0) for p in self._partitions}
        scale = total_bytes / (len(self._padding) + _SEQUENCE.size) / sum(share.values())
        count = 0
        for partition, weight in share.items():
            for _ in range(round(weight * scale)):
                self._send(partition)
                count += 1
        self._flush()
        return count

    def start(self) -> None:
        """Start the background producer, and the consumer where there is to be one."""
        for target in self._targets:
            thread = threading.Thread(target=target, name=target.__name__, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Stop both and wait until every message is acknowledged or has failed. Idempotent."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(_FLUSH_TIMEOUT_S)
        self._threads.clear()
        self._flush()

    def read_back(self, timeout_s: float = 300.0) -> ReadBack:
        """Read every partition from its beginning and compare with what was acknowledged.

        :raises TimeoutError: when the brokers do not deliver all of it within ``timeout_s``.
        """
        consumer = Consumer(
            self._settings
            | {"group.id": "read-back", "enable.auto.commit": "false"}
            | {"queued.max.messages.kbytes": "32768"}
        )
        try:
            return self._read_back(consumer, timeout_s)
        finally:
            consumer.close()

    def _read_back(self, consumer: Consumer, timeout_s: float) -> ReadBack:
        deadline = time.monotonic() + timeout_s
        remaining = {}
        for partition in self._partitions:
            _, end = consumer.get_watermark_offsets(Position(*partition), timeout=60)
            if end:
                remaining[partition] = end
        read = {partition: Reading(self._journals[partition]) for partition in self._partitions}
        consumer.assign([Position(*partition, OFFSET_BEGINNING) for partition in remaining])
        while remaining:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{len(remaining)} partitions were not read within {timeout_s} s"
                )
            for message in consumer.consume(5000, timeout=1.0):
                _raise_on_error(message)
                partition, offset = _place(message)
                read[partition].see(_sequence(message))
                if offset + 1 >= remaining.get(partition, 0):
                    remaining.pop(partition, None)
        problems = [f"{p}: {problem}" for p, r in read.items() for problem in r.finish()]
        return ReadBack(
            acknowledged=self.acknowledged,
            read=sum(reading.acknowledged_seen for reading in read.values()),
            problems=tuple([*problems, *self._live_problems][:20]),
        )

    def _send(self, partition: TopicPartition) -> None:
        journal = self._journals[partition]
        sequence = journal.sent
        value = _SEQUENCE.pack(sequence) + self._padding
        journal.sent += 1
        journal.unacknowledged.add(sequence)

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is None:
                journal.unacknowledged.discard(sequence)
                journal.acknowledged += 1

        while True:
            try:
                self._producer.produce(
                    partition.topic, value, partition=partition.partition, on_delivery=delivered
                )
                break
            except BufferError:  # the local queue is full: let deliveries drain it
                self._producer.poll(0.1)
        self._producer.poll(0)

    def _flush(self) -> None:
        left = self._producer.flush(_FLUSH_TIMEOUT_S)
        if left:
            raise TimeoutError(f"{left} messages were not delivered within {_FLUSH_TIMEOUT_S} s")

    def _produce(self) -> None:
        interval_s = 1.0 / self._messages_per_s
        due = time.monotonic()
        while True:
            for partition in self._partitions:
                due += interval_s
                if self._stopping.wait(max(due - time.monotonic(), 0)):
                    return
                self._send(partition)

    def _consume(self) -> None:
        consumer = Consumer(
            self._settings | {"group.id": "workload", "auto.offset.reset": "latest"}
        )
        consumer.subscribe(sorted({partition.topic for partition in self._partitions}))
        last: dict[TopicPartition, tuple[int, int]] = {}
        try:
            while not self._stopping.is_set():
                for message in consumer.consume(500, timeout=0.2):
                    if message.error():
                        continue  # transient while leaders change; read_back is the proof
                    self._watch(message, last)
        finally:
            consumer.close()

    def _watch(self, message: Message, last: dict[TopicPartition, tuple[int, int]]) -> None:
        """Live order check: a higher offset must carry a higher sequence number."""
        partition, offset = _place(message)
        sequence = _sequence(message)
        before_offset, before_sequence = last.get(partition, (-1, -1))
        if offset > before_offset and sequence <= before_sequence:
            self._live_problems.append(
                f"{partition}: the consumer saw {sequence} after {before_sequence}"
            )
        last[partition] = (offset, sequence)
        self._consumed += 1


class Reading:
    """Checks one partition's sequence numbers as they are read, against the producer's journal."""

    def __init__(self, journal: PartitionJournal) -> None:
        self._journal = journal
        self._next = 0
        self._problems: list[str] = []
        self.acknowledged_seen = 0

    def see(self, sequence: int) -> None:
        """Take the next message's number."""
        if sequence < self._next:
            self._problems.append(f"{sequence} came after {self._next - 1}")
            return
        self._miss(range(self._next, sequence))
        if sequence not in self._journal.unacknowledged:
            self.acknowledged_seen += 1
        self._next = sequence + 1

    def finish(self) -> Sequence[str]:
        """What was wrong, after the last message."""
        self._miss(range(self._next, self._journal.sent))
        return self._problems

    def _miss(self, numbers: range) -> None:
        lost = [number for number in numbers if number not in self._journal.unacknowledged]
        if lost:
            self._problems.append(f"{len(lost)} acknowledged messages lost, first {lost[0]}")


def _raise_on_error(message: Message) -> None:
    error = message.error()
    if error is not None:
        raise RuntimeError(f"reading back failed: {error.str()}")


def _place(message: Message) -> tuple[TopicPartition, int]:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return TopicPartition(topic, partition), offset


def _sequence(message: Message) -> int:
    value = message.value()
    assert value is not None
    sequence: int = _SEQUENCE.unpack_from(value)[0]
    return sequence
