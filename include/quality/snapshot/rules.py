"""What a snapshot must satisfy before anything is planned on it.

The tables are those of :mod:`include.quality.snapshot.tables`.
"""

from __future__ import annotations

from collections.abc import Iterable

from include.quality.engine.rules import Rule

MOST_REPLICAS = 62
"""Of one partition: positions are checked as bits of a 64-bit number."""

_REPLICA = ("topic", "partition", "broker")
_PARTITION = ("topic", "partition")
_AGAIN = "The snapshot contradicts itself: take a new one."


def snapshot_rules(
    *,
    max_age_s: float,
    additional: bool,
    levelled: Iterable[int] | None = None,
    ignore_racks: bool = False,
) -> tuple[Rule, ...]:
    """The expectations on a snapshot. Dead brokers, failed log dirs and partitions without a leader
    refuse nothing but what is about them: elsewhere the plan leaves them alone, and names them.

    :param additional: whether reassignments in flight are allowed (KIP-455).
    :param levelled: brokers whose load, or that of their log dirs, is to be evened out; None = all.
    :param ignore_racks: whether the plan is made as if no broker had a rack.
    """
    concerned = "true" if levelled is None else _among("broker", levelled)
    return (
        _freshness(max_age_s),
        *_broker_rules(concerned),
        *(() if ignore_racks else (_RACKS,)),
        _no_failed_log_dir(concerned),
        *_LOG_DIR_RULES,
        *_TOPIC_RULES,
        *_REPLICA_RULES,
        *_PARTITION_RULES,
        *(() if additional else _NOTHING_IN_FLIGHT),
    )


def _among(column: str, brokers: Iterable[int]) -> str:
    """SQL condition: the broker is one of these."""
    ids = ", ".join(str(int(broker)) for broker in sorted(set(brokers)))
    return f"{column} IN ({ids})" if ids else "false"


def _freshness(max_age_s: float) -> Rule:
    return Rule(
        "the snapshot is fresh",
        "snapshot",
        f"age_s BETWEEN -60 AND {float(max_age_s)}",
        ("taken_at",),
        "Take a new snapshot; check the clocks of this machine and of the scheduler.",
        ("age_s",),
    )


def _broker_rules(concerned: str) -> tuple[Rule, ...]:
    return (
        Rule(
            "the snapshot names live brokers",
            "snapshot",
            "live_brokers > 0",
            ("taken_at",),
            "The snapshot is empty: take a new one.",
        ),
        Rule(
            "every broker that is levelled is alive",
            "brokers",
            f"live OR NOT ({concerned})",
            ("broker",),
            "Bring the broker back and wait until it has rejoined, give its replicas new homes "
            "(fix_offline_replicas, or a drain), or name the other brokers, then run again.",
            ("error",),
        ),
        Rule(
            "every live broker answered",
            "brokers",
            "NOT live OR answered",
            ("broker",),
            "Find out why the broker does not answer (overload, network, a missing Cluster "
            "Describe), then run again.",
            ("error",),
        ),
        Rule(
            "every broker that answered reports its log dirs",
            "brokers",
            "NOT (live AND answered) OR known_log_dirs > 0",
            ("broker",),
            _AGAIN,
        ),
        Rule("a broker is listed once", "brokers", "times_listed = 1", ("broker",), _AGAIN),
        Rule(
            "the rack path is that of the rack",
            "brokers",
            "rack_path = filter(split(coalesce(rack, ''), '/'), part -> part <> '')",
            ("broker",),
            _AGAIN,
            ("rack", "rack_path"),
        ),
    )


_RACKS = Rule(
    "all brokers name a rack, or none does",
    "brokers",
    "NOT live OR size(rack_path) > 0 OR live_with_rack = 0",
    ("broker",),
    "Set broker.rack on the brokers that lack it, or plan without racks (ignore_racks).",
)


def _no_failed_log_dir(concerned: str) -> Rule:
    return Rule(
        "no broker that is levelled has an offline log dir",
        "log_dirs",
        f"NOT (offline AND ({concerned}))",
        ("broker", "log_dir"),
        "Repair or remove the disk and restart the broker, give its replicas new homes "
        "(fix_offline_replicas), or name the other brokers, then run again.",
        ("error",),
    )


