"""The scheduler in the place of the machine's clocks: virtual time, and ids that the seed fixes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

from world.running.scheduler import Point, Scheduler

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
"""When every world begins."""


class VirtualTime:
    """:class:`rehome.domain.clock.Outside` in a simulated world.

    :ivar ahead: by how much the time of day is wrong, by the name of the machine: the part of an
        actor's name before the colon.
    """

    def __init__(self, scheduler: Scheduler, seed: int) -> None:
        self._scheduler = scheduler
        self._ids = Random(f"ids {seed}")
        self.ahead: dict[str, timedelta] = {}

    def utc_now(self) -> datetime:
        """The time of day on the machine of whoever asks."""
        actor = self._scheduler.current
        machine = actor.name.partition(":")[0] if actor else ""
        return self.true_time() + self.ahead.get(machine, timedelta())

    def true_time(self) -> datetime:
        """The time of day where no clock is wrong."""
        return EPOCH + timedelta(seconds=self._scheduler.at_s)

    def monotonic_s(self) -> float:
        """Seconds since the world began."""
        return self._scheduler.at_s

    def sleep(self, seconds: float) -> None:
        """Others run meanwhile."""
        self._scheduler.point(Point.WAIT, f"{seconds:.3f}")
        self._scheduler.wait(seconds)

    def new_id(self) -> str:
        """32 hexadecimal digits."""
        return f"{self._ids.getrandbits(128):032x}"

    # -- world.kafka.hooks.Clock ------------------------------------------------------------------

    def now(self) -> float:
        """Seconds since the world began."""
        return self._scheduler.at_s

    def wait(self, seconds: float) -> None:
        """Others run meanwhile."""
        self._scheduler.wait(seconds)
