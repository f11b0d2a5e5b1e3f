"""Types of parameters: what each accepts in a form, and how it is read."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

from rehome.domain.broker_rates import BrokerRates
from rehome.domain.kafka import BrokerId, LogDirName, Replicas
from rehome.domain.kafka_limits import (
    LARGEST_BROKER_ID,
    LARGEST_RATE,
    LARGEST_REPLICATION_FACTOR,
    LEAST_RATE,
)
from rehome.domain.request import limits, param_maps, param_types
from rehome.domain.request.pasted_reassignment import read_reassignment
from rehome.domain.request.validation import Read
from rehome.domain.text import RATE_PATTERN

FORMERLY = "formerly"
"""The key of a schema for the values that are accepted beside those of its ``enum``."""

_BROKERS = {
    # No type, and text for a default: then Airflow's form has a line of text for it.
    "anyOf": [
        {
            "type": "array",
            "items": {"type": "integer", "minimum": 0, "maximum": LARGEST_BROKER_ID},
        },
        {"type": "string", "pattern": r"^[\d\s,]*$"},
    ]
}
_THROTTLE = {
    "anyOf": [
        {"type": "integer", "minimum": LEAST_RATE, "maximum": LARGEST_RATE},
        {"type": "string", "pattern": rf"^(\s*auto\s*|{RATE_PATTERN})$"},
    ]
}


def whole_number(minimum: int, maximum: int = LARGEST_RATE, *, optional: bool = False) -> Read:
    """A whole number; where it may be left out, the form takes nothing, too."""
    kind: Any = ["null", "integer"] if optional else "integer"
    schema = {"type": kind, "minimum": minimum, "maximum": maximum}
    parse = param_types.integer(minimum, maximum)
    return Read(f"whole number, at least {minimum}", parse, schema)


def one_of(
    kind: type[enum.StrEnum],
    display: Mapping[Any, str],
    none: str = "",
    formerly: Sequence[str] = (),
) -> Read:
    """A member of an enumeration; the form shows the texts.

    :param none: the text for nothing chosen; "" = one is always chosen.
    :param formerly: values of an earlier version, which are accepted and not offered.
    """
    values: list[str | None] = [item.value for item in kind]
    texts = {item.value: display[item] for item in kind}
    schema: dict[str, Any] = {"type": "string", "enum": values, "values_display": texts}
    if none:
        schema["type"] = ["null", "string"]
        values.insert(0, None)
        schema["values_display"] = {"null": none, **texts}
    if formerly:
        schema[FORMERLY] = list(formerly)
    return Read(", ".join(kind), param_types.one_of(kind), schema)


def _map(text: str, reader: param_maps.MapReader[Any]) -> Read:
    return Read(text, reader, reader.schema())


OptionalCount = Annotated[int | None, whole_number(1, optional=True)]
OptionalReplicationFactor = Annotated[
    int | None, whole_number(1, LARGEST_REPLICATION_FACTOR, optional=True)
]
OptionalRate = Annotated[
    int | None,
    Read(
        f"whole number, at least {LEAST_RATE}",
        param_types.integer(1),  # what was recorded by an earlier Rehome is read, too
        {"type": ["null", "integer"], "minimum": LEAST_RATE, "maximum": LARGEST_RATE},
    ),
]
YesOrNo = Annotated[bool, Read("yes or no", param_types.boolean, {"type": "boolean"})]
Fraction = Annotated[
    float,
    Read(
        "fraction from 0 up to, but not including, 1",
        param_types.fraction,
        {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    ),
]
OptionalText = Annotated[str | None, Read("text", param_types.text, {"type": ["null", "string"]})]
PLAN_ID = Read("id of a plan", param_types.plan_id, {"type": "string", "minLength": 1})
OptionalPlanId = Annotated[
    str | None, Read("id of a plan", param_types.plan_id, {"type": ["null", "string"]})
]
ConnectionId = Annotated[
    str, Read("id of a connection", param_types.text, {"type": "string", "minLength": 1})
]
BrokerIds = Annotated[tuple[BrokerId, ...], Read("broker ids", param_types.broker_ids, _BROKERS)]
TopicNames = Annotated[
    tuple[str, ...],
    Read(
        "names or patterns of topics",
        param_types.topics,
        # A form whose lines were deleted sends null.
        {"type": ["null", "array"], "items": {"type": "string", "minLength": 1}},
    ),
]
ReassignmentJson = Annotated[
    Mapping[str, Any] | None,
    Read(
        "Kafka's reassignment JSON",
        read_reassignment,
        # Text, too: what Kafka's tool prints is pasted as it is.
        {"type": ["null", "object", "string"]},
    ),
]
Throttle = Annotated[int | str, Read("rate, or auto", param_types.throttle, _THROTTLE)]
RATES_BY_BROKER = _map(
    "broker → a rate, or rates of leader and follower", param_maps.rates_by_broker
)
RatesByBroker = Annotated[BrokerRates, RATES_BY_BROKER]
OptionalRatesByBroker = Annotated[BrokerRates | None, RATES_BY_BROKER]
LargestRatesByBroker = Annotated[
    BrokerRates, replace(RATES_BY_BROKER, parse=param_maps.largest_rates_by_broker)
]
Time = Annotated[
    datetime | None,
    Read(
        "ISO 8601 time with its zone",
        param_types.time,
        {"type": ["null", "string"], "format": "date-time"},
    ),
]
ToleranceByResource = Annotated[
    Mapping[str, float | None],
    _map("resource → fraction, or null for any", param_maps.tolerances),
]
WeightByBroker = Annotated[
    Mapping[BrokerId, float], _map("broker → relative size", param_maps.weights)
]
LeadersByTopic = Annotated[
    Mapping[str, int],
    _map("name or pattern of topics → number of leaders", param_maps.min_leaders),
]
Replacements = Annotated[
    Mapping[BrokerId, BrokerId],
    Read(
        "broker → the one that takes its place",
        param_maps.replacements,
        param_maps.broker_pairs.schema(),
    ),
]
LogDirNames = Annotated[
    tuple[LogDirName, ...],
    Read(
        "log dirs as broker:path",
        param_types.log_dir_names,
        {"type": ["null", "array"], "items": {"type": "string", "pattern": r"^\d+:.+$"}},
    ),
]
PartitionCounts = Annotated[
    Mapping[str, int],
    Read(
        "topic → number of partitions",
        param_maps.partition_counts,
        param_maps.partition_counts.schema() | {"type": "object"},
    ),
]
GivenReplicas = Annotated[
    Mapping[str, tuple[Replicas, ...]],
    _map("topic → a list of broker ids for each new partition", param_maps.given_replicas),
]
CAPS = Read("caps of brokers", limits.read_caps, {"type": ["null", "object"]})
BROKER_SETS = Read(
    "list of broker sets",
    limits.read_broker_sets,
    {"type": ["null", "array"], "items": {"type": "object"}},
)
OptionalCaps = Annotated[limits.BrokerCaps | None, CAPS]
OptionalBrokerSets = Annotated[tuple[limits.BrokerSet, ...] | None, BROKER_SETS]
NewTopics = Annotated[
    Mapping[str, param_maps.NewTopic],
    _map("topic → partitions, replication_factor and configs", param_maps.new_topics),
]
