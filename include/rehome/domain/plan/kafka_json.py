"""Kafka's reassignment file: what `kafka-reassign-partitions` reads and writes.

``{"version": 1, "partitions": [{"topic", "partition", "replicas", "log_dirs"}]}``, with
``log_dirs`` aligned with ``replicas`` and ``any`` where the broker chooses
(org.apache.kafka.tools.reassign.ReassignPartitionsCommand).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.kafka_limits import LARGEST_BROKER_ID, LARGEST_PARTITION, refuse_topic_name
from rehome.domain.plan.move import Move
from rehome.domain.plan.move_columns import entries
from rehome.domain.plan.move_table import MoveTable, moves_table
from rehome.domain.plan.plan import ANY_LOG_DIR, Plan
from rehome.domain.plan.plan_hash import PlanChangedError
from rehome.domain.text import count_text
from rehome.errors import InvalidRequestError

VERSION = 1
REASSIGNMENT_FILE, ROLLBACK_FILE = "reassignment.json", "rollback.json"


@dataclass(frozen=True, slots=True)
class Assignment:
    """Replicas wanted for a partition, preferred leader first.

    :param log_dirs: aligned with ``replicas``; ``any`` lets the broker choose.
    """

    replicas: tuple[BrokerId, ...]
    log_dirs: tuple[str, ...]


def reassignment_json(moves: Iterable[Move]) -> dict[str, Any]:
    """The file that starts these moves: each partition's target."""
    return _file((move.partition, move.target, move.target_log_dirs) for move in moves)


def rollback_json(moves: Iterable[Move]) -> dict[str, Any]:
    """The file that takes these moves back: replicas in their stored order, in their log dirs."""
    return _file((move.partition, move.current, move.current_log_dirs) for move in moves)


def reassignment_text(moves: Iterable[Move]) -> Iterator[str]:
    """The text of :func:`reassignment_json`, a line for each partition, piece by piece."""
    return _text(moves, "target")


def rollback_text(moves: Iterable[Move]) -> Iterator[str]:
    """The text of :func:`rollback_json`, a line for each partition, piece by piece."""
    return _text(moves, "current")


@dataclass(frozen=True, slots=True)
class KafkaFiles:
    """Kafka's files of a plan, as text. Made once: this very text is hashed, checked, written."""

    reassignment: str
    rollback: str

    @classmethod
    def of(cls, moves: Iterable[Move]) -> KafkaFiles:
        """The files that start these moves, and take them back."""
        table = MoveTable(moves_table(moves))
        return cls("".join(reassignment_text(table)), "".join(rollback_text(table)))

    @property
    def texts(self) -> dict[str, str]:
        """Name of the file → its text."""
        return {REASSIGNMENT_FILE: self.reassignment, ROLLBACK_FILE: self.rollback}

    def digests(self) -> dict[str, str]:
        """Name of the file → SHA-256 (hex) of its bytes."""
        return {
            name: hashlib.sha256(text.encode()).hexdigest() for name, text in self.texts.items()
        }

    def with_digests(self, plan: Plan) -> Plan:
        """The plan with a summary that has these files' digests."""
        return replace(plan, summary=replace(plan.summary, files=self.digests()))


def refuse_other_files(plan_id: str, found: Mapping[str, str], expected: Mapping[str, str]) -> None:
    """Let only the files of a plan pass that were checked.

    :param found: digests of the bytes that are there; ``expected``: of those that were checked.
    :raises PlanChangedError: they are others.
    """
    names = {*found, *expected}
    others = sorted(name for name in names if found.get(name) != expected.get(name))
    if others:
        raise PlanChangedError(
            f"{' and '.join(others)} of plan {plan_id} are not the bytes that the gate checked",
            state_left="This step has changed nothing on the cluster.",
            next_step="The files were changed or damaged since they were written. Trigger a new "
            "run.",
        )


def _text(moves: Iterable[Move], replicas: str) -> Iterator[str]:
    start = ('\n{"topic":', "topic", ',"partition":', "partition", ',"replicas":[', replicas)
    shape = (*start, '],"log_dirs":[', f"{replicas}_log_dirs", "]}")
    yield f'{{"version":{VERSION},"partitions":['
    for number, text in enumerate(entries(moves_table(moves), shape)):
        yield f",{text}" if number else text
    yield "\n]}\n"


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


def _file(
    rows: Iterable[tuple[TopicPartition, Sequence[BrokerId], Sequence[str]]],
) -> dict[str, Any]:
    return {
        "version": VERSION,
        "partitions": [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "replicas": list(replicas),
                "log_dirs": [path or ANY_LOG_DIR for path in log_dirs]
                or [ANY_LOG_DIR] * len(replicas),
            }
            for partition, replicas, log_dirs in rows
        ],
    }


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