_LOG_DIR_RULES = (
    Rule(
        "log dirs hold only replicas that the metadata knows",
        "log_dirs",
        "stray_replicas = 0",
        ("broker", "log_dir"),
        "Wait for the broker to delete them, or remove what an aborted move left behind.",
        ("stray_replicas",),
    ),
    Rule(
        "what is free in a log dir is part of its volume",
        "log_dirs",
        "(total_bytes IS NULL OR total_bytes >= 0) AND (usable_bytes IS NULL OR "
        "(usable_bytes >= 0 AND (total_bytes IS NULL OR usable_bytes <= total_bytes)))",
        ("broker", "log_dir"),
        "The broker reports sizes that cannot be: check its volume, then take a new snapshot.",
        ("total_bytes", "usable_bytes"),
    ),
    Rule(
        "a log dir is listed once",
        "log_dirs",
        "times_listed = 1",
        ("broker", "log_dir"),
        _AGAIN,
    ),
)

_TOPIC_RULES = (
    Rule(
        "no topic is hidden from this principal",
        "topics",
        "visible",
        ("topic",),
        "Grant Topic Describe on it to the principal of the connection.",
    ),
    Rule("a topic is listed once", "topics", "times_listed = 1", ("topic",), _AGAIN),
    Rule(
        "all partitions of a topic are there",
        "topics",
        "NOT visible OR (partitions = partitions_seen AND coalesce(last_partition, -1) = "
        "partitions - 1 AND coalesce(first_partition, 0) = 0)",
        ("topic",),
        "The topic was changed while the snapshot was taken: take a new one.",
        ("partitions", "partitions_seen", "first_partition", "last_partition"),
    ),
)


_EXCUSED = "(NOT known_alive OR has_failed_dirs)"
"""Dead brokers report nothing, and live ones nothing of what is in a failed log dir."""

_REPLICA_RULES = (
    Rule(
        "every replica is of a topic that is listed",
        "replicas",
        "known_topic",
        _REPLICA,
        _AGAIN,
    ),
    Rule(
        "every replica is on a broker that is listed",
        "replicas",
        "known_alive IS NOT NULL",
        _REPLICA,
        _AGAIN,
    ),
    Rule(
        "every replica lies in a log dir",
        "replicas",
        f"log_dir IS NOT NULL OR {_EXCUSED}",
        _REPLICA,
        "Its broker did not answer or lost the replica: see the broker's log.",
    ),
    Rule(
        "the log dir of a replica is one that its broker has",
        "replicas",
        "log_dir IS NULL OR known_log_dir",
        _REPLICA,
        "Metadata and log dirs differ: take a new snapshot; if it stays, see the broker's log.",
        ("log_dir",),
    ),
    Rule(
        "every replica has a size",
        "replicas",
        f"size_bytes >= 0 OR (size_bytes IS NULL AND {_EXCUSED})",
        _REPLICA,
        "Its broker did not answer: see the expectations on brokers.",
        ("size_bytes",),
    ),
    Rule(
        "every replica's log end offset is known",
        "replicas",
        f"log_end_offset >= 0 OR (log_end_offset IS NULL AND {_EXCUSED})",
        _REPLICA,
        "Its broker did not answer or does not host it: see the broker's log.",
        ("log_end_offset",),
    ),
    Rule(
        "a leader is in sync",
        "replicas",
        "NOT is_leader OR in_isr",
        _REPLICA,
        _AGAIN,
    ),
)


_PARTITION_RULES = (
    Rule(
        "no partition has two leaders",
        "partitions",
        "leaders <= 1",
        _PARTITION,
        _AGAIN,
        ("leaders",),
    ),
    Rule(
        "the replicas of a partition are on distinct brokers",
        "partitions",
        "times_on_one_broker = 1",
        _PARTITION,
        _AGAIN,
    ),
    Rule(
        "the replicas of a partition are listed in order",
        "partitions",
        f"replicas <= {MOST_REPLICAS} AND first_position = 0 AND last_position = replicas - 1 "
        "AND positions = shiftleft(1L, int(replicas)) - 1",
        _PARTITION,
        _AGAIN,
    ),
)

_NOTHING_IN_FLIGHT = (
    Rule(
        "no reassignment is in flight",
        "partitions",
        "moving = 0",
        _PARTITION,
        "Wait for it to end, or allow it with the parameter additional.",
    ),
    Rule(
        "no move between log dirs is in flight",
        "partitions",
        "moving_log_dir = 0",
        _PARTITION,
        "Wait for it to end, or allow it with the parameter additional.",
    ),
)
