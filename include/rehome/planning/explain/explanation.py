"""Explanations of a partition or a broker, as data."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.plan.infeasible import Infeasible
from rehome.domain.plan.move import Move
from rehome.domain.resources import Resource


class Verdict(enum.StrEnum):
    """Why a broker was not chosen for a replica."""

    CHOSEN = "chosen"
    HOLDS_ONE = "holds a replica of the partition already"
    GONE = "is not live, or is being emptied"
    TAKES_NONE = (
        "takes no new replicas: it is excluded, is no destination, or its log dirs are offline or "
        "cordoned"
    )
    SET = "is not one of the brokers that may hold the topic, by its broker set or the destinations"
    CAP = "would be above its cap"
    RACKS = "would spread the partition less evenly over the racks"
    DISK = "has no room on its disks"
    OUTSIDE = "would end further outside its band"
    TOPIC = "would hold more replicas of the topic than its share and the tolerance allow"
    POSSIBLE = "would have done as well"


@dataclass(frozen=True)
class BrokerAsTarget:
    """One broker as the target of a replica.

    :param excess: added excess of the broker if it got the replica, in shares, compared with the
        plan.
    :param resource: the resource with the most excess; None = no excess.
    """

    broker: BrokerId
    verdict: Verdict
    excess: float = 0.0
    resource: Resource | None = None


@dataclass(frozen=True)
class CopyExplained:
    """One new replica of a partition: its target, and the alternatives.

    :param target: the broker that receives it; ``source``: the leader it is copied from.
    :param choices: every broker, the chosen one first, then by verdict.
    """

    target: BrokerId
    source: BrokerId
    choices: tuple[BrokerAsTarget, ...]


@dataclass(frozen=True)
class ReplicaExplained:
    """A present replica: the load of its broker if the replica stayed.

    :param load: per resource with a band: what the broker would hold at the end of the plan if
        it kept the replica, and the band's least and most.
    :param leaves: whether the plan takes it away.
    """

    broker: BrokerId
    leaves: bool
    load: tuple[tuple[Resource, int, int, int], ...]


@dataclass(frozen=True)
class PartitionExplained:
    """A partition, and its part in the plan.

    :param move: None if the plan does not change it.
    :param barred: why the plan could not move it; empty if it could.
    """

    partition: TopicPartition
    size_bytes: int
    replicas: tuple[BrokerId, ...]
    move: Move | None
    barred: str
    copies: tuple[CopyExplained, ...]
    replica_explanations: tuple[ReplicaExplained, ...]


@dataclass(frozen=True)
class BrokerExplained:
    """A broker before and after the plan.

    :param loads: per resource: before, after, and the band's least and most (None = no band).
    :param gives: moves that take a replica off it, largest first; ``receives`` bring one.
    :param infeasible: targets of the broker, or of its racks, that could not be met.
    """

    broker: BrokerId
    loads: tuple[tuple[Resource, int, int, int | None, int | None], ...]
    gives: tuple[Move, ...]
    receives: tuple[Move, ...]
    infeasible: tuple[Infeasible, ...]
