"""Configs that brokers know: type, default, limits, and which may be changed while they run.

Of brokers' 340 those are here that Rehome or an administrator of moves would touch; topics' are
complete. Values are those of a 4.3.1 broker's DescribeConfigs (``include_synonyms``).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_LIST = "leader.replication.throttled.replicas"
FOLLOWER_LIST = "follower.replication.throttled.replicas"
MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"
CORDONED = "cordoned.log.dirs"
TIERED = "remote.storage.enable"
TIERS_THERE = "remote.log.storage.system.enable"
LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1


class Kind(enum.Enum):
    """Kafka's config types, as its errors name them."""

    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"


class Scope(enum.Enum):
    """Who may change a broker's config while it runs (KIP-226)."""

    READ_ONLY = "read_only"
    PER_BROKER = "per_broker"
    CLUSTER_WIDE = "cluster_wide"


@dataclass(frozen=True, slots=True)
class Definition:
    """One config.

    :param synonym: the broker's config that a topic's falls back on.
    :param hidden: DescribeConfigs leaves it out where it is not set: rates of throttles.
    """

    kind: Kind
    default: str | None
    synonym: str = ""
    low: float | None = None
    high: float | None = None
    values: tuple[str, ...] = ()
    scope: Scope = Scope.CLUSTER_WIDE
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Schema:
    """The definitions of topics and of brokers."""

    topic: dict[str, Definition] = field(default_factory=dict)
    broker: dict[str, Definition] = field(default_factory=dict)


def _number(
    kind: Kind, default: int | float | str, low: float | None = None, **more: str
) -> Definition:
    return Definition(kind, str(default), low=low, synonym=more.get("synonym", ""))


def _topics() -> dict[str, Definition]:
    long, whole = Kind.LONG, Kind.INT
    flag = ("true", "false")
    throttled = Definition(Kind.LIST, "")
    compressions = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
    return {
        "cleanup.policy": Definition(
            Kind.LIST, "delete", "log.cleanup.policy", values=("compact", "delete")
        ),
        "compression.gzip.level": _number(whole, -1, synonym="compression.gzip.level"),
        "compression.lz4.level": Definition(whole, "9", "compression.lz4.level", 1, 17),
        "compression.type": Definition(
            Kind.STRING, "producer", "compression.type", values=compressions
        ),
        "compression.zstd.level": _number(whole, 3, synonym="compression.zstd.level"),
        "delete.retention.ms": _number(
            long, 86_400_000, 0, synonym="log.cleaner.delete.retention.ms"
        ),
        "file.delete.delay.ms": _number(long, 60_000, 0, synonym="log.segment.delete.delay.ms"),
        "flush.messages": _number(long, LONG_MAX, 1, synonym="log.flush.interval.messages"),
        "flush.ms": _number(long, LONG_MAX, 0),
        FOLLOWER_LIST: throttled,
        "index.interval.bytes": _number(whole, 4096, 0, synonym="log.index.interval.bytes"),
        LEADER_LIST: throttled,
        "local.retention.bytes": _number(long, -2, -2, synonym="log.local.retention.bytes"),
        "local.retention.ms": _number(long, -2, -2, synonym="log.local.retention.ms"),
        "max.compaction.lag.ms": _number(
            long, LONG_MAX, 1, synonym="log.cleaner.max.compaction.lag.ms"
        ),
        "max.message.bytes": _number(whole, 1_048_588, 0, synonym="message.max.bytes"),
        "message.timestamp.after.max.ms": _number(
            long, 3_600_000, 0, synonym="log.message.timestamp.after.max.ms"
        ),
        "message.timestamp.before.max.ms": _number(
            long, LONG_MAX, 0, synonym="log.message.timestamp.before.max.ms"
        ),
        "message.timestamp.type": Definition(
            Kind.STRING,
            "CreateTime",
            "log.message.timestamp.type",
            values=("CreateTime", "LogAppendTime"),
        ),
        "min.cleanable.dirty.ratio": Definition(
            Kind.DOUBLE, "0.5", "log.cleaner.min.cleanable.ratio", 0, 1
        ),
        "min.compaction.lag.ms": _number(long, 0, 0, synonym="log.cleaner.min.compaction.lag.ms"),
        MIN_ISR: _number(whole, 1, 1, synonym=MIN_ISR),
        "preallocate": Definition(Kind.BOOLEAN, "false", "log.preallocate", values=flag),
        "remote.log.copy.disable": Definition(Kind.BOOLEAN, "false", values=flag),
        "remote.log.delete.on.disable": Definition(Kind.BOOLEAN, "false", values=flag),
        TIERED: Definition(Kind.BOOLEAN, "false", values=flag),
        "retention.bytes": _number(long, -1, synonym="log.retention.bytes"),
        "retention.ms": _number(long, 604_800_000, -1, synonym="log.retention.ms"),
        "segment.bytes": _number(whole, 1_073_741_824, 1_048_576, synonym="log.segment.bytes"),
        "segment.index.bytes": _number(whole, 10_485_760, 4, synonym="log.index.size.max.bytes"),
        "segment.jitter.ms": _number(long, 0, 0),
        "segment.ms": _number(long, 604_800_000, 1),
        UNCLEAN: Definition(Kind.BOOLEAN, "false", UNCLEAN, values=flag),
    }


def _brokers(topics: dict[str, Definition]) -> dict[str, Definition]:
    rate = Definition(Kind.LONG, str(LONG_MAX), low=0, hidden=True)
    fixed = Definition(Kind.STRING, None, scope=Scope.READ_ONLY)
    own = {
        LEADER_RATE: rate,
        FOLLOWER_RATE: rate,
        LOG_DIRS_RATE: rate,
        CORDONED: Definition(Kind.LIST, "", scope=Scope.PER_BROKER),
        "num.io.threads": _number(Kind.INT, 8, 1),
        "num.replica.fetchers": _number(Kind.INT, 1, 1),
        "broker.rack": fixed,
        "log.dirs": Definition(Kind.LIST, None, scope=Scope.READ_ONLY),
        "auto.leader.rebalance.enable": Definition(
            Kind.BOOLEAN, "true", values=("true", "false"), scope=Scope.READ_ONLY
        ),
        "replica.lag.time.max.ms": Definition(Kind.LONG, "30000", scope=Scope.READ_ONLY),
        "follower.fetch.last.tiered.offset.enable": Definition(
            Kind.BOOLEAN, "false", values=("true", "false")
        ),
    }
    behind = {
        one.synonym: Definition(one.kind, one.default, "", one.low, one.high, one.values)
        for one in topics.values()
        if one.synonym
    }
    behind["log.retention.ms"] = Definition(Kind.LONG, "604800000", low=-1)
    return {**behind, **own}


_TOPICS = _topics()
SCHEMA = Schema(_TOPICS, _brokers(_TOPICS))
