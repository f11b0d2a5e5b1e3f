"""What an operator asks for: the parameters of `reassign_partitions`, validated as a whole."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from math import inf
from typing import Any

from include.domain.kafka import BrokerId
from include.domain.request import param_types
from include.errors import InvalidRequestError


class Action(enum.StrEnum):
    """What `reassign_partitions` can be asked to do."""

    REBALANCE = "rebalance"
    DRAIN = "drain"
    EXPAND = "expand"
    SET_REPLICATION_FACTOR = "set_replication_factor"
    REPAIR_RACKS = "repair_racks"
    FIX_OFFLINE_REPLICAS = "fix_offline_replicas"
    BALANCE_LEADERS = "balance_leaders"
    REASSIGN = "reassign"
    MOVE_LOG_DIRS = "move_log_dirs"
    ROLLBACK = "rollback"


class OnWindowEnd(enum.StrEnum):
    """What happens to moves that a window's end finds in flight."""

    DRAIN = "drain"
    CANCEL = "cancel"


class Cordon(enum.StrEnum):
    """Whether the log dirs of drained brokers are cordoned (KIP-1066), and for how long."""

    NO = "no"
    KEEP = "keep"  # from the start of the plan on, for good
    UNDO = "undo"  # until the plan ends


@dataclass(frozen=True, slots=True)
class ReassignmentRequest:
    """A validated request. See design: "Params of `reassign_partitions`".

    :param brokers: ids the action is about (drain: to empty; expand: to fill;
        fix_offline_replicas: whose replicas are offline; rebalance, move_log_dirs and this one:
        empty = all).
    :param topics: names or glob patterns; empty = all, internal topics only for a drain, which
        must leave its brokers empty, and for fix_offline_replicas. Elsewhere an internal topic
        takes part when its full name is given: a pattern does not reach it.
    :param reassignment: Kafka's reassignment JSON, parsed, for ``reassign``.
    :param throttle_bytes_per_s: per broker; None = "auto".
    :param throttle_min, throttle_max: bounds of what "auto" chooses; others' strain does not bring
        any throttle below the first. None = none.
    :param window_end: aware UTC time at which nothing may be in flight; None = no window.
    :param max_moves_per_broker: slots per broker and direction.
    :param cordon: drain: whether Kafka is kept from placing new replicas on the brokers meanwhile.
    :param tolerance: allowed deviation from a broker's share of bytes (0.02 = 2 %); for
        move_log_dirs, from a log dir's share of its broker's; for set_replication_factor, how
        much fuller than its siblings a branch of the rack tree may be and still have its turn.
    :param tolerances: the same for other resources (replicas, leaders, bytes_in, bytes_out);
        None = spread in any way. Of those not named, traffic is balanced to 5 % where it is
        known, and numbers of replicas and leaders are free. ``topic_spread`` is that of each
        topic's replicas and leaders per broker, at least one of them: see topic_bands.
    :param one_sided: rebalance: brokers may hold as little as they like; only too much counts.
    :param move_overhead_bytes: what a move costs beside its bytes, for being a move.
    :param exclude_topics: names or patterns that stay where they are.
    :param exclude_brokers: ids that get nothing new, and whose log dirs stay as they are.
    :param weights: relative size of brokers, on top of their disks; 1 where not named. They count
        wherever replicas are placed by load.
    :param budget_bytes, budget_moves: what may be copied at most: then the plan does the best it
        can with that, and names what it leaves. None = no limit.
    :param ignore_racks: plan as if no broker had a rack.
    :param seed: breaks ties; same snapshot, request and seed give the same plan.
    """

    action: Action
    brokers: tuple[BrokerId, ...] = ()
    topics: tuple[str, ...] = ()
    replication_factor: int | None = None
    reassignment: Mapping[str, Any] | None = None
    plan_id: str | None = None
    throttle_bytes_per_s: int | None = None
    throttle_min: int | None = None
    throttle_max: int | None = None
    window_end: datetime | None = None
    on_window_end: OnWindowEnd = OnWindowEnd.DRAIN
    max_moves_per_broker: int = 4
    dry_run: bool = False
    approval: bool = False
    additional: bool = False
    cordon: Cordon = Cordon.NO
    tolerance: float = 0.02
    tolerances: Mapping[str, float | None] = field(default_factory=dict)
    one_sided: bool = False
    move_overhead_bytes: int = 32_000_000
    exclude_topics: tuple[str, ...] = ()
    exclude_brokers: tuple[BrokerId, ...] = ()
    weights: Mapping[BrokerId, float] = field(default_factory=dict)
    budget_bytes: int | None = None
    budget_moves: int | None = None
    ignore_racks: bool = False
    seed: int = 0


