"""What a policy has against a run, and where policies differ, as types. See ``words``."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rehome.domain.broker_rates import RateSide
from rehome.domain.kafka import BrokerId
from rehome.domain.run.askers import Askers


class PolicyPlace(enum.StrEnum):
    """Where a policy is defined."""

    EXTRA = "extra"
    """In the connection's extra."""
    FILE = "file"
    """In the clusters file."""
    ALL = "all"
    """In several connections to the cluster: each has its own."""


class StricterWhen(enum.StrEnum):
    """How it is known that another connection to the cluster is stricter."""

    NOW = "now"
    NOT_READABLE = "not_readable"
    """It cannot be read, and counts as the strictest."""
    PLANNED = "planned"
    """It was when the plan was made through it."""
    LAST_READ = "last_read"


@dataclass(frozen=True, slots=True, order=True)
class Stricter:
    """Another connection that has made a key of a policy stricter."""

    when: StricterWhen
    connection: str


class RefusedBy(enum.StrEnum):
    """What of a policy refuses a run."""

    ACTION = "action"
    RATE = "rate"
    BROKER_RATE = "broker_rate"
    """The rate of one broker."""
    UNTHROTTLED = "unthrottled"
    WINDOW = "window"
    NO_PERSON = "no_person"
    """No person has approved it."""
    OWN_APPROVAL = "own_approval"
    """Who has approved it has asked for it, too."""
    HOOK_ASKS_NOBODY = "hook_asks_nobody"
    """A person has to approve it, and it goes past every question."""
    HOOK_UNTHROTTLED = "hook_unthrottled"
    """It would copy what nothing throttles."""


@dataclass(frozen=True, slots=True)
class PolicyRefusal:
    """One thing that a policy has against a run; which values it has follows from ``by``.

    :param stricter: the connection that the key comes from; None = the policy's own.
    :param allowed: actions; None = any.
    :param rate_bytes_per_s: that is asked for; ``most``: what the policy allows.
    :param key: of the policy; ``broker`` and ``side``: whose rate it is.
    :param opens: when a window opens again, aware; None = none does.
    :param askers: who has asked for what was approved.
    :param unthrottled: what nothing throttles, one after the other, without full stops.
    """

    by: RefusedBy
    stricter: Stricter | None = None
    action: str = ""
    allowed: frozenset[str] = frozenset()
    rate_bytes_per_s: int = 0
    most: int | None = None
    key: str = ""
    broker: BrokerId = -1
    side: RateSide = RateSide.LEADER
    opens: datetime | None = None
    askers: Askers | None = None
    unthrottled: tuple[str, ...] = ()


class PolicyAspect(enum.StrEnum):
    """What policies of connections to one cluster may differ in."""

    APPROVAL = "approval"
    UNTHROTTLED = "unthrottled"
    LARGEST_THROTTLE = "largest_throttle"
    BY_BROKER = "by_broker"


@dataclass(frozen=True, slots=True)
class PolicyDifference:
    """Connections to one cluster that do not say the same.

    :param connections: by what they say: the rank of an approval, whether plans without a throttle
        may run, the largest throttle or those of single brokers.
    """

    aspect: PolicyAspect
    connections: tuple[tuple[Any, tuple[str, ...]], ...]
