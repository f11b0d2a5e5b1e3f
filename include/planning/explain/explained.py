"""What is found about a partition or a broker of a plan, as data."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from include.domain.kafka import BrokerId, TopicPartition
from include.domain.plan.infeasible import Infeasible
from include.domain.plan.move import Move
from include.domain.resources import Resource


class Verdict(enum.StrEnum):
    """What speaks against a broker as the place of a replica."""

    CHOSEN = "chosen"
    HOLDS_ONE = "holds a replica of the partition already"
    GONE = "is not live, or is being emptied"
    TAKES_NONE = "takes no new replicas: it is excluded, or its log dirs are offline or cordoned"
    SET = "is not one of the brokers that may hold the topic, by its broker set"
    CAP = "would be above its cap"
    RACKS = "would spread the partition less evenly over the racks"
    DISK = "has no room on its disks"
    OUTSIDE = "would end further outside its band"
    TOPIC = "would hold more replicas of the topic than its share and the tolerance allow"
    POSSIBLE = "would have done as well"


@dataclass(frozen=True)
class BrokerAsTarget:
    """One broker as the place of a replica.

    :param excess: how far it would be outside its bands with the replica, in shares, beyond
        where it ends in the plan.
    :param resource: the resource in which that is most; None where it is in none.
    """

    broker: BrokerId
    verdict: Verdict
    excess: float = 0.0
    resource: Resource | None = None


@dataclass(frozen=True)
class CopyExplained:
    """One new replica of a partition: where it goes, and where else it could have gone.

    :param target: the broker that receives it; ``source``: the leader it is copied from.
    :param choices: every broker, the chosen one first, then by what speaks against it.
    """

    target: BrokerId
    source: BrokerId
    choices: tuple[BrokerAsTarget, ...]


@dataclass(frozen=True)
class ReplicaExplained:
    """A replica as it lies now: what keeping it there means for its broker.

    :param load: per resource with a band: what the broker would hold at the end of the plan if
        it kept the replica, and the band's least and most.
    :param leaves: whether the plan takes it away.
    """

    broker: BrokerId
    leaves: bool
    load: tuple[tuple[Resource, int, int, int], ...]


@dataclass(frozen=True)
class PartitionExplained:
    """A partition and what the plan makes of it.

    :param move: None where the plan leaves it as it is.
    :param barred: why the plan could not have moved it; empty where it could.
    """

    partition: TopicPartition
    size_bytes: int
    replicas: tuple[BrokerId, ...]
    move: Move | None
    barred: str
    copies: tuple[CopyExplained, ...]
    held: tuple[ReplicaExplained, ...]


@dataclass(frozen=True)
class BrokerExplained:
    """A broker before and after the plan.

    :param loads: per resource: before, after, and the band's least and most (None = no band).
    :param gives: moves that take a replica off it, largest first; ``receives`` bring one.
    :param infeasible: targets of it, or of its racks, that could not be met.
    """

    broker: BrokerId
    loads: tuple[tuple[Resource, int, int, int | None, int | None], ...]
    gives: tuple[Move, ...]
    receives: tuple[Move, ...]
    infeasible: tuple[Infeasible, ...]
