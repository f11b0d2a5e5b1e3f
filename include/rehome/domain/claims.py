"""What is said to people, as claims: numbers and states of which can be told whether they are true.

The simulator's judge holds each against the world (docs/reliability.md). A claim has to have been
true at some moment between the first read that it is made from and its publication; "unknown" is
always allowed, false never.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerId, Replicas, TopicPartition

ConfigSetting = tuple[ConfigResource, str]
"""A configuration key of a resource."""


@dataclass(frozen=True, slots=True)
class NoThrottleLeft:
    """Nothing that the plan has set on brokers and topics is there any more."""


@dataclass(frozen=True, slots=True)
class AsFound:
    """These settings are as they were read last, before the plan first changed them. What others
    have set between that reading and that write, nobody has seen.
    """

    settings: tuple[ConfigSetting, ...]


@dataclass(frozen=True, slots=True)
class Owed:
    """These may still hold something of ours."""

    settings: tuple[ConfigSetting, ...]


@dataclass(frozen=True, slots=True)
class InFlight:
    """The controller lists so many moves of the plan."""

    moves: int


@dataclass(frozen=True, slots=True)
class Placed:
    """These partitions have these replicas, and nothing of them is in flight."""

    targets: Mapping[TopicPartition, Replicas]


@dataclass(frozen=True, slots=True)
class Emptied:
    """No partition is assigned to these brokers."""

    brokers: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class NotOwedHere:
    """The ledger has none of these to take back; ``idle``: nothing is being reassigned."""

    values: tuple[tuple[ConfigSetting, str], ...]
    idle: bool


@dataclass(frozen=True, slots=True)
class EndsIn:
    """The last copy is complete after so much time, if nothing changes."""

    seconds: float


@dataclass(frozen=True, slots=True)
class RunGoesOn:
    """A run drives the plan and will poll."""


Claim = (
    NoThrottleLeft | AsFound | Owed | InFlight | Placed | Emptied | NotOwedHere | EndsIn | RunGoesOn
)
