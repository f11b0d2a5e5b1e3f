"""What an operator asks for: the parameters of `reassign_partitions`, validated as a whole."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

from include.cluster.model import BrokerId
from include.errors import InvalidRequestError
from include.planning.kafka_json import parse_reassignment


class Action(enum.StrEnum):
    """What `reassign_partitions` can be asked to do."""

    REBALANCE = "rebalance"
    DRAIN = "drain"
    SET_REPLICATION_FACTOR = "set_replication_factor"
    REPAIR_RACKS = "repair_racks"
    BALANCE_LEADERS = "balance_leaders"
    REASSIGN = "reassign"
    MOVE_LOG_DIRS = "move_log_dirs"
    ROLLBACK = "rollback"


class OnWindowEnd(enum.StrEnum):
    """What happens to moves that a window's end finds in flight."""

    DRAIN = "drain"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class ReassignmentRequest:
    """A validated request. See design: "Params of `reassign_partitions`".

    :param brokers: ids the action is about (drain: to empty; rebalance: empty = all).
    :param topics: names or glob patterns; empty = all, internal topics only for a drain, which
        must leave its brokers empty. An internal topic takes part elsewhere when its full name
        is given: a pattern does not reach it.
    :param reassignment: Kafka's reassignment JSON, parsed, for ``reassign``.
    :param throttle_bytes_per_s: per broker; None = "auto".
    :param window_end: aware UTC time at which nothing may be in flight; None = no window.
    :param max_moves_per_broker: slots per broker and direction.
    :param tolerance: rebalance: allowed deviation from a broker's share of bytes (0.02 = 2 %).
    :param tolerances: the same for other resources (replicas, leaders, bytes_in, bytes_out);
        None = spread in any way. Of those not named, traffic is balanced to 5 % where it is
        known, and numbers of replicas and leaders are free.
    :param move_overhead_bytes: what a move costs beside its bytes, for being a move.
    :param seed: breaks ties; same snapshot, request and seed give the same plan.
    """

    action: Action
    brokers: tuple[BrokerId, ...] = ()
    topics: tuple[str, ...] = ()
    replication_factor: int | None = None
    reassignment: Mapping[str, Any] | None = None
    plan_id: str | None = None
    throttle_bytes_per_s: int | None = None
    window_end: datetime | None = None
    on_window_end: OnWindowEnd = OnWindowEnd.DRAIN
    max_moves_per_broker: int = 4
    dry_run: bool = False
    approval: bool = False
    additional: bool = False
    tolerance: float = 0.02
    tolerances: Mapping[str, float | None] = field(default_factory=dict)
    move_overhead_bytes: int = 32_000_000
    seed: int = 0


NEEDED = {
    Action.DRAIN: "brokers",
    Action.SET_REPLICATION_FACTOR: "replication_factor",
    Action.REASSIGN: "reassignment",
    Action.ROLLBACK: "plan_id",
}
"""The parameter an action cannot do without."""

USED_BY = {
    "brokers": (Action.REBALANCE, Action.DRAIN),
    "topics": (
        Action.REBALANCE,
        Action.DRAIN,
        Action.SET_REPLICATION_FACTOR,
        Action.REPAIR_RACKS,
        Action.BALANCE_LEADERS,
    ),
    "replication_factor": (Action.SET_REPLICATION_FACTOR,),
    "reassignment": (Action.REASSIGN,),
}
"""Parameters that mean something to some actions only; elsewhere they are refused, not ignored."""


