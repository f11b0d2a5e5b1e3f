"""What a plan cannot do or leaves as it is: of what, why, and the nearest that it reaches.

Code decides by :class:`Obstacle`; :mod:`rehome.domain.plan.infeasible_text` makes the sentences.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.resources import Resource


class SubjectKind(enum.StrEnum):
    """What a note is about."""

    BROKER = "broker"
    LOG_DIR = "log_dir"  # `broker`, and its path as `name`
    RACK = "rack"  # `name` is its path in the rack tree
    TOPIC = "topic"
    MIN_LEADERS = "min_leaders"  # of the topic in `name`; of `broker`, or of all
    ALL_TOPICS = "all_topics"  # only of plans that an earlier version has stored
    PARTITION = "partition"
    OFFLINE_REPLICAS = "offline_replicas"  # of `broker`, or of all
    REPLICATION_FACTOR = "replication_factor"  # all partitions that lack the number in `name`
    BROKER_SET = "broker_set"  # `name`: all topics that are bound to it, or to none
    RACK_REPAIR = "rack_repair"  # all partitions that are not spread over racks
    OTHER = "other"  # of a plan stored before subjects had kinds: `name` is the text


@dataclass(frozen=True, slots=True)
class Subject:
    """What a note is about; ``name`` and ``broker`` as its kind says."""

    kind: SubjectKind
    name: str = ""
    broker: BrokerId | None = None

    @classmethod
    def of_broker(cls, broker: BrokerId) -> Self:
        """A broker."""
        return cls(SubjectKind.BROKER, broker=int(broker))

    @classmethod
    def of_partition(cls, partition: TopicPartition) -> Self:
        """A partition."""
        return cls(SubjectKind.PARTITION, str(partition))


class Obstacle(enum.StrEnum):
    """Why a target is missed, or a partition left as it is."""

    BUDGET = "budget"  # the movement budget ends before it
    RACKS_ALLOW_NO_MORE = "racks_allow_no_more"
    RACKS_FORCE_MORE = "racks_force_more"
    FIXED_REPLICAS = "fixed_replicas"  # replicas that may not move hold `amount`, where known
    TAKES_NO_REPLICAS = "takes_no_replicas"  # excluded, no destination, or cordoned
    DISK_FULL = "disk_full"  # free space does not hold the share
    ONE_REPLICA_PER_BROKER = "one_replica_per_broker"
    LARGE_PARTITION = "large_partition"  # `partition`, of `amount`, is larger than the share
    NO_MOVE = "no_move"  # no move or swap of whole replicas was found that brings it closer
    NO_LEADER_CHANGE = "no_leader_change"  # the same of other replicas as leaders
    MIN_LEADERS_FIRST = "min_leaders_first"  # leaders were handed over for min_leaders afterwards
    TOO_FEW_PARTITIONS = (
        "too_few_partitions"  # a topic has fewer than the brokers would have to lead
    )
    CAP = "cap"  # the broker's cap is below the share
    ABOVE_CAP = "above_cap"  # it ends above its cap, `wanted`, as it was before or lower
    CAPS_TOO_LOW = "caps_too_low"  # all caps together hold less than there is
    SET_TOO_SMALL = "set_too_small"  # too few brokers of its set are live
    CAPS_KEEP_UNEVEN = "caps_keep_uneven"  # caps keep it off brokers that would even it out
    DISKS_KEEP_UNEVEN = "disks_keep_uneven"  # the same of disk space
    CLOSED_KEEP_UNEVEN = "closed_keep_uneven"  # the same: these take no new replicas
    OUTSIDE_SET = "outside_set"  # replicas stay on `brokers`, which are not of its set
    OUTSIDE_DESTINATIONS = "outside_destinations"  # the same: these are no destinations
    NO_OTHER_LEADER = "no_other_leader"  # no replica in sync on a broker that is not demoted
    PREFERRED_OUT_OF_SYNC = "preferred_out_of_sync"  # the preferred leader cannot lead now
    REPLACEMENT_HOLDS_ONE = "replacement_holds_one"  # it goes to `brokers`, not to `instead_of`
    REPLACEMENT_RACKS = "replacement_racks"  # the same: the racks would be worse
    REPLACEMENT_FULL = "replacement_full"  # the same: there is no room
    REPLACEMENT_LIMITED = "replacement_limited"  # the same: a cap or the broker set is in the way
    SHIFTED_SHARE = "shifted_share"  # limits of others shift what it can hold
    PLANNED_IN_PARTS = "planned_in_parts"  # only of plans that an earlier version has stored
    IN_FLIGHT = "in_flight"  # being reassigned already
    LOG_DIR_MOVE_IN_FLIGHT = "log_dir_move_in_flight"
    NO_SOURCE = "no_source"  # no live leader to copy from
    TOO_FEW_ONLINE = "too_few_online"
    NO_BROKER = "no_broker"  # none is left to take a replica
    BROKER_NOT_LIVE = "broker_not_live"
    LOG_DIR_FAILED = "log_dir_failed"
    NO_LONGER_EXISTS = "no_longer_exists"
    TOPIC_RECREATED = "topic_recreated"
    MOVED_SINCE = "moved_since"  # something else moved it to `brokers`
    WAY_BACK_NOT_LIVE = "way_back_not_live"  # `brokers` that it would go back to
    IN_SYNC_FIRST = "in_sync_first"  # replicas in sync stay, at the cost of spread over racks
    IN_SYNC_KEPT = "in_sync_kept"  # goes to `brokers` `instead_of` those it had
    OTHER = "other"  # of a plan stored before obstacles had codes: `text`


OF_THE_CLUSTER = frozenset(
    {
        Obstacle.RACKS_ALLOW_NO_MORE,
        Obstacle.RACKS_FORCE_MORE,
        Obstacle.ONE_REPLICA_PER_BROKER,
        Obstacle.LARGE_PARTITION,
        Obstacle.SHIFTED_SHARE,
    }
)
"""Limits that lie in the cluster: the plan reaches the best that is possible. The gate finds the
cause of each by itself.
"""


@dataclass(frozen=True, slots=True)
class Infeasible:
    """A target that is missed or a partition that is left, why, and the nearest that is reached.

    :param resource: that the target is about, and ``wanted``, ``nearest`` and ``amount`` are given
        in; None where they count partitions or replicas that should be moved.
    :param amount: what stands in the way, as the obstacle says; of a rack, how many brokers it has.
    :param others: further brokers of which the same is true.
    :param text: only of a plan that was stored before obstacles had codes.
    """

    subject: Subject
    obstacle: Obstacle
    wanted: float
    nearest: float
    resource: Resource | None = None
    amount: float = 0
    partition: str = ""
    brokers: tuple[BrokerId, ...] = ()
    instead_of: tuple[BrokerId, ...] = ()
    others: int = 0
    text: str = ""


Notes = tuple[Infeasible, ...]


def infeasible_from_json(row: Mapping[str, Any]) -> Infeasible:
    """A note as ``summary.json`` holds it, today's form or the older one of two sentences."""
    if "constraint" in row:
        return Infeasible(
            Subject(SubjectKind.OTHER, row["subject"]),
            Obstacle.OTHER,
            row["wanted"],
            row["nearest"],
            text=row["constraint"],
        )
    subject = row["subject"]
    resource = row["resource"]
    return Infeasible(
        **{
            **row,
            "subject": Subject(**{**subject, "kind": SubjectKind(subject["kind"])}),
            "obstacle": Obstacle(row["obstacle"]),
            "resource": None if resource is None else Resource(resource),
            "brokers": tuple(row["brokers"]),
            "instead_of": tuple(row["instead_of"]),
        }
    )
