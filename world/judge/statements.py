"""What Rehome says to people, as claims of which a judge can tell whether they are true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from include.domain.configs import ConfigResource
from include.domain.kafka import Replicas, TopicPartition
from include.ledger.base.records import ThrottleEntry


@dataclass(frozen=True, slots=True)
class NothingLeft:
    """No throttle that the plan has set is left: "No throttle is left."."""


@dataclass(frozen=True, slots=True)
class AsBefore:
    """These settings are as they were before: nothing of ours is in them, and nothing of another's
    is gone.
    """

    entries: tuple[ThrottleEntry, ...]


@dataclass(frozen=True, slots=True)
class Owed:
    """These settings may hold something of ours still."""

    entries: tuple[ThrottleEntry, ...]


@dataclass(frozen=True, slots=True)
class InFlight:
    """So many moves of the plan are in flight."""

    moves: int


@dataclass(frozen=True, slots=True)
class NothingInFlight:
    """Nothing of the plan is in flight."""


@dataclass(frozen=True, slots=True)
class Placed:
    """These partitions have these replicas, and nothing of them is in flight."""

    targets: Mapping[TopicPartition, Replicas]


@dataclass(frozen=True, slots=True)
class Foreign:
    """These throttles were set by others; ``idle``: nothing is being reassigned."""

    throttles: tuple[tuple[ConfigResource, str, str], ...]
    idle: bool


Said = NothingLeft | AsBefore | Owed | InFlight | NothingInFlight | Placed | Foreign


@dataclass(frozen=True, slots=True)
class Statement:
    """Something that was said.

    :param by: the installation.
    :param since: when the first read began that it is made from; ``at``: when it was published.
        Virtual seconds. It has to have been true at some moment between.
    """

    by: str
    plan_id: str
    claims: tuple[Said, ...]
    since: float
    at: float
