"""Kafka's reassignment file, read: what each partition is to have.

``{"version": 1, "partitions": [{"topic", "partition", "replicas", "log_dirs"}]}``, with
``log_dirs`` aligned with ``replicas`` and ``any`` where the broker chooses
(org.apache.kafka.tools.reassign.ReassignPartitionsCommand).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from rehome.domain.kafka import ANY_LOG_DIR, BrokerId, TopicPartition
from rehome.domain.kafka_limits import LARGEST_BROKER_ID, LARGEST_PARTITION, refuse_topic_name
from rehome.domain.text import brokers_are, count_text, json_fault, json_in
from rehome.errors import InvalidRequestError
from rehome.field_descriptions import ProblemText, reason_of

VERSION = 1


@dataclass(frozen=True, slots=True)
class Assignment:
    """Replicas wanted for a partition, preferred leader first.

    :param log_dirs: aligned with ``replicas``; ``any`` lets the broker choose.
    """

    replicas: tuple[BrokerId, ...]
    log_dirs: tuple[str, ...]


class _File(BaseModel):
    """The file. Each entry is read by itself: a million of them at once would take its memory."""

    model_config = ConfigDict(strict=True)

    version: Annotated[int, Field(ge=VERSION, le=VERSION)] = VERSION
    partitions: Annotated[list[Any], Field(min_length=1)]


def _topic_name(name: str) -> str:
    refuse_topic_name(name)
    return name


def _brokers(replicas: list[BrokerId]) -> list[BrokerId]:
    if not replicas:
        raise ValueError("the replica list is empty")
    if max(replicas) > LARGEST_BROKER_ID:
        raise ValueError(f"no broker has the id {max(replicas)}")
    if len(set(replicas)) < len(replicas):
        twice = sorted(broker for broker, times in Counter(replicas).items() if times > 1)
        raise ValueError(f"{brokers_are(twice)} listed more than once")
    return replicas


def _paths(log_dirs: list[str] | None) -> list[str] | None:
    if relative := [p for p in log_dirs or () if p != ANY_LOG_DIR and not p.startswith("/")]:
        names = ", ".join(map(repr, relative))
        raise ValueError(f"log_dirs has {names}: neither an absolute path nor 'any'")
    return log_dirs


def _partition_number(number: int) -> int:
    if number > LARGEST_PARTITION:
        raise ValueError(f"no partition has the number {number}")
    return number


_NAMED = ProblemText("an entry needs a topic and a partition number")


class _Entry(BaseModel):
    """What the file says of one partition. The defaults of what an entry needs are refused."""

    model_config = ConfigDict(strict=True, validate_default=True)

    topic: Annotated[str, Field(min_length=1), _NAMED, AfterValidator(_topic_name)] = ""
    partition: Annotated[int, Field(ge=0), _NAMED, AfterValidator(_partition_number)] = -1
    replicas: Annotated[
        list[Annotated[BrokerId, Field(ge=0)]],
        ProblemText("'replicas' must be a list of broker ids"),
        AfterValidator(_brokers),
    ] = []
    log_dirs: Annotated[
        list[str] | None, ProblemText("'log_dirs' must be a list of paths"), AfterValidator(_paths)
    ] = None

    @model_validator(mode="after")
    def _has_a_log_dir_for_each_replica(self) -> _Entry:
        if self.log_dirs is not None and len(self.log_dirs) != len(self.replicas):
            replicas = count_text(len(self.replicas), "replica")
            raise ValueError(f"{len(self.log_dirs)} log_dirs for {replicas}")
        return self

    def assignment(self) -> Assignment:
        """What the partition is to have."""
        log_dirs = self.log_dirs or [ANY_LOG_DIR] * len(self.replicas)
        return Assignment(tuple(self.replicas), tuple(log_dirs))


def parse_reassignment(source: str | Mapping[str, Any]) -> dict[TopicPartition, Assignment]:
    """Read Kafka's reassignment file, as text or as parsed JSON.

    A file without ``version`` is of version 1, as for Kafka's tool.

    :raises InvalidRequestError: lists every fault of form: no JSON, another version, a missing or
        mistyped field, a partition or broker named twice, no replicas, ``log_dirs`` of another
        length, where both are right by themselves. Whether topics, partitions and brokers exist
        is for the planner to say.
    """
    problems: list[str] = []
    assignments: dict[TopicPartition, Assignment] = {}
    for index, content in enumerate(_read_file(source).partitions):
        try:
            entry = _Entry.model_validate(content)
        except ValidationError as error:
            partition, faults = _faults(index, content, error)
            problems += faults
            assignment = Assignment((), ())
        else:
            partition, assignment = TopicPartition(entry.topic, entry.partition), entry.assignment()
        if partition in assignments:
            problems.append(f"Partition {partition} is listed more than once.")
        if partition is not None:
            assignments[partition] = assignment
    if problems:
        raise InvalidRequestError(problems)
    return assignments


def _read_file(source: str | Mapping[str, Any]) -> _File:
    try:
        content = json_in(source) if isinstance(source, str) else source
    except ValueError as error:
        raise InvalidRequestError([f"The reassignment {json_fault(error)}."]) from error
    try:
        return _File.model_validate(dict(content) if isinstance(content, Mapping) else content)
    except ValidationError as error:
        raise InvalidRequestError([_file_problem(problem) for problem in error.errors()]) from None


def _file_problem(problem: ErrorDetails) -> str:
    match problem["loc"]:
        case ("version", *_):
            return f"The reassignment has version {problem['input']!r}; only {VERSION} is known."
        case ("partitions", *_):
            return "The reassignment's 'partitions' must be a non-empty list."
    return 'The reassignment must be {"version":1,"partitions":[…]}.'


def _faults(
    index: int, content: Any, error: ValidationError
) -> tuple[TopicPartition | None, list[str]]:
    """The partition of a faulty entry, and a sentence for each fault; without its partition, only
    for that.
    """
    entry = f"Entry {index} of 'partitions'"
    problems = error.errors(include_url=False, include_input=False)
    if not isinstance(content, Mapping):
        return None, [f"{entry} is not an object."]
    unnamed = [each for each in problems if {*each["loc"]} & {*TopicPartition._fields}]
    if unnamed:
        return None, [f"{entry}: {reason_of(unnamed[0])}."]
    partition = TopicPartition(content["topic"], content["partition"])
    return partition, [f"{partition}: {reason_of(problem)}." for problem in problems]
