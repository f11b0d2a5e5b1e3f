"""What an operator asks for, as the planner and its surroundings use it.

:mod:`rehome.domain.request.parse_request` reads it from the parameters of a run.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from math import inf
from typing import Any

from rehome.domain.actions import ACTION_FACTS, Action, Trait
from rehome.domain.broker_rates import NO_OWN_RATES, BrokerRates
from rehome.domain.kafka import BrokerId, LogDirName
from rehome.domain.request import param_types
from rehome.domain.request.limits import (
    BrokerCaps,
    BrokerSet,
    broker_sets_to_json,
    caps_to_json,
)


class OnWindowEnd(enum.StrEnum):
    """What happens to moves that would still be in flight when a window ends."""

    FINISH = "finish"  # nothing is started that would not finish in time
    CANCEL = "cancel"  # they are started, and cancelled at the window's end

    @classmethod
    def _missing_(cls, value: object) -> OnWindowEnd | None:
        return cls.FINISH if value == FORMER_FINISH else None


FORMER_FINISH = "drain"
"""What :attr:`OnWindowEnd.FINISH` was called before; it is still understood."""


class Cordon(enum.StrEnum):
    """Whether the log dirs of drained brokers are cordoned (KIP-1066), and for how long."""

    NO = "no"
    KEEP = "keep"  # from the start of the plan on, for good
    UNDO = "undo"  # until the plan ends


class SpreadOf(enum.StrEnum):
    """What of each topic is spread over brokers."""

    REPLICAS = "replicas"  # and leaders
    LEADERS = "leaders"  # by the order of replicas: nothing is copied for it


class Effort(enum.StrEnum):
    """How much time the planner takes for fewer bytes."""

    FAST = "fast"
    THOROUGH = "thorough"


class Preset(enum.StrEnum):
    """What fills in parameters: see :mod:`rehome.domain.request.presets`."""

    NONE = "none"
    CHECK_ONLY = "check_only"
    DRAIN_GENTLY = "drain_gently"
    EXPAND = "expand"
    REBALANCE_TONIGHT = "rebalance_tonight"


@dataclass(frozen=True, slots=True)
class ReassignmentRequest:
    """A validated request.

    :param brokers: ids the action is about (drain: to empty; expand: to fill; demote: to lead
        nothing; fix_offline_replicas: whose replicas are offline; rebalance, move_log_dirs and
        this one: empty = all).
    :param topics: names or glob patterns; empty = all, internal topics only for the actions of
        :attr:`Trait.TAKES_INTERNAL`. Elsewhere an internal topic takes part when its full name is
        given: a pattern does not reach it.
    :param replacements: replace: broker → the one that takes its place.
    :param log_dirs: evacuate_log_dirs: those to empty; empty = the cordoned ones, of the brokers.
    :param reassignment: Kafka's reassignment JSON, parsed, for ``reassign``.
    :param allow_replication_factor_change: reassign: its file may give partitions more or fewer
        replicas than they have.
    :param throttle_bytes_per_s: per broker; None = "auto".
    :param throttle_by_broker: rates of single brokers; ``throttle_max_by_broker``: their bounds.
    :param throttle_min, throttle_max: bounds of what "auto" chooses; others' strain does not bring
        any throttle below the first. None = none.
    :param unthrottled: nothing is throttled: the copies are limited by how many run at once alone.
    :param export: a dry run that also writes files for Kafka's own tools, for others to carry out.
    :param window_end: aware UTC time at which nothing may be in flight; None = no window.
    :param max_moves_per_broker: slots per broker and direction.
    :param max_new_replicas_at_once: of a partition: one that gets more has them in steps. None =
        all of them at once, as Kafka does.
    :param cordon: drain: whether Kafka is kept from placing new replicas on the brokers meanwhile.
    :param tolerance: allowed deviation from a broker's share of bytes (0.02 = 2 %); for
        move_log_dirs, from a log dir's share of its broker's; for set_replication_factor, how
        much fuller than its siblings a branch of the rack tree may be and still have its turn.
    :param tolerances: the same for other resources (replicas, leaders, bytes_in, bytes_out,
        potential_bytes_out, leader_bytes_in); None = spread in any way. Of those not named, bytes
        in and out are balanced to 5 % where they are known, and the others are free.
        ``topic_spread`` is that of each topic's replicas and leaders per broker, at least one of
        them: see topic_bands.
    :param one_sided: rebalance: brokers may hold as little as they like; only too much counts.
    :param effort: rebalance, expand: how much time is taken for fewer bytes.
    :param move_overhead_bytes: what a move costs on top of its bytes, for being a move.
    :param exclude_topics: names or patterns that stay where they are.
    :param exclude_brokers: ids that get nothing new, and whose log dirs stay as they are.
    :param weights: relative size of brokers, on top of their disks; 1 where not named. They count
        wherever replicas are placed by load.
    :param budget_bytes, budget_moves: what may be copied at most: then the plan does the best it
        can with that, and names what it leaves. None = no limit.
    :param destinations: the only brokers that new replicas are placed on; empty = any. A rebalance
        brings all that it is about there, as Kafka's own tool does with a list of brokers;
        elsewhere other replicas stay where they are.
    :param caps: the most that brokers may hold; ``broker_sets``: brokers that topics are bound to.
        None = not said: the setting's where a run fills it in, else none.
    :param ignore_racks: plan as if no broker had a rack.
    :param seed: breaks ties; same snapshot, request and seed give the same plan.
    :param min_leaders: name or pattern of topics → partitions of each that every broker is to lead
        at least; where several match a topic, the largest number counts.
    :param topic_spread_of: what ``topic_spread`` is about: replicas and leaders, or leaders alone.
    :param preset: what has filled in the rest of the request, for those who read it later.
    """

    action: Action
    brokers: tuple[BrokerId, ...] = ()
    topics: tuple[str, ...] = ()
    replication_factor: int | None = None
    replacements: Mapping[BrokerId, BrokerId] = field(default_factory=dict)
    log_dirs: tuple[LogDirName, ...] = ()
    reassignment: Mapping[str, Any] | None = None
    allow_replication_factor_change: bool = False
    plan_id: str | None = None
    throttle_bytes_per_s: int | None = None
    throttle_min: int | None = None
    throttle_max: int | None = None
    window_end: datetime | None = None
    on_window_end: OnWindowEnd = OnWindowEnd.FINISH
    max_moves_per_broker: int = 4
    unthrottled: bool = False
    dry_run: bool = False
    export: bool = False
    approval: bool = False
    additional: bool = False
    cordon: Cordon = Cordon.NO
    tolerance: float = 0.02
    tolerances: Mapping[str, float | None] = field(default_factory=dict)
    one_sided: bool = False
    effort: Effort = Effort.FAST
    move_overhead_bytes: int = 32_000_000
    exclude_topics: tuple[str, ...] = ()
    exclude_brokers: tuple[BrokerId, ...] = ()
    weights: Mapping[BrokerId, float] = field(default_factory=dict)
    budget_bytes: int | None = None
    budget_moves: int | None = None
    ignore_racks: bool = False
    seed: int = 0
    min_leaders: Mapping[str, int] = field(default_factory=dict)
    topic_spread_of: SpreadOf = SpreadOf.REPLICAS
    preset: Preset = Preset.NONE
    caps: BrokerCaps | None = None
    broker_sets: tuple[BrokerSet, ...] | None = None
    destinations: tuple[BrokerId, ...] = ()
    throttle_by_broker: BrokerRates = NO_OWN_RATES
    throttle_max_by_broker: BrokerRates = NO_OWN_RATES
    max_new_replicas_at_once: int | None = None

    def has(self, trait: Trait) -> bool:
        """Whether its action is one of these."""
        return trait in ACTION_FACTS[self.action].traits

    @property
    def brought(self) -> bool:
        """Whether all that the request is about is to end on the destinations."""
        return self.action is Action.REBALANCE and bool(self.destinations)

    def own_rates(self, rate_bytes_per_s: int) -> BrokerRates:
        """The rates of brokers that have some of their own."""
        own = self.throttle_by_broker.at_most(self.throttle_max_by_broker, rate_bytes_per_s)
        return NO_OWN_RATES if self.unthrottled else own

    @property
    def emptied(self) -> tuple[BrokerId, ...]:
        """Brokers that are to hold nothing in the end of what the request is about."""
        if self.action is Action.REPLACE:
            return tuple(sorted(self.replacements))
        return self.brokers if self.action is Action.DRAIN else ()


SPREAD_TOLERANCE = 0.1
"""Part of a broker's share of a topic that it may be off without a note; at least one replica."""


