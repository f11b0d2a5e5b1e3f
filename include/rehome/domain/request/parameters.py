"""The parameters of `reassign_partitions`, each defined once.

Airflow's form, the API's checks, the parsing at the start of a run, and the reference for people
are all made from :class:`ReassignmentParams`.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from rehome.domain.actions import Action, Trait, actions_with
from rehome.domain.request.fields import balance, choices, types
from rehome.domain.request.fields.shared import (
    FIRST,
    OF_ONE_RUN,
    WHAT,
    AskApproval,
    BrokerSets,
    Caps,
    Cluster,
    Dryness,
    OfOneRun,
    TakenBy,
)
from rehome.domain.request.request import Cordon, OnWindowEnd, Preset, ReassignmentRequest
from rehome.field_descriptions import Section, Unit, mark

_HOW = Section("How fast, and until when")
_BYTES_PER_S = Unit("bytes per second")

_T = TypeVar("_T")
_DEFAULT = ReassignmentRequest(Action.REBALANCE)


class ReassignmentParams(BaseModel):
    """What a run takes. Where the action says it, and as forms show it."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    preset: Annotated[
        Preset,
        choices.PRESET,
        WHAT,
        OF_ONE_RUN,
        Field(
            title="Preset",
            description="Fills the fields that you leave at their default. A field that you "
            "change keeps your value. The log of the first task says what was filled in.",
        ),
    ] = Preset.NONE
    kafka_config_id: Cluster = "kafka_default"
    action: Annotated[
        Action | None,
        choices.ACTION,
        WHAT,
        OF_ONE_RUN,
        Field(
            title="Action",
            description="What the run is to achieve. A run without one is refused, but for one "
            "that resumes a plan.",
        ),
    ] = None
    brokers: Annotated[
        types.BrokerIds,
        WHAT,
        TakenBy(
            (
                Action.REBALANCE,
                Action.EXPAND,
                Action.DRAIN,
                Action.DEMOTE,
                Action.FIX_OFFLINE_REPLICAS,
                Action.MOVE_LOG_DIRS,
                Action.EVACUATE_LOG_DIRS,
            )
        ),
        OF_ONE_RUN,
        Field(
            title="Brokers",
            description="Broker ids. Drain: those to empty. Expand: those to fill. Demote: those "
            "that are to lead nothing. Rebalance and move log dirs: those to even out, all if "
            "none. Fix offline replicas: those whose replicas are offline, all if none.",
            examples=["3", "3, 4"],
        ),
    ] = _DEFAULT.brokers
    destinations: balance.Destinations = _DEFAULT.destinations
    topics: Annotated[
        types.TopicNames,
        WHAT,
        TakenBy(
            (
                Action.REBALANCE,
                Action.EXPAND,
                Action.DRAIN,
                Action.REPLACE,
                Action.SET_REPLICATION_FACTOR,
                Action.REPAIR_RACKS,
                Action.FIX_OFFLINE_REPLICAS,
                Action.BALANCE_LEADERS,
                Action.DEMOTE,
                Action.ELECT_PREFERRED,
                Action.MOVE_LOG_DIRS,
            )
        ),
        OF_ONE_RUN,
        Field(
            title="Topics",
            description="Names or patterns with * and ?, one a line; re: and a regular "
            "expression of the whole name; after a colon partitions. None means all. An "
            "internal topic takes part only when its full name is given. Some actions need no "
            "name for that: drain, replace, demote, elect preferred, fix offline replicas and "
            "evacuate log dirs are about every topic.",
            examples=["orders", "logs-*", "orders:3-9", "re:logs-[0-9]+"],
        ),
    ] = _DEFAULT.topics
    replication_factor: Annotated[
        types.OptionalReplicationFactor,
        WHAT,
        TakenBy((Action.SET_REPLICATION_FACTOR,)),
        OF_ONE_RUN,
        Field(
            title="Replication factor",
            description="For set replication factor: how many replicas each partition of the "
            "topics is to have.",
            examples=[3],
        ),
    ] = _DEFAULT.replication_factor
    replacements: Annotated[
        types.Replacements,
        WHAT,
        TakenBy((Action.REPLACE,)),
        Field(
            default_factory=dict,
            title="Replacements",
            description="For replace: each broker that is to be emptied, and the one that takes "
            "its place.",
            examples=[{"3": 7, "4": 8}],
        ),
    ]
    log_dirs: Annotated[
        types.LogDirNames,
        WHAT,
        TakenBy((Action.EVACUATE_LOG_DIRS,)),
        Field(
            title="Log dirs",
            description="For evacuate log dirs: those to empty, one a line, as broker:path. None "
            "means those that are cordoned: of the brokers that are named, or of all.",
            examples=["3:/data/1"],
        ),
    ] = _DEFAULT.log_dirs
    reassignment: Annotated[
        types.ReassignmentJson,
        WHAT,
        TakenBy((Action.REASSIGN,)),
        OF_ONE_RUN,
        Field(
            title="Reassignment",
            description="For reassign: Kafka's own JSON, as kafka-reassign-partitions takes it, "
            "or what its --generate prints: the proposed part of that is taken. It may name log "
            "dirs, too.",
            examples=[
                {
                    "version": 1,
                    "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}],
                }
            ],
        ),
    ] = _DEFAULT.reassignment
    allow_replication_factor_change: Annotated[
        types.YesOrNo,
        WHAT,
        TakenBy((Action.REASSIGN,)),
        OF_ONE_RUN,
        Field(
            title="Another number of replicas",
            description="For reassign: partitions may get more or fewer replicas than they have, "
            "as the JSON says. Else such a file is refused.",
        ),
    ] = _DEFAULT.allow_replication_factor_change
    plan_id: Annotated[
        types.OptionalPlanId,
        WHAT,
        OF_ONE_RUN,
        Field(
            title="Plan",
            description="For rollback: the plan to take back. Else: a paused plan to resume, "
            "or one that a dry run has made, to be run as it is.",
            examples=["20300131T040000Z-drain-0123456789"],
        ),
    ] = _DEFAULT.plan_id
    cluster_id: Annotated[
        types.OptionalText,
        WHAT,
        OF_ONE_RUN,
        Field(
            title="Kafka's id of the cluster",
            description="A connection that leads to another cluster than this one is refused. "
            "Nothing given: the cluster that the connection leads to is meant.",
            examples=["MkU3OEVBNTcwNTJENDM2Qk"],
        ),
    ] = None

    dry_run: Dryness = _DEFAULT.dry_run
    export: Annotated[
        types.YesOrNo,
        FIRST,
        OF_ONE_RUN,
        Field(
            title="Export files",
            description="Stop after the dry run, and write files for Kafka's own tools: "
            "reassignments in batches, the way back, throttle commands. For clusters that others "
            "configure: rights to change anything are not needed.",
        ),
    ] = _DEFAULT.export
    approval: AskApproval = _DEFAULT.approval
    additional: Annotated[
        types.YesOrNo,
        FIRST,
        Field(
            title="Beside another reassignment",
            description="Run although another client's reassignment is in flight (KIP-455). "
            "Else the run is refused then.",
        ),
    ] = _DEFAULT.additional

    throttle: Annotated[
        types.Throttle,
        _BYTES_PER_S,
        _HOW,
        Field(
            title="Throttle",
            description="A rate such as 50 MB/s, or bytes per second: for each broker, and each "
            "direction. Auto uses what the brokers can spare.",
            examples=["auto", "50 MB/s"],
        ),
    ] = "auto"
    throttle_by_broker: Annotated[
        types.RatesByBroker,
        _BYTES_PER_S,
        _HOW,
        Field(
            default_factory=dict,
            validate_default=True,
            title="Throttles of single brokers",
            description="A rate for each broker that is to have one of its own: leader is what it "
            "sends, follower what it receives, a number is both. The others have the throttle.",
            examples=[{"1": {"leader": 5000000, "follower": 2000000}, "4": "1 MB/s"}],
        ),
    ]
    throttle_min: Annotated[
        types.OptionalRate,
        _BYTES_PER_S,
        _HOW,
        Field(
            title="Least throttle",
            description="Auto chooses no less, and partitions that suffer while copies run do "
            "not bring the throttle lower. Nothing given: a tenth of the throttle.",
            examples=[5000000],
        ),
    ] = _DEFAULT.throttle_min
    throttle_max: Annotated[
        types.OptionalRate,
        _BYTES_PER_S,
        _HOW,
        Field(
            title="Largest throttle",
            description="The most that auto chooses.",
            examples=[100000000],
        ),
    ] = _DEFAULT.throttle_max
    max_moves_per_broker: Annotated[
        int,
        types.whole_number(1),
        _HOW,
        Field(
            title="Moves at once",
            description="The most moves at once, for each broker and direction.",
            examples=[2, 4, 8],
        ),
    ] = _DEFAULT.max_moves_per_broker
    max_new_replicas_at_once: Annotated[
        types.OptionalCount,
        _HOW,
        TakenBy(
            (
                Action.REBALANCE,
                Action.EXPAND,
                Action.DRAIN,
                Action.REPLACE,
                Action.SET_REPLICATION_FACTOR,
                Action.REPAIR_RACKS,
                Action.FIX_OFFLINE_REPLICAS,
                Action.REASSIGN,
                Action.ROLLBACK,
            )
        ),
        Field(
            title="New replicas at once",
            description="The most new replicas that a partition gets at once. One that gets more "
            "has them in steps, and gives its old ones up in the last step. Nothing given: all of "
            "them at once, as Kafka does.",
            examples=[1],
        ),
    ] = _DEFAULT.max_new_replicas_at_once
    unthrottled: Annotated[
        types.YesOrNo,
        _HOW,
        Field(
            title="Without a throttle",
            description="Set no throttle: nothing limits the copies but how many run at once. "
            "Clients of the brokers may suffer. Only where the connection's policy allows it.",
        ),
    ] = _DEFAULT.unthrottled
    window_end: Annotated[
        types.Time,
        _HOW,
        OF_ONE_RUN,
        Field(
            title="End of the window",
            description="The time at which nothing may be in flight any more. Nothing given: the "
            "run takes the time that it needs. With text, name the time zone.",
            examples=["2030-01-31T04:00:00Z", "2030-01-31T04:00:00+01:00"],
        ),
    ] = _DEFAULT.window_end
    on_window_end: Annotated[
        OnWindowEnd,
        choices.ON_WINDOW_END,
        _HOW,
        Field(
            title="When the window ends",
            description="What happens to moves that would still be in flight. The plan pauses "
            "either way, and can be resumed.",
        ),
    ] = _DEFAULT.on_window_end
    cordon: Annotated[
        Cordon,
        choices.CORDON,
        _HOW,
        TakenBy(actions_with(Trait.EMPTIES)),
        OF_ONE_RUN,
        Field(
            title="Cordon drained brokers",
            description="For drain and replace, from Kafka 4.3 on (KIP-1066): keeps Kafka from "
            "placing new replicas on the brokers.",
        ),
    ] = _DEFAULT.cordon

    tolerance: balance.Tolerance = _DEFAULT.tolerance
    tolerances: balance.Tolerances
    topic_spread_of: balance.TopicSpreadOf = _DEFAULT.topic_spread_of
    min_leaders: balance.MinLeaders
    one_sided: balance.OneSided = _DEFAULT.one_sided
    effort: balance.EffortLevel = _DEFAULT.effort
    move_overhead_bytes: balance.MoveOverheadBytes = _DEFAULT.move_overhead_bytes
    exclude_topics: balance.ExcludeTopics = _DEFAULT.exclude_topics
    exclude_brokers: balance.ExcludeBrokers = _DEFAULT.exclude_brokers
    weights: balance.Weights
    budget_bytes: balance.BudgetBytes = _DEFAULT.budget_bytes
    budget_moves: balance.BudgetMoves = _DEFAULT.budget_moves
    caps: Caps = _DEFAULT.caps
    broker_sets: BrokerSets = _DEFAULT.broker_sets
    ignore_racks: balance.IgnoreRacks = _DEFAULT.ignore_racks
    seed: balance.Seed = _DEFAULT.seed


def _marks(kind: type[_T]) -> dict[str, _T]:
    every = ((name, mark(info, kind)) for name, info in ReassignmentParams.model_fields.items())
    return {name: field_mark for name, field_mark in every if field_mark is not None}


USED_BY = {name: taken.actions for name, taken in _marks(TakenBy).items()}
"""Parameters that mean something to some actions only; elsewhere they are refused, not ignored."""

OF_A_RUN = tuple(_marks(OfOneRun))
"""Parameters that say what one run is for: no cluster has a default of its own for them."""
