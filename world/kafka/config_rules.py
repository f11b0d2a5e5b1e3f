"""IncrementalAlterConfigs and DescribeConfigs: what is accepted, and what a value's source is.

Order of checks and texts as brokers have them: some are made by the broker that is asked
(ConfigAdminManager), the others by the controller (ConfigurationControlManager).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource, ResourceType
from rehome.domain.kafka import ConfigValue
from world.kafka.config_definitions import (
    CORDONED,
    FOLLOWER_LIST,
    LEADER_LIST,
    MIN_ISR,
    SCHEMA,
    TIERED,
    Definition,
    Kind,
    Scope,
)
from world.kafka.errors import INVALID_CONFIG, INVALID_REQUEST, Refusal

LONGEST_VALUE = 32_767
_THROTTLED = re.compile(r"([0-9]+:[0-9]+)?")
_LIMITS = {Kind.INT: (-(2**31), 2**31 - 1), Kind.LONG: (-(2**63), 2**63 - 1)}
_LISTS = (ConfigOperation.APPEND, ConfigOperation.SUBTRACT)


def check_request(changes: Sequence[ConfigChange]) -> None:
    """What a broker refuses before it looks at the values."""
    if max(Counter(change.key for change in changes).values()) > 1:
        raise Refusal(INVALID_REQUEST, "Error due to duplicate config keys")
    absent = [
        change.key
        for change in changes
        if change.operation is not ConfigOperation.DELETE and change.value is None
    ]
    if absent:
        raise Refusal(INVALID_REQUEST, f"Null value not supported for : {', '.join(absent)}")


def check_broker_values(
    resource: ConfigResource, values: Mapping[str, str], log_dirs: Collection[str]
) -> None:
    """What the broker that is asked says of a broker's values, all of them together."""
    fixed = [key for key in values if _scope(key) is Scope.READ_ONLY]
    if fixed:
        raise Refusal(
            INVALID_REQUEST, f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
        )
    own = [key for key in values if _scope(key) is Scope.PER_BROKER]
    if own and not resource.name:
        raise Refusal(
            INVALID_REQUEST,
            "Cannot update these configs at default cluster level, broker id must be specified: "
            f"[{', '.join(own)}]",
        )
    for key, value in values.items():
        if (known := SCHEMA.broker.get(key)) is not None:
            check_value(key, value, known, INVALID_REQUEST)
    strange = [path for path in parts(values.get(CORDONED, "")) if path not in (*log_dirs, "*")]
    if strange:
        raise Refusal(
            INVALID_REQUEST,
            "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or "
            f"log.dir. Missing entries : {', '.join(strange)}",
        )


def check_min_isr(resource: ConfigResource, changes: Sequence[ConfigChange]) -> None:
    """Brokers' own min ISR is fixed, and the cluster's may not go, while ELR is on (KIP-966)."""
    for change in changes:
        if change.key != MIN_ISR or resource.type is ResourceType.TOPIC:
            continue
        if resource.name:
            raise Refusal(
                INVALID_CONFIG,
                f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.",
            )
        if change.operation is ConfigOperation.DELETE:
            raise Refusal(
                INVALID_CONFIG, f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
            )


def check_topic_values(values: Mapping[str, str]) -> None:
    """What the controller says of a topic's values, all of them together."""
    for key in values:
        if key not in SCHEMA.topic:
            raise Refusal(INVALID_CONFIG, f"Unknown topic config name: {key}")
    for key, value in values.items():
        if len(value) > LONGEST_VALUE:
            raise Refusal(
                INVALID_CONFIG,
                "The configuration value cannot be added because it exceeds the maximum value "
                f"size of {LONGEST_VALUE} bytes.",
            )
        check_value(key, value, SCHEMA.topic[key], INVALID_CONFIG)


def check_tiered(values: Mapping[str, str], there: bool) -> None:
    """A topic may be tiered only where the brokers have a remote tier."""
    if values.get(TIERED, "").strip().lower() == "true" and not there:
        raise Refusal(
            INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage.",
        )


def check_value(key: str, value: str, known: Definition, code: int) -> None:
    """Type and limits of one value."""
    if key in (LEADER_LIST, FOLLOWER_LIST):
        _check_throttled(key, value, code)
    elif known.kind is Kind.BOOLEAN:
        if value.strip().lower() not in known.values:
            said = "Expected value to be either true or false"
            raise Refusal(code, f"Invalid value {value} for configuration {key}: {said}")
    elif known.kind in (Kind.INT, Kind.LONG, Kind.DOUBLE):
        _check_number(key, value, known, code)
    elif known.values:
        items = parts(value) if known.kind is Kind.LIST else [value]
        if any(one not in known.values for one in items):
            said = f"String must be one of: {', '.join(known.values)}"
            raise Refusal(code, f"Invalid value {value} for configuration {key}: {said}")


