"""Targets that a plan's summary tells to be out of reach, as the gate reads them."""

from __future__ import annotations

from collections.abc import Iterable

from include.cluster.model import BrokerId
from include.planning.budget import UNPAID_PARTITIONS, UNPAID_REPLICAS
from include.planning.plan import Infeasible
from include.planning.resources import Resource, resource_of


class Obstacles:
    """What is named as out of reach.

    :ivar brokers: the brokers that are named themselves, each with a resource.
    :ivar unpaid: broker → replicas that the budget leaves on it though they should go.
    :ivar unpaid_partitions: how many the budget leaves out.
    """

    def __init__(self, named: Iterable[Infeasible]) -> None:
        self.brokers: set[tuple[BrokerId, Resource]] = set()
        self.unpaid: dict[BrokerId, int] = {}
        self.unpaid_partitions = 0
        for item in named:
            kind, _, name = item.subject.partition(" ")
            resource = resource_of(item.constraint)
            if kind == "broker" and name.isdecimal():
                self.brokers.add((int(name), resource))
                if item.constraint == UNPAID_REPLICAS:
                    self.unpaid[int(name)] = round(item.nearest)
            if item.constraint == UNPAID_PARTITIONS:
                self.unpaid_partitions += round(item.nearest)
