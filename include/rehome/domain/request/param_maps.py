"""How parameters are read that map names to values: from JSON types, or from JSON text.

Each is a type of Pydantic's, from which the form's schema follows. A validator of ours raises with
a whole sentence; a type's :class:`~rehome.field_descriptions.ProblemText` continues the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import ErrorDetails

from rehome.domain.broker_rates import BrokerRates, RateSide
from rehome.domain.kafka import BrokerId, Replicas
from rehome.domain.kafka_limits import (
    LARGEST_BROKER_ID,
    LARGEST_RATE,
    LARGEST_REPLICATION_FACTOR,
    LEAST_RATE,
    MOST_PARTITIONS,
    refuse_topic_name,
)
from rehome.domain.request.param_types import (
    TOLERANCES,
    broker_id,
    broker_name,
    int_of,
    items,
    mapping,
    rate,
)
from rehome.domain.request.validation import value_text
from rehome.domain.text import RATE_PATTERN, each_once, plain_name
from rehome.errors import InvalidRequestError
from rehome.field_descriptions import ProblemText, reason_of

_T = TypeVar("_T")
_UNKNOWN_KEY = "unexpected_keyword_argument"
"""Pydantic's name for that."""


@dataclass(frozen=True, slots=True)
class MapReader(Generic[_T]):
    """Reads one parameter.

    :param name: the parameter's, for messages.
    :param kind: the type of what is read.
    :param name_of: gives names that mean the same the same name: each is in the mapping once.
    """

    name: str
    kind: TypeAdapter[_T]
    name_of: Callable[[Any], str] = plain_name

    def __call__(self, value: Any) -> _T:
        """Read it.

        :raises InvalidRequestError: names each that is wrong, or whose value is.
        :raises TypeError, ValueError: it is no mapping, or names something more than once.
        """
        given = mapping(value, self.name_of)
        try:
            return self.kind.validate_python(given)
        except ValidationError as error:
            problems = error.errors(include_url=False)
        sentences: dict[tuple[int | str, ...], str] = {}
        for problem in problems:
            name, *within = problem["loc"]
            if within == ["[key]"] and problem["type"] != _UNKNOWN_KEY:
                within = []  # Pydantic's mark: the name is wrong, not what it has
            keys = [part for part in within if isinstance(part, str)]
            reason = _reason(problem, f"{'.'.join(keys)}=" if keys else "")
            sentences.setdefault((name, *keys), f"{self.name} of {value_text(name)}: {reason}.")
        raise InvalidRequestError([*sentences.values()])

    def schema(self) -> dict[str, Any]:
        """What a form accepts, beside nothing."""
        schema = self.kind.json_schema()
        schema["type"] = ["null", "object"]
        for pattern, values in schema.pop("patternProperties", {}).items():
            schema |= {"propertyNames": {"pattern": pattern}, "additionalProperties": values}
        for described in schema.pop("$defs", {}).values():
            schema["additionalProperties"] = described
        return schema


def _reason(problem: ErrorDetails, key: str) -> str:
    match problem["type"]:
        case "value_error":
            return f"{key}{reason_of(problem)}"
        case "missing":
            return f"{key}None: it is needed"
        case unknown if unknown == _UNKNOWN_KEY:
            return f"unknown {key[:-1]}"
    return f"{key}{value_text(problem['input'])} {problem['msg']}"


def _in_order(read: dict[Any, _T]) -> dict[Any, _T]:
    return dict(sorted(read.items()))


_Broker = Annotated[
    BrokerId,
    PlainValidator(broker_id),
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": LARGEST_BROKER_ID}),
]
_BrokerKey = Annotated[_Broker, WithJsonSchema({"type": "string", "pattern": r"^\d+$"})]
_Name = Annotated[str, BeforeValidator(lambda name: str(name).strip())]
_Partitions = Annotated[
    int,
    Field(strict=True, ge=1, le=MOST_PARTITIONS),
    BeforeValidator(int_of),
    ProblemText(f"is not a whole number from 1 to {MOST_PARTITIONS}"),
]


def _target(name: str) -> str:
    if name not in TOLERANCES:
        raise ValueError(f"names {name!r}: known are {', '.join(TOLERANCES)}")
    return name


_Target = Annotated[
    str, AfterValidator(_target), WithJsonSchema({"type": "string", "enum": list(TOLERANCES)})
]
_Fraction = Annotated[
    float,
    Field(ge=0, lt=1),
    # Pydantic takes true and false for numbers.
    BeforeValidator(lambda value: str(value) if isinstance(value, bool) else value),
    ProblemText("is not a fraction from 0 up to, but not including, 1"),
]
tolerances: MapReader[dict[str, float | None]] = MapReader(
    "tolerances", TypeAdapter(dict[_Target, _Fraction | None])
)
"""Resource, or topic_spread → fraction, or None for any."""

_Size = Annotated[
    float,
    Field(strict=True, gt=0, allow_inf_nan=False),
    ProblemText("is no weight: that is a finite number above 0"),
]
weights: MapReader[dict[BrokerId, float]] = MapReader(
    "weights", TypeAdapter(dict[_BrokerKey, _Size]), broker_name
)
"""Broker id → relative size, a positive number."""


def _topic_pattern(name: str) -> str:
    refuse_topic_name(name, pattern=True)
    return name


min_leaders: MapReader[dict[str, int]] = MapReader(
    "min_leaders", TypeAdapter(dict[Annotated[_Name, AfterValidator(_topic_pattern)], _Partitions])
)
"""Name or pattern of topics → least number of leaders per broker, 1 or more."""

partition_counts: MapReader[dict[str, int]] = MapReader(
    "partitions", TypeAdapter(Annotated[dict[_Name, _Partitions], AfterValidator(_in_order)])
)
"""Topic → number of partitions."""


