"""Targets that a plan's summary reports as infeasible, as the gate reads them."""

from __future__ import annotations

from collections.abc import Iterable

from rehome.domain.kafka import BrokerId
from rehome.domain.plan.infeasible import Infeasible, Obstacle, SubjectKind
from rehome.domain.resources import Resource

_KEPT_UNEVEN = (Obstacle.DISKS_KEEP_UNEVEN, Obstacle.CLOSED_KEEP_UNEVEN)


class Obstacles:
    """The reported obstacles.

    :ivar brokers: the reported brokers, each with a resource.
    :ivar unpaid: broker → replicas that should leave it but exceed the budget.
    :ivar unpaid_partitions: how many partitions exceed the budget.
    :ivar partitions: names of partitions that stay, or miss their target.
    :ivar kept_uneven: those of them that disks, or exclusions, keep off better racks.
    :ivar topics: names of topics that are not spread.
    :ivar few_leaders: topics with a broker below the requested minimum of leaders.
    """

    def __init__(self, notes: Iterable[Infeasible]) -> None:
        self.brokers: set[tuple[BrokerId, Resource]] = set()
        self.unpaid: dict[BrokerId, int] = {}
        self.unpaid_partitions = 0
        self.partitions: set[str] = set()
        self.kept_uneven: set[str] = set()
        self.topics: set[str] = set()
        self.few_leaders: set[tuple[str, BrokerId]] = set()
        for item in notes:
            self._read(item)

    def _read(self, item: Infeasible) -> None:
        kind, broker = item.subject.kind, item.subject.broker
        unpaid = item.obstacle is Obstacle.BUDGET
        if unpaid and item.resource is None:
            self.unpaid_partitions += round(item.nearest)
        if kind is SubjectKind.BROKER and broker is not None and item.resource is not None:
            self.brokers.add((broker, item.resource))
            if unpaid and item.resource is Resource.REPLICAS:
                self.unpaid[broker] = round(item.nearest)
        elif kind is SubjectKind.PARTITION:
            self.partitions.add(item.subject.name)
            if item.obstacle in _KEPT_UNEVEN:
                self.kept_uneven.add(item.subject.name)
        elif kind is SubjectKind.TOPIC:
            self.topics.add(item.subject.name)
        elif kind is SubjectKind.MIN_LEADERS and broker is not None:
            self.few_leaders.add((item.subject.name, broker))
