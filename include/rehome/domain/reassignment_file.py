"""Kafka's reassignment file, read: what each partition is to have.

``{"version": 1, "partitions": [{"topic", "partition", "replicas", "log_dirs"}]}``, with
``log_dirs`` aligned with ``replicas`` and ``any`` where the broker chooses
(org.apache.kafka.tools.reassign.ReassignPartitionsCommand).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from rehome.domain.kafka import ANY_LOG_DIR, BrokerId, TopicPartition
from rehome.domain.kafka_limits import LARGEST_BROKER_ID, LARGEST_PARTITION, refuse_topic_name
from rehome.domain.text import count_text
from rehome.errors import InvalidRequestError

VERSION = 1


@dataclass(frozen=True, slots=True)
class Assignment:
    """Replicas wanted for a partition, preferred leader first.

    :param log_dirs: aligned with ``replicas``; ``any`` lets the broker choose.
    """

    replicas: tuple[BrokerId, ...]
    log_dirs: tuple[str, ...]


def parse_reassignment(source: str | Mapping[str, Any]) -> dict[TopicPartition, Assignment]:
    """Read Kafka's reassignment file, as text or as parsed JSON.

    A file without ``version`` is of version 1, as for Kafka's tool.

    :raises InvalidRequestError: lists every fault of form: no JSON, another version, a missing or
        mistyped field, a partition or broker named twice, no replicas, ``log_dirs`` of another
        length. Whether topics, partitions and brokers exist is for the planner to say.
    """
    entries = _entries(source)
    problems: list[str] = []
    assignments: dict[TopicPartition, Assignment] = {}
    for index, entry in enumerate(entries):
        found, parsed = _parse_entry(index, entry)
        if parsed is not None and parsed[0] in assignments:
            found.append(f"Partition {parsed[0]} is listed more than once.")
        problems += found
        if parsed is not None:
            assignments[parsed[0]] = parsed[1]
    if problems:
        raise InvalidRequestError(problems)
    return assignments


def _entries(source: str | Mapping[str, Any]) -> list[Any]:
    if isinstance(source, str):
        try:
            source = json.loads(source)
        except ValueError as error:
            raise InvalidRequestError([f"The reassignment is not valid JSON: {error}."]) from error
    if not isinstance(source, Mapping):
        raise InvalidRequestError(['The reassignment must be {"version":1,"partitions":[…]}.'])
    version = source.get("version", VERSION)
    if not _is_int(version) or version != VERSION:
        raise InvalidRequestError(
            [f"The reassignment has version {version!r}; only {VERSION} is known."]
        )
    entries = source.get("partitions")
    if not isinstance(entries, list) or not entries:
        raise InvalidRequestError(["The reassignment's 'partitions' must be a non-empty list."])
    return entries


def _parse_entry(
    index: int, entry: Any
) -> tuple[list[str], tuple[TopicPartition, Assignment] | None]:
    """Problems of one entry; the entry itself where its partition could be read."""
    if not isinstance(entry, Mapping):
        return [f"Entry {index} of 'partitions' is not an object."], None
    topic, number = entry.get("topic"), entry.get("partition")
    if not isinstance(topic, str) or not topic or not _is_int(number) or number < 0:
        return [f"Entry {index} of 'partitions' needs a topic and a partition number."], None
    if number > LARGEST_PARTITION:
        return [f"Entry {index} of 'partitions': no partition has the number {number}."], None
    try:
        refuse_topic_name(topic)
    except ValueError as error:
        return [f"Entry {index} of 'partitions': {error}."], None
    partition = TopicPartition(topic, number)
    replicas = entry.get("replicas")
    if not isinstance(replicas, list) or not all(_is_int(b) and b >= 0 for b in replicas):
        return [f"{partition}: 'replicas' must be a list of broker ids."], (
            partition,
            Assignment((), ()),
        )
    log_dirs = entry.get("log_dirs")
    if log_dirs is None:
        log_dirs = [ANY_LOG_DIR] * len(replicas)
    problems = _replica_problems(partition, replicas) + _log_dir_problems(
        partition, log_dirs, len(replicas)
    )
    paths = () if problems else tuple(log_dirs)
    return problems, (partition, Assignment(tuple(replicas), paths))


def _replica_problems(partition: TopicPartition, replicas: Sequence[int]) -> list[str]:
    if not replicas:
        return [f"{partition}: the replica list is empty."]
    if max(replicas) > LARGEST_BROKER_ID:
        return [f"{partition}: no broker has the id {max(replicas)}."]
    twice = sorted(broker for broker, times in Counter(replicas).items() if times > 1)
    return [f"{partition}: broker {broker} is listed more than once." for broker in twice]


def _log_dir_problems(partition: TopicPartition, log_dirs: Any, length: int) -> list[str]:
    if not isinstance(log_dirs, list) or not all(isinstance(path, str) for path in log_dirs):
        return [f"{partition}: 'log_dirs' must be a list of paths."]
    if len(log_dirs) != length:
        return [f"{partition}: {len(log_dirs)} log_dirs for {count_text(length, 'replica')}."]
    relative = [path for path in log_dirs if path != ANY_LOG_DIR and not path.startswith("/")]
    return [
        f"{partition}: log dir {path!r} is neither an absolute path nor 'any'." for path in relative
    ]


def _is_int(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