def parse_request(params: Mapping[str, Any], *, now: datetime | None = None) -> ReassignmentRequest:
    """The raw parameters of a DAG run, or of a request file, as a validated request.

    None and empty strings mean "not given". ``kafka_config_id`` is accepted and left to the
    caller. Whether topics, partitions and brokers exist is for the planner to say.

    :param now: the time a window must end after; the clock's when not given.
    :raises InvalidRequestError: lists every problem, unknown keys included: Airflow checks
        neither those nor the format of times.
    """
    reader = _Reader(params)
    throttle = reader.read("throttle", _throttle)
    values: dict[str, Any] = {
        "action": reader.read("action", _one_of(Action)),
        "brokers": reader.read("brokers", _broker_ids),
        "topics": reader.read("topics", _texts),
        "replication_factor": reader.read("replication_factor", _integer(1)),
        "reassignment": reader.read("reassignment", _reassignment),
        "plan_id": reader.read("plan_id", _text),
        "throttle_bytes_per_s": None if throttle == "auto" else throttle,
        "window_end": reader.read("window_end", _time_after(now or datetime.now(UTC))),
        "on_window_end": reader.read("on_window_end", _one_of(OnWindowEnd)),
        "max_moves_per_broker": reader.read("max_moves_per_broker", _integer(1)),
        "tolerance": reader.read("tolerance", _fraction),
        "seed": reader.read("seed", _integer(0)),
    }
    for name in ("dry_run", "approval", "additional"):
        values[name] = reader.read(name, _boolean)
    given = {name: value for name, value in values.items() if value is not None}
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
    params["brokers"] = list(request.brokers)
    params["topics"] = list(request.topics)
    return params


class _Reader:
    """Reads parameters one by one and keeps what was wrong with each."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self._params = params
        self.failed: set[str] = set()
        known = {item.name for item in fields(ReassignmentRequest)} | {"throttle"}
        known = (known - {"throttle_bytes_per_s"}) | {"kafka_config_id"}
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
    return problems


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _one_of(kind: type[enum.StrEnum]) -> Callable[[Any], enum.StrEnum]:
    def parse(value: Any) -> enum.StrEnum:
        if value not in [item.value for item in kind]:
            raise ValueError(f"is not one of {', '.join(kind)}")
        return kind(value)

    return parse


def _integer(minimum: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        number = _int_of(value)
        if number is None:
            raise ValueError("is not a whole number")
        if number < minimum:
            raise ValueError(f"is less than {minimum}")
        return number

    return parse


def _int_of(value: Any) -> int | None:
    """An int, or text that is one: forms and command lines deliver text."""
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+\s*", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _throttle(value: Any) -> int | str:
    if value == "auto":
        return "auto"
    number = _int_of(value)
    if number is None or number <= 0:
        raise ValueError('is neither "auto" nor a positive number of bytes per second')
    return number


def _fraction(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError("is not a number")
    number = float(value)
    if not 0 <= number < 1:
        raise ValueError("is not a fraction from 0 up to, but not including, 1")
    return number


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("is neither true nor false")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("is not text")
    return value.strip()


def _items(value: Any) -> list[Any]:
    """A list, or text with its items parted by commas or white space."""
    if isinstance(value, str):
        return [item for item in re.split(r"[,\s]+", value) if item]
    if isinstance(value, (list, tuple)):
        return list(value)
    raise ValueError("is not a list")


def _texts(value: Any) -> tuple[str, ...]:
    items = _items(value)
    if not all(isinstance(item, str) and item for item in items):
        raise ValueError("is not a list of names or patterns")
    return tuple(dict.fromkeys(items))


def _broker_ids(value: Any) -> tuple[BrokerId, ...]:
    numbers = [_int_of(item) for item in _items(value)]
    ids = [number for number in numbers if number is not None and number >= 0]
    if len(ids) != len(numbers):
        raise ValueError("is not a list of broker ids")
    if len(set(ids)) != len(ids):
        raise ValueError("names a broker more than once")
    return tuple(sorted(ids))


def _reassignment(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping) and not value:
        return None
    parse_reassignment(value)
    parsed: Mapping[str, Any] = json.loads(value) if isinstance(value, str) else value
    return parsed


def _time_after(now: datetime) -> Callable[[Any], datetime]:
    def parse(value: Any) -> datetime:
        try:
            time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        except (TypeError, ValueError):
            raise ValueError("is not an ISO 8601 time") from None
        if time.tzinfo is None:
            raise ValueError("has no time zone: write 2030-01-31T04:00:00Z or +01:00")
        if time <= now:
            raise ValueError("has passed already")
        return time.astimezone(UTC)

    return parse