def spread_tolerance(request: ReassignmentRequest) -> float:
    """The tolerance of topic_spread; infinite where topics may be spread in any way."""
    if not request.has(Trait.SPREADS_TOPICS):
        return inf
    tolerance = request.tolerances.get(param_types.TOPIC_SPREAD, SPREAD_TOLERANCE)
    return inf if tolerance is None else tolerance


MAY_SHARE_A_BROKER = 2
"""Replicas of a topic that may always share a broker, however few the topic has."""

MOST_TOPIC_CELLS = 10_000_000
"""Topics times brokers: if topics with fewer replicas than brokers would make more, not all of them
are kept from sharing brokers.
"""


def evens_topics(request: ReassignmentRequest) -> bool:
    """Whether replicas move for the spread of topics alone. By default they do not: a rebalance
    or an expansion leaves no topic further off its share than it was.
    """
    tolerance = request.tolerances.get(param_types.TOPIC_SPREAD)
    return tolerance is not None or request.topic_spread_of is SpreadOf.LEADERS


def upgraded_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that an earlier version may have written, with the values of this one: so that
    they can be compared with others before they are read.
    """
    renamed = params.get("on_window_end") == FORMER_FINISH
    return {**params, "on_window_end": OnWindowEnd.FINISH.value} if renamed else dict(params)


def request_to_params(request: ReassignmentRequest) -> dict[str, Any]:
    """The request as plain JSON types; ``parse_request`` reads it back (``request.json``)."""
    params = {item.name: getattr(request, item.name) for item in fields(request)}
    del params["throttle_max_by_broker"]  # a policy's
    params["throttle_by_broker"] = request.throttle_by_broker.to_json()
    params["throttle"] = params.pop("throttle_bytes_per_s") or "auto"
    params["window_end"] = request.window_end and request.window_end.isoformat()
    for name in ("action", "on_window_end", "cordon", "topic_spread_of", "preset", "effort"):
        params[name] = params[name].value
    params["log_dirs"] = [str(name) for name in request.log_dirs]
    for name in ("brokers", "topics", "exclude_topics", "exclude_brokers", "destinations"):
        params[name] = list(params[name])
    params |= {name: dict(params[name]) for name in ("tolerances", "min_leaders")}
    for name in ("replacements", "weights"):
        params[name] = {str(broker): value for broker, value in params[name].items()}
    if request.caps is not None:
        params["caps"] = caps_to_json(request.caps)
    if request.broker_sets is not None:
        params["broker_sets"] = broker_sets_to_json(request.broker_sets)
    return params
