"""How parameters are read that map names to values.

Each function returns the value or raises with a message that continues "name=value …".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rehome.domain.broker_rates import BrokerRates, RateSide
from rehome.domain.kafka import BrokerId, Replicas
from rehome.domain.kafka_limits import (
    LARGEST_REPLICATION_FACTOR,
    LEAST_RATE,
    MOST_PARTITIONS,
    refuse_topic_name,
)
from rehome.domain.request.param_types import (
    TOLERANCES,
    broker_id,
    each_topic,
    fraction,
    int_of,
    items,
    mapping,
    rate,
)
from rehome.domain.request.validation import value_text
from rehome.errors import InvalidRequestError

_MOST = {"partitions": MOST_PARTITIONS, "replication_factor": LARGEST_REPLICATION_FACTOR}


def tolerances(value: Any) -> dict[str, float | None]:
    """Resource, or topic_spread → fraction, or None for any."""
    read: dict[str, float | None] = {}
    for name, item in mapping(value).items():
        if name not in TOLERANCES:
            raise ValueError(f"names {name!r}: known are {', '.join(TOLERANCES)}")
        read[name] = None if item is None else fraction(item)
    return read


def weights(value: Any) -> dict[BrokerId, float]:
    """Broker id → relative size, a positive number."""
    read = {}
    for name, item in mapping(value).items():
        broker = broker_id(name)
        if isinstance(item, bool) or not isinstance(item, (int, float)):
            raise TypeError("does not map broker ids to numbers")
        if not 0 < item < float("inf"):
            raise ValueError("holds a size that is not positive")
        read[broker] = float(item)
    return read


def rates_by_broker(value: Any) -> BrokerRates:
    """Broker → a rate for both directions, or ``leader`` and ``follower`` with one each, as
    numbers or as people write them (``5 MB/s``).

    :raises InvalidRequestError: names every broker whose rates are none, or are too low for brokers
        to copy anything.
    """
    found: dict[RateSide, dict[BrokerId, int]] = {side: {} for side in RateSide}
    wrong = []
    for name, item in mapping(value).items():
        try:
            broker = broker_id(name)
            for side, rate in _rates_of_one(item).items():
                found[side][broker] = rate
        except (TypeError, ValueError) as error:
            wrong.append(f"throttle_by_broker of {value_text(name)}: {error}.")
    if wrong:
        raise InvalidRequestError(wrong)
    return BrokerRates(found[RateSide.LEADER], found[RateSide.FOLLOWER])


def _rates_of_one(value: Any) -> dict[RateSide, int]:
    if not isinstance(value, Mapping):
        return dict.fromkeys(RateSide, _fast_enough(value))
    unknown = sorted(map(str, value.keys() - {side.value for side in RateSide}))
    if unknown or not value:
        raise ValueError(
            f"holds {value_text(value)}, which is neither a rate nor rates of leader and follower"
        )
    return {RateSide(side): _fast_enough(rate) for side, rate in value.items()}


def _fast_enough(value: Any) -> int:
    try:
        found = rate(value)
    except ValueError as error:
        raise ValueError(f"{value_text(value)} {error}") from None
    if found < LEAST_RATE:
        raise ValueError(
            f"holds {found}, which is less than the least rate, {LEAST_RATE} bytes per second"
        )
    return found


def min_leaders(value: Any) -> dict[str, int]:
    """Name or pattern of topics → least number of leaders per broker, 1 or more."""
    read = {}
    for name, item in mapping(value).items():
        number, topic = int_of(item), str(name).strip()
        if not topic or number is None or not 1 <= number <= MOST_PARTITIONS:
            raise ValueError("does not map names or patterns of topics to whole numbers above 0")
        read[topic] = number
    each_topic(read, lambda topic: refuse_topic_name(topic, pattern=True))
    return read


def replacements(value: Any) -> dict[BrokerId, BrokerId]:
    """Broker → the one that takes its place; as text also ``3=7, 4=8``."""
    pairs = value
    if isinstance(value, str) and not value.lstrip().startswith("{"):
        pairs = dict(_pair(text) for text in items(value))
    read = {}
    for name, item in mapping(pairs).items():
        read[broker_id(name)] = broker_id(item)
    if len({*read, *read.values()}) < 2 * len(read):
        raise ValueError("names a broker more than once")
    return dict(sorted(read.items()))


def _pair(text: str) -> tuple[str, str]:
    old, sign, new = text.partition("=")
    if not sign:
        raise ValueError("is not a list such as 3=7, 4=8")
    return old, new


def partition_counts(value: Any) -> dict[str, int]:
    """Topic → number of partitions.

    :raises InvalidRequestError: names every topic whose number is none.
    """
    counts = {str(topic).strip(): (n, int_of(n)) for topic, n in mapping(value).items()}
    wrong = [
        f"partitions of {value_text(topic)}: {value_text(written)} is not a whole number from 1 to "
        f"{MOST_PARTITIONS}."
        for topic, (written, number) in counts.items()
        if number is None or not 1 <= number <= MOST_PARTITIONS
    ]
    if wrong:
        raise InvalidRequestError(wrong)
    return {topic: int(number or 0) for topic, (_, number) in sorted(counts.items())}


def given_replicas(value: Any) -> dict[str, tuple[Replicas, ...]]:
    """Topic → brokers of each new partition, in order of partition, preferred leader first: as
    NewPartitions of Kafka's admin client has them.

    :raises InvalidRequestError: names every topic whose lists are none, or name a broker twice.
    """
    found, wrong = {}, []
    for name, lists in mapping(value).items():
        topic = str(name).strip()
        try:
            found[topic] = tuple(map(_replicas, _list_of(lists)))
        except (TypeError, ValueError) as error:
            wrong.append(f"assignments of {value_text(topic)}: {error}.")
    if wrong:
        raise InvalidRequestError(wrong)
    return dict(sorted(found.items()))


def _replicas(value: Any) -> Replicas:
    row = tuple(map(broker_id, _list_of(value)))
    if twice := sorted({broker for broker in row if row.count(broker) > 1}):
        raise ValueError(f"{list(row)} names broker {twice[0]} more than once")
    return row


def _list_of(value: Any) -> Sequence[Any]:
    if not isinstance(value, list) or not value:
        raise TypeError(
            f"{value_text(value)} is no list: each new partition has a list of broker ids of its "
            "own"
        )
    return value


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that is to be created."""

    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