SPREADS_TOPICS = (Action.REBALANCE, Action.EXPAND, Action.DRAIN)
"""Actions that keep topics spread over brokers unless the request says otherwise."""

SPREAD_TOLERANCE = 0.1
"""Part of a broker's share of a topic that it may be off, without a word; at least one replica."""


def spread_tolerance(request: ReassignmentRequest) -> float:
    """The tolerance of topic_spread; infinite where topics may be spread in any way."""
    if request.action not in SPREADS_TOPICS:
        return inf
    asked = request.tolerances.get(param_types.TOPIC_SPREAD, SPREAD_TOLERANCE)
    return inf if asked is None else asked


NEEDED = {
    Action.EXPAND: "brokers",
    Action.DRAIN: "brokers",
    Action.SET_REPLICATION_FACTOR: "replication_factor",
    Action.REASSIGN: "reassignment",
    Action.ROLLBACK: "plan_id",
}
"""The parameter an action cannot do without."""

TAKES_INTERNAL = (Action.DRAIN, Action.FIX_OFFLINE_REPLICAS)
"""Actions that are about internal topics, too, where no topics are named."""

PLACES_REPLICAS = (
    Action.REBALANCE,
    Action.EXPAND,
    Action.DRAIN,
    Action.SET_REPLICATION_FACTOR,
    Action.REPAIR_RACKS,
    Action.FIX_OFFLINE_REPLICAS,
    Action.MOVE_LOG_DIRS,
)
"""Actions that choose where replicas go: a budget may limit them, and brokers be left out."""

USED_BY = {
    "brokers": (
        Action.REBALANCE,
        Action.EXPAND,
        Action.DRAIN,
        Action.FIX_OFFLINE_REPLICAS,
        Action.MOVE_LOG_DIRS,
    ),
    "topics": (
        Action.REBALANCE,
        Action.EXPAND,
        Action.DRAIN,
        Action.SET_REPLICATION_FACTOR,
        Action.REPAIR_RACKS,
        Action.FIX_OFFLINE_REPLICAS,
        Action.BALANCE_LEADERS,
        Action.MOVE_LOG_DIRS,
    ),
    "replication_factor": (Action.SET_REPLICATION_FACTOR,),
    "tolerances": (Action.REBALANCE, Action.EXPAND, Action.DRAIN),
    "one_sided": (Action.REBALANCE,),
    "weights": (
        Action.REBALANCE,
        Action.EXPAND,
        Action.DRAIN,
        Action.SET_REPLICATION_FACTOR,
        Action.REPAIR_RACKS,
        Action.FIX_OFFLINE_REPLICAS,
    ),
    "budget_bytes": PLACES_REPLICAS,
    "budget_moves": PLACES_REPLICAS,
    "exclude_topics": (
        Action.REBALANCE,
        Action.EXPAND,
        Action.SET_REPLICATION_FACTOR,
        Action.REPAIR_RACKS,
        Action.FIX_OFFLINE_REPLICAS,
        Action.BALANCE_LEADERS,
        Action.MOVE_LOG_DIRS,
    ),
    "exclude_brokers": PLACES_REPLICAS,
    "reassignment": (Action.REASSIGN,),
    "cordon": (Action.DRAIN,),
}
"""Parameters that mean something to some actions only; elsewhere they are refused, not ignored."""


