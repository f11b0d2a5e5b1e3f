"""A script: calls that are made on the model and on real brokers, one after the other.

A script prints as a Python list, that a test can replay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerError, ReplicaId, TopicPartition


class Step(NamedTuple):
    """What is done, and with what. Arguments are plain values, so that a step prints as itself."""

    what: str
    args: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        return f"Step({self.what!r}, {self.args!r})"


class Side(Protocol):
    """A cluster, real or modelled: its calls, and what other hands may do to it."""

    @property
    def port(self) -> ClusterPort: ...

    def log_dir(self, broker: int, number: int) -> str: ...

    def fill(self, topic: str, partition: int, messages: int, size: int) -> None: ...

    def delete_topic(self, topic: str) -> int: ...

    def delete_records(self, topic: str, partition: int, before: int) -> None: ...

    def kill(self, broker: int) -> None: ...

    def stop(self, broker: int) -> None: ...

    def start(self, broker: int, empty: bool) -> None: ...


def _resource(kind: str, name: str) -> ConfigResource:
    return ConfigResource(kind, name)


def alter(side: Side, targets: Sequence[tuple[str, int, Any]], may_change: bool) -> Any:
    wanted = {TopicPartition(topic, n): target for topic, n, target in targets}
    return side.port.alter_reassignments(wanted, allow_replication_factor_change=may_change)


def configs(side: Side, changes: Sequence[tuple[Any, ...]], validate_only: bool) -> Any:
    wanted = [
        ConfigChange(_resource(kind, name), key, ConfigOperation[operation], value)
        for kind, name, key, operation, value in changes
    ]
    return side.port.alter_configs(wanted, validate_only=validate_only)


def describe(side: Side, kind: str, name: str, keys: Sequence[str]) -> Any:
    found = side.port.describe_configs([_resource(kind, name)], list(keys))
    return next(iter(found.values()))


def describe_default(side: Side) -> Any:
    """Rates, and keys that brokers do not know."""
    default = ConfigResource.cluster_default()
    found = side.port.describe_configs([default])[default]
    assert isinstance(found, dict)
    return {k: v for k, v in found.items() if k.startswith("rehome") or k.endswith("rate")}


def new_topic(side: Side, name: str, rows: Any, config: dict[str, str], validate_only: bool) -> Any:
    return side.port.create_topics({name: rows}, {name: config}, validate_only=validate_only)


def more_partitions(side: Side, name: str, total: int, rows: Any, validate_only: bool) -> Any:
    given = {name: rows} if rows is not None else None
    return side.port.create_partitions({name: total}, given, validate_only=validate_only)


def elect(side: Side, parts: Sequence[tuple[str, int]]) -> Any:
    return side.port.elect_preferred_leaders([TopicPartition(*part) for part in parts])


def move_log_dir(side: Side, topic: str, partition: int, broker: int, number: int) -> Any:
    target = {ReplicaId(topic, partition, broker): side.log_dir(broker, number)}
    return side.port.alter_replica_log_dirs(target)


def cordon(side: Side, broker: int, numbers: Sequence[int]) -> Any:
    value = ",".join(side.log_dir(broker, number) for number in numbers)
    change = ConfigChange(
        ConfigResource.broker(broker), "cordoned.log.dirs", ConfigOperation.SET, value
    )
    return side.port.alter_configs([change])


DOES: dict[str, Callable[..., Any]] = {
    "alter": alter,
    "configs": configs,
    "describe": describe,
    "describe_default": describe_default,
    "new_topic": new_topic,
    "more_partitions": more_partitions,
    "elect": elect,
    "move_log_dir": move_log_dir,
    "cordon": cordon,
    "fill": lambda side, *args: side.fill(*args),
    "delete_topic": lambda side, *args: side.delete_topic(*args),
    "delete_records": lambda side, *args: side.delete_records(*args),
    "kill": lambda side, *args: side.kill(*args),
    "stop": lambda side, *args: side.stop(*args),
    "start": lambda side, *args: side.start(*args),
}


def settles_in(step: Step) -> float:
    """Seconds of the model's time after which nothing but a throttled copy is under way."""
    return 30.0 if step.what in ("kill", "stop", "start") else 12.0


def do(side: Side, step: Step) -> Any:
    """The answer, as plain values: codes and messages of errors, values of configs."""
    try:
        return plain(DOES[step.what](side, *step.args))
    except ClusterError as error:
        return type(error).__name__, plain(error.error)


def plain(answer: Any) -> Any:
    """An answer in values that compare and print."""
    if isinstance(answer, BrokerError):
        return answer.code, answer.message
    if isinstance(answer, dict):
        return {str(key): plain(value) for key, value in answer.items()}
    return answer
