"""Kafka's reassignment files of a plan, written: see :mod:`rehome.domain.reassignment_file`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rehome.domain.kafka import ANY_LOG_DIR, BrokerId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.move_columns import entries
from rehome.domain.plan.move_table import MoveTable, moves_table
from rehome.domain.plan.plan import Plan
from rehome.domain.plan.plan_hash import PlanChangedError
from rehome.domain.reassignment_file import VERSION

REASSIGNMENT_FILE, ROLLBACK_FILE = "reassignment.json", "rollback.json"


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


def refuse_other_files(
    plan_id: str, digests: Mapping[str, str], expected: Mapping[str, str]
) -> None:
    """Let only the files of a plan pass that were checked.

    :param digests: digests of the bytes that are there; ``expected``: of those that were checked.
    :raises PlanChangedError: they are others.
    """
    names = {*digests, *expected}
    others = sorted(name for name in names if digests.get(name) != expected.get(name))
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