def parse_request(params: Mapping[str, Any], *, now: datetime | None = None) -> ReassignmentRequest:
    """The raw parameters of a DAG run, or of a request file, as a validated request.

    None and empty strings mean "not given". ``kafka_config_id`` and ``cluster_id`` are accepted and
    left to the caller. Whether topics, partitions and brokers exist is for the planner to say.

    :param now: the time a window must end after; the clock's when not given.
    :raises InvalidRequestError: lists every problem, unknown keys included: Airflow checks
        neither those nor the format of times.
    """
    reader = _Reader(params)
    throttle = reader.read("throttle", param_types.throttle)
    found: dict[str, Any] = {
        "action": reader.read("action", param_types.one_of(Action)),
        "brokers": reader.read("brokers", param_types.broker_ids),
        "topics": reader.read("topics", param_types.texts),
        "replication_factor": reader.read("replication_factor", param_types.integer(1)),
        "reassignment": reader.read("reassignment", param_types.reassignment),
        "plan_id": reader.read("plan_id", param_types.plan_id),
        "throttle_bytes_per_s": None if throttle == "auto" else throttle,
        "throttle_min": reader.read("throttle_min", param_types.integer(1)),
        "throttle_max": reader.read("throttle_max", param_types.integer(1)),
        "window_end": reader.read("window_end", param_types.time_after(now or datetime.now(UTC))),
        "on_window_end": reader.read("on_window_end", param_types.one_of(OnWindowEnd)),
        "cordon": reader.read("cordon", _cordon),
        "max_moves_per_broker": reader.read("max_moves_per_broker", param_types.integer(1)),
        "tolerance": reader.read("tolerance", param_types.fraction),
        "tolerances": reader.read("tolerances", param_types.tolerances),
        "move_overhead_bytes": reader.read("move_overhead_bytes", param_types.integer(0)),
        "exclude_topics": reader.read("exclude_topics", param_types.texts),
        "exclude_brokers": reader.read("exclude_brokers", param_types.broker_ids),
        "weights": reader.read("weights", param_types.weights),
        "budget_bytes": reader.read("budget_bytes", param_types.integer(1)),
        "budget_moves": reader.read("budget_moves", param_types.integer(1)),
        "seed": reader.read("seed", param_types.integer(0)),
    }
    for name in ("dry_run", "approval", "additional", "ignore_racks", "one_sided"):
        found[name] = reader.read(name, param_types.boolean)
    given = {name: value for name, value in found.items() if value is not None}
    problems = reader.problems + _conflicts(given, reader.failed)
    if problems:
        raise InvalidRequestError(problems)
    return ReassignmentRequest(**given)


def request_to_params(request: ReassignmentRequest) -> dict[str, Any]:
    """The request as plain JSON types; :func:`parse_request` reads it back (``request.json``)."""
    end = request.window_end
    params = {item.name: getattr(request, item.name) for item in fields(request)}
    params["throttle"] = params.pop("throttle_bytes_per_s") or "auto"
    params["window_end"] = None if end is None else end.isoformat()
    params["action"] = request.action.value
    params["on_window_end"] = request.on_window_end.value
    params["cordon"] = request.cordon.value
    for name in ("brokers", "topics", "exclude_topics", "exclude_brokers"):
        params[name] = list(params[name])
    params["tolerances"] = dict(request.tolerances)
    params["weights"] = {str(broker): size for broker, size in request.weights.items()}
    return params


def _cordon(value: Any) -> Cordon | None:
    """None where nothing is to be cordoned: that is the default of every action."""
    found = Cordon(param_types.one_of(Cordon)(value))
    return None if found is Cordon.NO else found


class _Reader:
    """Reads parameters one by one and keeps what was wrong with each."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._params = params
        self.failed: set[str] = set()
        known = {item.name for item in fields(ReassignmentRequest)} | {"throttle"}
        known = (known - {"throttle_bytes_per_s"}) | {"kafka_config_id", "cluster_id"}
        self.problems = [
            f"Unknown parameter {name!r}; known: {', '.join(sorted(known))}."
            for name in params
            if name not in known
        ]

    def read(self, name: str, parse: Callable[[Any], Any]) -> Any:
        value = self._params.get(name)
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        try:
            return parse(value)
        except InvalidRequestError as error:
            self.problems += error.problems
        except (TypeError, ValueError) as error:
            self.problems.append(f"{name}={_shown(value)} {error}.")
        self.failed.add(name)
        return None


def _conflicts(given: Mapping[str, Any], failed: Collection[str]) -> list[str]:
    action = given.get("action")
    if action is None:
        return [] if "action" in failed else ["An action is needed."]
    problems = []
    needed = NEEDED.get(action)
    if needed is not None and needed not in failed and not given.get(needed):
        problems.append(f"Action {action} needs {needed}.")
    for name, actions in USED_BY.items():
        if given.get(name) and action not in actions:
            problems.append(f"{name} is given, but action {action} does not use it.")
    others = [name for name in given.get("tolerances", ()) if name != param_types.TOPIC_SPREAD]
    if action is Action.DRAIN and others:
        problems.append(
            f"tolerances of {', '.join(others)} are given, but a drain does not balance them."
        )
    least, most = given.get("throttle_min", 0), given.get("throttle_max", inf)
    if least > most:
        problems.append(f"throttle_min={least} is above throttle_max={most}.")
    return problems


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