def new_topics(value: Any) -> dict[str, NewTopic]:
    """Topic → what it is to have.

    :raises InvalidRequestError: names every topic that is not described well.
    """
    found, wrong = {}, []
    for name, item in mapping(value).items():
        topic = str(name).strip()
        try:
            refuse_topic_name(topic)
            found[topic] = _new_topic(item)
        except (TypeError, ValueError) as error:
            wrong.append(f"new_topics of {value_text(topic)}: {error}.")
    if wrong:
        raise InvalidRequestError(wrong)
    return dict(sorted(found.items()))


def _new_topic(value: Any) -> NewTopic:
    content = dict(mapping(value))
    unknown = content.keys() - {"partitions", "replication_factor", "configs"}
    if unknown:
        raise ValueError(f"unknown {', '.join(sorted(map(str, unknown)))}")
    counts = {name: int_of(content.get(name)) for name in _MOST}
    for name, count in counts.items():
        if count is None or not 1 <= count <= _MOST[name]:
            raise ValueError(
                f"{name}={value_text(content.get(name))} is not a whole number from 1 to "
                f"{_MOST[name]}"
            )
    configs = {str(key): _config(given) for key, given in (content.get("configs") or {}).items()}
    return NewTopic(counts["partitions"] or 0, counts["replication_factor"] or 0, configs)


def _config(value: Any) -> str:
    """A config's value as Kafka takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
