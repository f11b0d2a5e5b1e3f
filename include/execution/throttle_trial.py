"""Throttles on trial: the same changes that will be made, sent with validate_only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from include.cluster.model import BrokerError, BrokerId, ConfigValue
from include.cluster.port import ClusterPort, ConfigChange, ConfigOperation, ConfigResource
from include.execution.findings import Finding, Severity
from include.execution.reading import Reading
from include.execution.throttle_configs import named
from include.execution.throttle_items import (
    EVERY_REPLICA,
    LIST_LIMIT,
    LISTS,
    list_items,
    own_value,
    rate_keys,
    split,
)
from include.planning.explanation import bytes_text
from include.planning.plan import Plan

_CHECK = "throttle"
Standing = Mapping[ConfigResource, Mapping[str, ConfigValue] | BrokerError]


def throttle_findings(
    plan: Plan, cluster: ClusterPort, now: Reading, rate_bytes_per_s: int
) -> Iterator[Finding]:
    """What a broker would refuse of the plan's throttles, and rates that hold instead of ours.

    A move that cannot be throttled would run without any limit, so that is an error. Kafka
    accepts a rate of 0 without a word, and nothing would ever move: refused here.
    """
    if rate_bytes_per_s <= 0:
        yield Finding(
            Severity.ERROR,
            _CHECK,
            "throttle",
            f"{rate_bytes_per_s} bytes per second would never move anything",
            "Give a rate above the inflow of the partitions.",
        )
        return
    involved = {b for m in plan.moves for b in (*m.current, *m.target)} & now.cluster.brokers.keys()
    changes: list[ConfigChange] = []
    yield from _rates(plan, cluster, involved, rate_bytes_per_s, changes)
    yield from _lists(plan, cluster, changes)
    for resource, error in cluster.alter_configs(changes, validate_only=True).items():
        if error is not None:
            yield _refused(resource, error)


def _refused(resource: ConfigResource, error: BrokerError) -> Finding:
    return Finding(
        Severity.ERROR,
        _CHECK,
        named(resource),
        f"its throttle would be refused: {error.name}: {error.message}",
        "See docs/security.md for rights; correct the configuration that stands there.",
        error.code,
    )


def _rates(
    plan: Plan,
    cluster: ClusterPort,
    brokers: set[BrokerId],
    rate_bytes_per_s: int,
    changes: list[ConfigChange],
) -> Iterator[Finding]:
    """The default rate; and brokers' own where a higher one stands, for that would win."""
    keys = rate_keys(plan.moves)
    default = ConfigResource.cluster_default()
    resources = [default, *map(ConfigResource.broker, sorted(brokers))]
    standing: Standing = cluster.describe_configs(resources, keys) if keys else {}
    for resource, configs in standing.items():
        if isinstance(configs, BrokerError):
            yield _unreadable(resource, configs)
            continue
        for key in keys:
            own = own_value(resource, configs.get(key))
            lower = own is not None and int(own) < rate_bytes_per_s
            if lower:
                yield _holds(resource, key, int(own or 0))
            elif own is not None or resource == default:
                text = str(rate_bytes_per_s)
                changes.append(ConfigChange(resource, key, ConfigOperation.SET, text))


def _holds(resource: ConfigResource, key: str, rate_bytes_per_s: int) -> Finding:
    stops = rate_bytes_per_s <= 0
    return Finding(
        Severity.ERROR if stops else Severity.WARNING,
        _CHECK,
        named(resource),
        f"{key} stands at {bytes_text(rate_bytes_per_s)}/s, set by somebody else, and will hold"
        + (": nothing would ever move" if stops else ": the plan takes longer than predicted"),
        "Remove it where it is a leftover (sweep_throttles reports such).",
    )


def _unreadable(resource: ConfigResource, error: BrokerError) -> Finding:
    return Finding(
        Severity.ERROR,
        _CHECK,
        named(resource),
        f"the throttle that stands on it cannot be read: {error.name}: {error.message}",
        "A throttle is only set where the one before it is known.",
        error.code,
    )


def _lists(plan: Plan, cluster: ClusterPort, changes: list[ConfigChange]) -> Iterator[Finding]:
    wanted = list_items(plan.moves)
    resources = sorted({ConfigResource.topic(topic) for topic, _ in wanted})
    standing: Standing = cluster.describe_configs(resources, LISTS) if resources else {}
    for (topic, key), items in wanted.items():
        resource = ConfigResource.topic(topic)
        configs = standing[resource]
        if isinstance(configs, BrokerError):
            if key == LISTS[0]:
                yield _unreadable(resource, configs)
            continue
        there = split(own_value(resource, configs.get(key)))
        text = ",".join(items)
        # `*` covers ours already; a list too long as a whole is set in parts, as moves start.
        if EVERY_REPLICA not in there and len(",".join([*there, text])) <= LIST_LIMIT:
            changes.append(ConfigChange(resource, key, ConfigOperation.APPEND, text))


def partition_findings(cluster: ClusterPort, totals: Mapping[str, int]) -> Iterator[Finding]:
    """What the controller would refuse of new partition counts, by CreatePartitions' own
    validate_only.

    :param totals: topic → number of partitions it is to have.
    """
    verdicts = cluster.create_partitions(totals, validate_only=True)
    for topic, error in verdicts.items():
        if error is not None:
            yield Finding(
                Severity.ERROR,
                "partitions",
                topic,
                f"{totals[topic]} partitions would be refused: {error.name}: {error.message}",
                "Correct the number; partitions can only be added.",
                error.code,
            )
