"""A cluster in memory whose every call takes long, on a simulated clock.

No real broker can be made to take 500 ms for each topic of thousands.
"""

from __future__ import annotations

from typing import Any

from rehome.execution.access import progress_timeout
from tests.execution.simulated_cluster import SimulatedCluster


class VirtualTime:
    """Replaces the module ``time``."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def pass_s(self, seconds: float) -> None:
        """Put the clock forward, without waiting."""
        self.now_s += seconds

    sleep = pass_s


def virtual_time(monkeypatch: Any) -> VirtualTime:
    """What :mod:`rehome.execution.access.progress_timeout` waits by, from now on."""
    time = VirtualTime()
    monkeypatch.setattr(progress_timeout, "monotonic_s", time.monotonic)
    monkeypatch.setattr(progress_timeout, "sleep", time.sleep)
    return time


class SlowCluster(SimulatedCluster):
    """Takes ``delay_s`` for each resource that it is asked about.

    :ivar stuck: it accepts changes, and makes none.
    :ivar trickles: it makes one of the changes that it has accepted before each reading.
    """

    time: VirtualTime
    delay_s = 0.5
    stuck = False
    trickles = False

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._accepted: list[Any] = []

    def describe_configs(self, resources: Any, keys: Any = None) -> Any:
        self.time.pass_s(self.delay_s * len(resources))
        if self.trickles and self._accepted:
            super().alter_configs([self._accepted.pop(0)])
        wanted = set(resources)
        found: dict[Any, dict[str, Any]] = {resource: {} for resource in resources}
        for (where, key), value in self.configs.items():
            if where in wanted and (keys is None or key in keys):
                found[where][key] = self.value(where, value)
        return found

    def alter_configs(self, changes: Any, **options: Any) -> Any:
        self.time.pass_s(self.delay_s * len({change.resource for change in changes}))
        if self.stuck or self.trickles:
            new = (change for change in changes if change not in self._accepted)
            self._accepted += new if self.trickles else ()
            return {change.resource: None for change in changes}
        return super().alter_configs(changes, **options)