def _check_throttled(key: str, value: str, code: int) -> None:
    items = [item.strip() for item in value.split(",")]
    if all(_THROTTLED.fullmatch(item) for item in items) or "".join(items) == "*":
        return
    raise Refusal(
        code,
        f"Invalid value [{', '.join(items)}] for configuration {key}: {key} must be the literal "
        "'*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    )


def _check_number(key: str, value: str, known: Definition, code: int) -> None:
    wrong = f"Invalid value {value} for configuration {key}: "
    try:
        number = float(value) if known.kind is Kind.DOUBLE else int(value.strip())
    except ValueError:
        raise Refusal(code, f"{wrong}Not a number of type {known.kind.value}") from None
    least, most = _LIMITS.get(known.kind, (number, number))
    if not least <= number <= most:
        raise Refusal(code, f"{wrong}Not a number of type {known.kind.value}")
    if known.kind is Kind.DOUBLE:
        wrong = f"Invalid value {number} for configuration {key}: "
    if known.low is not None and number < known.low:
        raise Refusal(code, f"{wrong}Value must be at least {known.low:g}")
    if known.high is not None and number > known.high:
        raise Refusal(code, f"{wrong}Value must be no more than {known.high:g}")


def parts(value: str | None) -> list[str]:
    """Items of a list as the controller splits it: no trimming, empty ones left out."""
    return [item for item in (value or "").split(",") if item]


def altered(
    resource: ConfigResource, now: Mapping[str, str], changes: Sequence[ConfigChange]
) -> dict[str, str]:
    """The resource's values after these changes. The order of checks is the controller's."""
    schema = SCHEMA.topic if resource.type is ResourceType.TOPIC else SCHEMA.broker
    values = dict(now)
    for change in changes:
        if change.operation is ConfigOperation.DELETE:
            values.pop(change.key, None)
        elif change.operation is ConfigOperation.SET:
            values[change.key] = change.value or ""
        else:
            known = schema.get(change.key)
            if known is None or known.kind is not Kind.LIST:
                raise Refusal(
                    INVALID_CONFIG,
                    f"Can't {change.operation.name} to key {change.key} because its type is not "
                    "LIST.",
                )
            values[change.key] = ",".join(
                _list_after(values.get(change.key, known.default), change)
            )
    return values


def _list_after(value: str | None, change: ConfigChange) -> list[str]:
    """APPEND leaves out what is there; SUBTRACT takes the first of several that are alike."""
    items = parts(value)
    for item in (change.value or "").split(","):
        if change.operation is ConfigOperation.SUBTRACT:
            if item in items:
                items.remove(item)
        elif item not in items:
            items.append(item)
    return items


def _scope(key: str) -> Scope:
    known = SCHEMA.broker.get(key)
    return known.scope if known is not None else Scope.CLUSTER_WIDE


_UNSET_TOPIC, _UNSET_BROKER = (
    {key: ConfigValue(known.default, "DEFAULT_CONFIG") for key, known in schema.items()}
    for schema in (SCHEMA.topic, SCHEMA.broker)
)


def describe_topic(
    own: Mapping[str, str],
    broker: Mapping[str, ConfigValue],
    keys: Collection[str] | None = None,
) -> dict[str, ConfigValue]:
    """A topic's configs with their sources.

    :param broker: effective configs of the broker that is asked.
    :param keys: only these; None = all.
    """
    found = {}
    for key, known in SCHEMA.topic.items():
        if keys is not None and key not in keys:
            continue
        if key in own:
            found[key] = ConfigValue(shown(own[key], known), "DYNAMIC_TOPIC_CONFIG")
        elif known.synonym in broker:
            found[key] = broker[known.synonym]
        else:
            found[key] = _UNSET_TOPIC[key]
    return found


def synonyms(keys: Collection[str] | None) -> frozenset[str] | None:
    """Configs of brokers that these of topics fall back on; None = all."""
    if keys is None:
        return None
    return frozenset(SCHEMA.topic[key].synonym for key in keys if key in SCHEMA.topic)


def describe_broker(
    own: Mapping[str, str],
    default: Mapping[str, str],
    static: Mapping[str, str],
    keys: Collection[str] | None = None,
) -> dict[str, ConfigValue]:
    """A broker's configs with their sources: its own, the cluster's, the file's, the default.

    :param keys: only these; None = all.
    """
    found = {}
    unknown = [key for key in (*own, *default) if key not in SCHEMA.broker]
    for key in (*SCHEMA.broker, *unknown):
        if keys is not None and key not in keys:
            continue
        known = SCHEMA.broker.get(key)
        for values, source in (
            (own, "DYNAMIC_BROKER_CONFIG"),
            (default, "DYNAMIC_DEFAULT_BROKER_CONFIG"),
            (static, "STATIC_BROKER_CONFIG"),
        ):
            if key in values:
                # The value of a config that brokers do not know might be a password.
                value = shown(values[key], known) if known is not None else None
                found[key] = ConfigValue(value, source)
                break
        else:
            if known is not None and not known.hidden:
                found[key] = _UNSET_BROKER[key]
    return found


def describe_default(default: Mapping[str, str]) -> dict[str, ConfigValue]:
    """The brokers' cluster-wide default: only what is set."""
    return {
        key: ConfigValue(
            shown(value, SCHEMA.broker[key]) if key in SCHEMA.broker else None,
            "DYNAMIC_DEFAULT_BROKER_CONFIG",
        )
        for key, value in default.items()
    }


def shown(value: str, known: Definition) -> str:
    """A value as DescribeConfigs renders it: parsed, and written out again."""
    if known.kind is Kind.LIST:
        return ",".join(item.strip() for item in value.split(","))
    if known.kind is Kind.BOOLEAN:
        return value.strip().lower()
    if known.kind in (Kind.INT, Kind.LONG):
        return str(int(value))
    return value
