"""Where a scheduler takes part in a call: it moves time and actors, and faults strike."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rehome.cluster.interface.rights import Call
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerId


class FaultKind(enum.Enum):
    """What may go wrong with one call, beside what the world's own state makes of it."""

    REQUEST_LOST = "request_lost"  # the client waits its whole timeout; nothing was done
    ANSWER_LOST = "answer_lost"  # the same, and everything was done
    NOT_CONTROLLER = "not_controller"  # of calls that need the controller: refused with 41
    REFUSED = "refused"  # no broker accepts a connection
    BROKER_LOST = "broker_lost"  # of calls to each broker: one gives no answer, nothing done there
    BROKER_ANSWER_LOST = "broker_answer_lost"  # the same, and it did what it was asked


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that strikes one call; ``broker`` only of the kinds that name one."""

    kind: FaultKind
    broker: BrokerId | None = None


class Clock(Protocol):
    """Virtual time, in seconds since the world began."""

    def now(self) -> float:
        """The time now; never goes back."""
        ...

    def wait(self, seconds: float) -> None:
        """Let the caller wait. A scheduler runs others meanwhile."""
        ...


class SetClock:
    """A clock that only its owner moves, and whoever waits."""

    def __init__(self, at: float = 0.0) -> None:
        self.at = at

    def now(self) -> float:
        """The time now."""
        return self.at

    def wait(self, seconds: float) -> None:
        """Time passes at once."""
        self.at += seconds


BeforeCall = Callable[[Call, tuple[Any, ...]], Fault | None]
"""Called when a call begins, before the world is looked at; may let time pass, or raise."""
AfterCall = Callable[[Call, tuple[Any, ...]], None]
"""Called when the world has acted, before the caller learns of it; may let time pass, or raise."""
AfterReading = Callable[[Mapping[ConfigResource, int]], None]
"""Called with the resources whose configs were read, and how many entries of the metadata log the
broker that answered for each had read.
"""


@dataclass(slots=True)
class Hooks:
    """A port's hooks; they may be set and changed at any time."""

    before_call: BeforeCall = lambda call, args: None
    after_call: AfterCall = lambda call, args: None
    after_reading: AfterReading = lambda shown: None
