"""Limits that every plan keeps: hard caps of brokers, and broker sets that topics are bound to.

Both are settings of a cluster, and parameters of a run that override them. What counts is written
into the plan's ``request.json``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Annotated, Any, Protocol, TypeVar, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from rehome.domain.kafka import BrokerId
from rehome.domain.kafka_limits import LARGEST_BROKER_ID
from rehome.domain.request.param_types import broker_name
from rehome.domain.text import each_once, json_fault, json_in
from rehome.errors import InvalidRequestError
from rehome.field_descriptions import Shown, Unit, ValueText

_M = TypeVar("_M")

_CONFIG = ConfigDict(frozen=True, extra="forbid")


class BrokerLimits(BaseModel):
    """The most that one broker may hold. None = no cap."""

    model_config = _CONFIG

    replicas: Annotated[
        int | None,
        Field(ge=0, title="Replicas", description="The most replicas.", examples=[4000]),
    ] = None
    leaders: Annotated[
        int | None,
        Field(
            ge=0,
            title="Leaders",
            description="The most partitions that the broker is preferred leader of.",
            examples=[1500],
        ),
    ] = None
    bytes_in: Annotated[
        float | None,
        Unit("bytes per second"),
        Field(
            ge=0,
            allow_inf_nan=False,
            title="Bytes in",
            description="The most bytes per second that are written to its replicas. Kept where "
            "the history knows the traffic.",
            examples=[100_000_000],
        ),
    ] = None
    bytes_out: Annotated[
        float | None,
        Unit("bytes per second"),
        Field(
            ge=0,
            allow_inf_nan=False,
            title="Bytes out",
            description="The most bytes per second that its leaders send, to followers too. Kept "
            "where the history knows the traffic.",
            examples=[300_000_000],
        ),
    ] = None
    disk_fraction: Annotated[
        float | None,
        Field(
            gt=0,
            le=1,
            title="Part of the disk",
            description="The most of each of its disks that may be full, at every moment of a "
            "plan too; 0.8 is 80 %.",
            examples=[0.8],
        ),
    ] = None


def _brokers_once(value: Any) -> Any:
    if isinstance(value, Mapping):
        each_once(tuple(value.items()), broker_name)
    return value


class BrokerCaps(BaseModel):
    """Hard caps of all brokers."""

    model_config = _CONFIG

    default: Annotated[
        BrokerLimits,
        ValueText("limits of a broker"),
        Shown("none"),
        Field(title="All brokers", description="Caps of every broker."),
    ] = BrokerLimits()
    brokers: Annotated[
        Mapping[Annotated[BrokerId, Field(ge=0, le=LARGEST_BROKER_ID)], BrokerLimits],
        BeforeValidator(_brokers_once),
        ValueText("broker id → limits of a broker"),
        Field(
            title="Single brokers",
            description="Caps by broker id. What is given here replaces the default's; null "
            "lifts it.",
            examples=[{"5": {"replicas": 2000, "disk_fraction": 0.6}}],
        ),
    ] = {}

    def of(self, broker: BrokerId) -> BrokerLimits:
        """What one broker may hold."""
        own = self.brokers.get(broker)
        if own is None:
            return self.default
        return self.default.model_copy(
            update={name: getattr(own, name) for name in own.model_fields_set}
        )

    def kept_free(self, broker: BrokerId, least: float) -> float:
        """The part of a broker's disks that stays free.

        :param least: that stays free on every broker.
        """
        full = self.of(broker).disk_fraction
        return least if full is None else max(least, 1 - full)

    def __bool__(self) -> bool:
        """Whether any broker has a cap."""
        limits = (self.default, *self.brokers.values())
        return any(value is not None for item in limits for _, value in item)


class BrokerSet(BaseModel):
    """Topics that stay on a set of brokers."""

    model_config = _CONFIG

    name: Annotated[
        str, Field(min_length=1, title="Name", description="Of the set.", examples=["fast"])
    ]
    topics: Annotated[
        tuple[Annotated[str, Field(min_length=1)], ...],
        ValueText("names or patterns of topics"),
        Field(
            min_length=1,
            title="Topics",
            description="Names or patterns with * and ?. A topic belongs to the first set that "
            "names it. An internal topic belongs to a set only when its full name is given.",
            examples=[["orders", "payments-*"]],
        ),
    ]
    brokers: Annotated[
        tuple[Annotated[BrokerId, Field(ge=0, le=LARGEST_BROKER_ID)], ...],
        ValueText("broker ids"),
        Field(
            min_length=1,
            title="Brokers",
            description="The only brokers that hold replicas of these topics. A broker may be in "
            "several sets.",
            examples=[[1, 2, 3]],
        ),
    ]
    exclusive: Annotated[
        bool,
        Field(
            title="Exclusive",
            description="Topics of no set stay off these brokers. Else they may go anywhere.",
        ),
    ] = False


class _Sets(BaseModel):
    """Sets that share no broker."""

    broker_sets: tuple[BrokerSet, ...]

    @model_validator(mode="after")
    def _names_differ(self) -> _Sets:
        names = Counter(item.name for item in self.broker_sets)
        twice = sorted(name for name, times in names.items() if times > 1)
        if twice:
            raise ValueError(f"more than one set is named {', '.join(twice)}")
        return self


_CAPS: TypeAdapter[BrokerCaps] = TypeAdapter(BrokerCaps)
_SETS: TypeAdapter[_Sets] = TypeAdapter(_Sets)


class _Limited(Protocol):
    """A request that may state limits of its own."""

    @property
    def caps(self) -> BrokerCaps | None: ...
    @property
    def broker_sets(self) -> tuple[BrokerSet, ...] | None: ...


_R = TypeVar("_R", bound=_Limited)


def with_limits(request: _R, caps: BrokerCaps, broker_sets: tuple[BrokerSet, ...]) -> _R:
    """The request with these limits where it states none of its own."""
    limited: Any = replace(
        request,  # type: ignore[type-var]
        caps=caps if request.caps is None else request.caps,
        broker_sets=broker_sets if request.broker_sets is None else request.broker_sets,
    )
    return cast("_R", limited)


def set_of_topic(
    sets: Iterable[BrokerSet], topic: str, *, internal: bool = False
) -> BrokerSet | None:
    """The set that a topic is bound to: the first that names it.

    :param internal: a pattern does not reach the topic, only its full name does.
    """
    for item in sets:
        for name in item.topics:
            if topic == name or (not internal and is_pattern(name) and fnmatchcase(topic, name)):
                return item
    return None


def is_pattern(name: str) -> bool:
    """Whether a name stands for all topics that it matches."""
    return any(character in name for character in "*?[")


def read_caps(value: Any) -> BrokerCaps:
    """Caps as JSON types, or as JSON text.

    :raises InvalidRequestError: names every problem.
    """
    return _read(_CAPS, value, "caps")


def read_broker_sets(value: Any) -> tuple[BrokerSet, ...]:
    """Broker sets as JSON types, or as JSON text.

    :raises InvalidRequestError: names every problem.
    """
    if isinstance(value, str):
        value = _parse(value, "broker_sets")
    return _read(_SETS, {"broker_sets": value}, "").broker_sets


CAPS_ABOUT = (
    "The most that a broker may hold of replicas, leaders, bytes_in, bytes_out and disk_fraction: "
    "for all brokers (default), and by broker id (brokers). No plan takes a broker above a cap, or "
    "further above."
)
"""What forms and documents say of caps."""

SETS_ABOUT = (
    "Topics that stay on a set of brokers, each set with its name, topics (names or patterns) and "
    "brokers. With exclusive, topics of no set stay off its brokers. A topic belongs to the first "
    "set that names it."
)
"""What forms and documents say of broker sets."""

CAPS_EXAMPLE: Mapping[str, Any] = {
    "default": {"replicas": 4000, "disk_fraction": 0.8},
    "brokers": {"5": {"replicas": 2000}},
}
SETS_EXAMPLE: tuple[Mapping[str, Any], ...] = (
    {"name": "fast", "topics": ["orders", "payments-*"], "brokers": [1, 2, 3]},
)


def caps_to_json(caps: BrokerCaps) -> dict[str, Any]:
    """As :func:`read_caps` reads it back."""
    return caps.model_dump(mode="json", exclude_unset=True)


def broker_sets_to_json(sets: Iterable[BrokerSet]) -> list[dict[str, Any]]:
    """As :func:`read_broker_sets` reads them back."""
    return [item.model_dump(mode="json") for item in sets]


def _read(adapter: TypeAdapter[_M], value: Any, name: str) -> _M:
    try:
        return adapter.validate_python(_parse(value, name) if isinstance(value, str) else value)
    except ValidationError as error:
        raise InvalidRequestError(
            [
                f"{_place(name, problem['loc'])}: {_reason(problem)}."
                for problem in error.errors(include_url=False)
            ]
        ) from None


def _parse(text: str, name: str) -> Any:
    try:
        return json_in(text)
    except ValueError as error:
        raise InvalidRequestError([f"{name} {json_fault(error)}."]) from None


def _place(name: str, location: tuple[int | str, ...]) -> str:
    """``caps.brokers.5.replicas``; a key's own problem stands at its mapping."""
    parts = [str(part) for part in location if part != "[key]"]
    return ".".join([name, *parts] if name else parts) or "broker_sets"


def _reason(problem: Mapping[str, Any]) -> str:
    message = str(problem["msg"]).removeprefix("Value error, ")
    return message[:1].lower() + message[1:]
