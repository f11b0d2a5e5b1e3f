"""Throttles on trial: the same changes that will be made, sent with validate_only."""

from __future__ import annotations

from collections.abc import Iterator

from include.cluster.port import ClusterPort, ConfigChange, ConfigOperation, ConfigResource
from include.execution.findings import Finding, Severity
from include.execution.throttle_configs import named
from include.execution.throttle_items import EVERY_REPLICA, LIST_LIMIT, list_items, rate_keys
from include.planning.plan import Plan


def throttle_findings(plan: Plan, cluster: ClusterPort, rate_bytes_per_s: int) -> Iterator[Finding]:
    """What a broker would refuse of the plan's throttles. A move that cannot be throttled would
    run without any limit, so that is an error.

    Kafka accepts a rate of 0 without a word, and nothing would ever move: refused here.
    """
    if rate_bytes_per_s <= 0:
        yield Finding(
            Severity.ERROR,
            "throttle",
            "throttle",
            f"{rate_bytes_per_s} bytes per second would never move anything",
            "Give a rate above the inflow of the partitions.",
        )
        return
    for resource, error in cluster.alter_configs(
        _changes(plan, cluster, rate_bytes_per_s), validate_only=True
    ).items():
        if error is not None:
            yield Finding(
                Severity.ERROR,
                "throttle",
                named(resource),
                f"its throttle would be refused: {error.name}: {error.message}",
                "See docs/security.md for rights; correct the configuration that stands there.",
                code=error.code,
            )


def _changes(plan: Plan, cluster: ClusterPort, rate_bytes_per_s: int) -> list[ConfigChange]:
    rates = [
        ConfigChange(
            ConfigResource.cluster_default(), key, ConfigOperation.SET, str(rate_bytes_per_s)
        )
        for key in rate_keys(plan.moves)
    ]
    wanted = list_items(plan.moves)
    resources = sorted({ConfigResource.topic(topic) for topic, _ in wanted})
    standing = cluster.describe_configs(resources, {key for _, key in wanted}) if wanted else {}
    lists = []
    for (topic, key), items in wanted.items():
        configs = standing.get(ConfigResource.topic(topic))
        value = configs[key].value if isinstance(configs, dict) and key in configs else None
        text = ",".join(items)
        # `*` covers ours already; a list too long as a whole is set in parts, as moves start.
        if value != EVERY_REPLICA and len(text) + len(value or "") < LIST_LIMIT:
            resource = ConfigResource.topic(topic)
            lists.append(ConfigChange(resource, key, ConfigOperation.APPEND, text))
    return [*rates, *lists]
