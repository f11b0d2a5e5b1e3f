"""Who gets how many bytes per second: copies share links and quotas fairly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from world.kafka.log import Log
from world.kafka.nodes import Node, Replica


@dataclass(slots=True, eq=False)
class Pair:
    """A follower and the leader it fetches from, or a replica and the copy in another log dir.

    :param copying: whether it is behind; else it gets what is produced, at once.
    :param appended: bytes per second that the leader's log grows by.
    :param limits: keys of the limits that hold for its copy.
    :param rate: bytes per second, of a copy.
    """

    leader_node: Node
    leader: Replica
    node: Node
    replica: Replica
    copying: bool
    appended: float
    between_log_dirs: bool = False
    limits: list[Any] = field(default_factory=list)
    rate: float = 0.0

    @property
    def log(self) -> Log:
        """The log that is written to."""
        future = self.replica.future
        return future.log if self.between_log_dirs and future is not None else self.replica.log

    @property
    def path(self) -> str:
        """The log dir that is written to."""
        future = self.replica.future
        return future.path if self.between_log_dirs and future is not None else self.replica.path

    @property
    def behind(self) -> float:
        """Bytes that are still to come."""
        return self.leader.log.bytes_between(self.log.end, self.leader.log.end)


def share(pairs: Iterable[Pair], limits: Mapping[Any, float]) -> None:
    """Give every copy its rate: max-min fair under all limits."""
    waiting = [pair for pair in pairs if pair.copying]
    left = dict(limits)
    for pair in waiting:
        pair.rate = 0.0
    while waiting:
        counts: dict[Any, int] = {}
        for pair in waiting:
            for key in pair.limits:
                counts[key] = counts.get(key, 0) + 1
        key, share_of_each = min(
            ((key, left[key] / number) for key, number in counts.items()), key=lambda item: item[1]
        )
        done = [pair for pair in waiting if key in pair.limits]
        for pair in done:
            pair.rate = share_of_each
            for one in pair.limits:
                left[one] = max(0.0, left[one] - share_of_each)
        waiting = [pair for pair in waiting if key not in pair.limits]
