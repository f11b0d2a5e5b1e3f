"""Parameters for balance: how even a plan is to leave the cluster, within limits and budgets."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rehome.domain.actions import Action, Trait, actions_with
from rehome.domain.request import param_types
from rehome.domain.request.fields import choices, types
from rehome.domain.request.fields.shared import BYTES, LIMITS, OF_ONE_RUN, WHAT, TakenBy
from rehome.domain.request.request import SPREAD_TOLERANCE, Effort, SpreadOf
from rehome.domain.resources import LED, OPTIONAL, RESOURCE_FACTS
from rehome.domain.text import join_names

_OPTIONAL = "; ".join(
    f"{resource.value} is {RESOURCE_FACTS[resource].about}" for resource in OPTIONAL
)

Tolerance = Annotated[
    types.Fraction,
    LIMITS,
    Field(
        title="Tolerance",
        description="How far a broker may be off its share of bytes; 0.02 means 2 %. For "
        "move log dirs: how far a log dir may be. For set replication factor: how much "
        "fuller than others a branch of the rack tree may get and still have its turn.",
        examples=[0.02, 0.1],
    ),
]
Tolerances = Annotated[
    types.ToleranceByResource,
    LIMITS,
    TakenBy((Action.REBALANCE, Action.EXPAND, Action.DRAIN, Action.BALANCE_LEADERS)),
    Field(
        default_factory=dict,
        title="Tolerances of other resources",
        description="The same for "
        + ", ".join(param_types.TOLERANCES)
        + "; null means any. Left out: bytes_in and bytes_out are balanced to 0.05 where the "
        "history knows them, and the others are free. "
        + _OPTIONAL
        + ". Left out, no topic ends spread worse than it was, beyond "
        f"{SPREAD_TOLERANCE} of a broker's share or one replica. topic_spread also evens topics "
        "out, which moves several times as many replicas; the plan says how many. Balance leaders "
        f"takes those of {join_names([resource.value for resource in LED])}.",
        examples=[{"replicas": 0.05, "topic_spread": None}],
    ),
]
TopicSpreadOf = Annotated[
    SpreadOf,
    choices.SPREAD_OF,
    LIMITS,
    TakenBy(actions_with(Trait.SPREADS_TOPICS)),
    Field(
        title="Spread of topics",
        description="What topic_spread is about: each topic's replicas and leaders, or its "
        "leaders only.",
    ),
]
MinLeaders = Annotated[
    types.LeadersByTopic,
    LIMITS,
    TakenBy((Action.REBALANCE, Action.EXPAND, Action.BALANCE_LEADERS)),
    Field(
        default_factory=dict,
        title="Least number of leaders",
        description="For rebalance, expand and balance leaders: how many partitions of each "
        "of these topics every broker is to lead at least. Names or patterns with * and ?; "
        "the largest number counts where several match. Leaders change first; a replica is "
        "copied only where no change of leader does, and never by balance leaders.",
        examples=[{"orders": 1, "logs-*": 2}],
    ),
]
OneSided = Annotated[
    types.YesOrNo,
    LIMITS,
    TakenBy((Action.REBALANCE,)),
    Field(
        title="Only too much counts",
        description="For rebalance: brokers may hold as little as they like.",
    ),
]
EffortLevel = Annotated[
    Effort,
    choices.EFFORT,
    LIMITS,
    TakenBy((Action.REBALANCE, Action.EXPAND)),
    Field(
        title="Effort",
        description="For rebalance and expand: how long the planner searches for fewer bytes.",
    ),
]
MoveOverheadBytes = Annotated[
    int,
    types.whole_number(0),
    BYTES,
    LIMITS,
    Field(
        title="Cost of a move",
        description="What a move costs on top of its bytes, in bytes. More means fewer, larger "
        "moves.",
        examples=[32000000],
    ),
]
ExcludeTopics = Annotated[
    types.TopicNames,
    LIMITS,
    TakenBy(
        (
            Action.REBALANCE,
            Action.EXPAND,
            Action.SET_REPLICATION_FACTOR,
            Action.REPAIR_RACKS,
            Action.FIX_OFFLINE_REPLICAS,
            Action.BALANCE_LEADERS,
            Action.ELECT_PREFERRED,
            Action.MOVE_LOG_DIRS,
        )
    ),
    Field(
        title="Topics that stay",
        description="Topics that stay where they are, one a line: as for topics.",
        examples=["audit", "logs-*", "orders:7"],
    ),
]
ExcludeBrokers = Annotated[
    types.BrokerIds,
    LIMITS,
    TakenBy(actions_with(Trait.PLACES_REPLICAS)),
    Field(
        title="Brokers that get nothing",
        description="Ids of brokers that get no new replica.",
        examples=["3", "3, 4"],
    ),
]
Destinations = Annotated[
    types.BrokerIds,
    WHAT,
    TakenBy(
        (
            Action.REBALANCE,
            Action.DRAIN,
            Action.REPLACE,
            Action.SET_REPLICATION_FACTOR,
            Action.REPAIR_RACKS,
            Action.FIX_OFFLINE_REPLICAS,
            Action.EVACUATE_LOG_DIRS,
            Action.REASSIGN,
        )
    ),
    OF_ONE_RUN,
    Field(
        title="Destinations",
        description="Ids of the only brokers that get new replicas; none means any. A rebalance "
        "brings everything that it is about there, as Kafka's own tool does with --broker-list; "
        "for other actions, what has no reason to move stays where it is. An expansion has its "
        "brokers for that.",
        examples=["5", "5, 6"],
    ),
]
Weights = Annotated[
    types.WeightByBroker,
    LIMITS,
    TakenBy(
        (
            Action.REBALANCE,
            Action.EXPAND,
            Action.DRAIN,
            Action.DEMOTE,
            Action.SET_REPLICATION_FACTOR,
            Action.REPAIR_RACKS,
            Action.FIX_OFFLINE_REPLICAS,
        )
    ),
    Field(
        default_factory=dict,
        title="Weights",
        description="Relative size of brokers, on top of their disks; 1 for those not named.",
        examples=[{"3": 2, "4": 0.5}],
    ),
]
BudgetBytes = Annotated[
    types.OptionalCount,
    BYTES,
    LIMITS,
    TakenBy(actions_with(Trait.PLACES_REPLICAS)),
    Field(
        title="Budget in bytes",
        description="The most bytes to copy. The plan has the moves that help most, and "
        "names what it leaves.",
        examples=[500000000000],
    ),
]
BudgetMoves = Annotated[
    types.OptionalCount,
    LIMITS,
    TakenBy(actions_with(Trait.PLACES_REPLICAS)),
    Field(
        title="Budget in replicas",
        description="The most replicas to copy.",
        examples=[100],
    ),
]
IgnoreRacks = Annotated[
    types.YesOrNo,
    LIMITS,
    Field(title="Ignore racks", description="Plan as if no broker had a rack."),
]
Seed = Annotated[
    int,
    types.whole_number(0),
    LIMITS,
    OF_ONE_RUN,
    Field(
        title="Seed",
        description="Breaks ties: the same cluster, request and seed give the same plan.",
        examples=[0, 7],
    ),
]