def _rates_of_one(value: Any) -> dict[RateSide, int]:
    if not isinstance(value, Mapping):
        return dict.fromkeys(RateSide, _fast_enough(value))
    if not value or value.keys() - {side.value for side in RateSide}:
        raise ValueError(
            f"holds {value_text(value)}, which is neither a rate nor rates of leader and follower"
        )
    return {RateSide(side): _fast_enough(rate) for side, rate in value.items()}


def _fast_enough(value: Any) -> int:
    try:
        number = rate(value)
    except ValueError as error:
        raise ValueError(f"{value_text(value)} {error}") from None
    if number < LEAST_RATE:
        raise ValueError(
            f"holds {number}, which is less than the least rate, {LEAST_RATE} bytes per second"
        )
    return number


def _by_side(read: dict[BrokerId, dict[RateSide, int]]) -> BrokerRates:
    leader, follower = (
        {broker: rates[side] for broker, rates in read.items() if side in rates}
        for side in (RateSide.LEADER, RateSide.FOLLOWER)
    )
    return BrokerRates(leader, follower)


_A_RATE = [
    {"type": "integer", "minimum": LEAST_RATE, "maximum": LARGEST_RATE},
    {"type": "string", "pattern": rf"^({RATE_PATTERN})$"},
]
_RatesOfOne = Annotated[
    dict[RateSide, int],
    PlainValidator(_rates_of_one),
    WithJsonSchema(
        {
            "anyOf": [
                *_A_RATE,
                {
                    "type": "object",
                    "properties": {side.value: {"anyOf": _A_RATE} for side in RateSide},
                    "additionalProperties": False,
                    "minProperties": 1,
                },
            ]
        }
    ),
]
_RATES: TypeAdapter[Any] = TypeAdapter(
    Annotated[dict[_BrokerKey, _RatesOfOne], AfterValidator(_by_side)]
)
rates_by_broker: MapReader[BrokerRates] = MapReader("throttle_by_broker", _RATES, broker_name)
"""Broker → a rate for both directions, or ``leader`` and ``follower`` with one each, as numbers or
as people write them (``5 MB/s``), all fast enough for brokers to copy anything.
"""
largest_rates_by_broker: MapReader[BrokerRates] = MapReader(
    "largest_throttle_by_broker", _RATES, broker_name
)
"""The same, as a policy has it."""

broker_pairs: MapReader[dict[BrokerId, BrokerId]] = MapReader(
    "replacements",
    TypeAdapter(Annotated[dict[_BrokerKey, _Broker], AfterValidator(_in_order)]),
    broker_name,
)
"""Broker → the one that takes its place."""


def replacements(value: Any) -> dict[BrokerId, BrokerId]:
    """:data:`broker_pairs`, each broker once; as text also ``3=7, 4=8``."""
    pairs = value
    if isinstance(value, str) and not value.lstrip().startswith("{"):
        pairs = each_once([_pair(text) for text in items(value)], broker_name)
    read = broker_pairs(pairs)
    if len({*read, *read.values()}) < 2 * len(read):
        raise ValueError("names a broker more than once")
    return read


def _pair(text: str) -> tuple[str, str]:
    old, sign, new = text.partition("=")
    if not sign:
        raise ValueError("is not a list such as 3=7, 4=8")
    return old, new


def _list_of(value: Any) -> list[Any]:
    if isinstance(value, list) and value:
        return value
    raise ValueError(
        f"{value_text(value)} is no list: each new partition has a list of broker ids of its own"
    )


def _each_once(row: Replicas) -> Replicas:
    if twice := sorted({broker for broker in row if row.count(broker) > 1}):
        raise ValueError(f"{list(row)} names broker {twice[0]} more than once")
    return row


_Replicas = Annotated[
    tuple[_Broker, ...],
    Field(min_length=1),
    BeforeValidator(_list_of),
    AfterValidator(_each_once),
]
_Rows = Annotated[tuple[_Replicas, ...], Field(min_length=1), BeforeValidator(_list_of)]
given_replicas: MapReader[dict[str, tuple[Replicas, ...]]] = MapReader(
    "assignments", TypeAdapter(Annotated[dict[_Name, _Rows], AfterValidator(_in_order)])
)
"""Topic → brokers of each new partition, in order of partition, preferred leader first: as
NewPartitions of Kafka's admin client has them.
"""


def _config(value: Any) -> Any:
    """A config's value as Kafka takes it."""
    text = str(value) if isinstance(value, (int, float)) else value
    return text.lower() if isinstance(value, bool) else text


_Config = Annotated[
    str,
    BeforeValidator(_config),
    ProblemText("is neither text nor a number, true or false"),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]


def _description(value: Any) -> Mapping[str, Any]:
    try:
        return mapping(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{value_text(value)} {error}") from None


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that is to be created."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    partitions: _Partitions
    replication_factor: Annotated[
        int,
        Field(strict=True, ge=1, le=LARGEST_REPLICATION_FACTOR),
        BeforeValidator(int_of),
        ProblemText(f"is not a whole number from 1 to {LARGEST_REPLICATION_FACTOR}"),
    ]
    configs: Annotated[
        Mapping[str, _Config], BeforeValidator(lambda given: _description(given or {}))
    ] = field(default_factory=dict)


def _topic_name(name: str) -> str:
    refuse_topic_name(name)
    return name


_NewName = Annotated[_Name, AfterValidator(_topic_name)]
_Description = Annotated[NewTopic, BeforeValidator(_description)]
new_topics: MapReader[dict[str, NewTopic]] = MapReader(
    "new_topics", TypeAdapter(Annotated[dict[_NewName, _Description], AfterValidator(_in_order)])
)
"""Topic → what it is to have."""
