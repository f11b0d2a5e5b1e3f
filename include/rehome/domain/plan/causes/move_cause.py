"""Why a partition moves, in codes.

:mod:`rehome.domain.plan.causes.cause_text` makes the sentence where a person reads it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from rehome.domain.kafka import BrokerId
from rehome.domain.resources import Resource


class CauseCode(enum.StrEnum):
    """One cause of a move. ``broker`` gives a replica, or leadership, up; ``takes`` gets it."""

    REQUESTED = "requested"  # named in the requested reassignment
    FOREIGN = "foreign"  # another client has started it
    TAKEN_BACK = "taken_back"  # a rollback: to where it was before the plan
    REPLICATION_FACTOR = "replication_factor"  # current and target of the move say the rest
    UNEVEN_RACKS = "uneven_racks"  # its replicas were not spread evenly over racks
    OUTSIDE_SET = "outside_set"  # `broker` may not hold it by its set `name`; "" = others' set
    OUTSIDE_DESTINATIONS = "outside_destinations"  # the same by the destinations
    DRAINED = "drained"  # `broker` is to be emptied
    NOT_LIVE = "not_live"  # `broker` is not live
    LOG_DIR_FAILED = "log_dir_failed"  # a log dir of `broker` has failed
    REPLACED = "replaced"  # `takes` is the replacement of `broker`, and takes its place
    REPLACEMENT_HOLDS_ONE = "replacement_holds_one"  # the same, but it holds a replica already
    REPLACEMENT_RACKS = "replacement_racks"  # the same, but it would spread it less evenly
    REPLACEMENT_FULL = "replacement_full"  # the same, but it has no room for it
    REPLACEMENT_LIMITED = "replacement_limited"  # the same, but a cap or a set is in the way
    LOG_DIR_EMPTIED = "log_dir_emptied"  # `name` of `broker` is; `takes_name` has room, "" = none
    LOG_DIR_OVER_SHARE = "log_dir_over_share"  # on `broker`, from `name` to `takes_name`
    OVER_SHARE = "over_share"  # `broker` held `held`, and where it lacked that, `takes` held
    UNDER_SHARE = "under_share"  # `takes` held `takes_held`; `broker` can spare it
    TOPIC_SPREAD = "topic_spread"  # both held so many replicas of the topic
    RACKS_OF_MOVED = "racks_of_moved"  # for the racks of a partition that moves
    NO_DESTINATION = "no_destination"  # `broker` is no destination of the rebalance
    MIN_LEADERS_COPY = "min_leaders_copy"  # `takes` leads too few of the topic
    LEADERS_EVENED = "leaders_evened"  # in a rebalance; nothing is copied
    MIN_LEADERS = "min_leaders"  # `takes` is to lead it for min_leaders
    LEADS_MORE = "leads_more"  # `broker` leads more partitions than `takes`
    LEADS_MORE_TRAFFIC = "leads_more_traffic"  # the same, or more traffic
    DEMOTED = "demoted"  # `broker` is to lead nothing
    PREFERRED_LEADER = "preferred_leader"  # `broker` is, and `takes` leads it; None = no broker
    STORED_SENTENCE = "stored_sentence"  # of a plan that an earlier version has stored: `name`


@dataclass(frozen=True, slots=True)
class HeldLoad:
    """What a broker, or a log dir, held before the plan, and what its share is."""

    resource: Resource
    amount: float
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class MoveCause:
    """One cause of a move; what is given, its code says.

    :param name, takes_name: a log dir, or a broker set.
    :param held: of ``broker``, or of its log dir; ``takes_held``: of the other.
    """

    code: CauseCode
    broker: BrokerId | None = None
    takes: BrokerId | None = None
    name: str = ""
    takes_name: str = ""
    held: HeldLoad | None = None
    takes_held: HeldLoad | None = None
