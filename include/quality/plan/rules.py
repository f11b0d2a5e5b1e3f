"""The hard rules on a plan as data, whatever planner made it.

The tables are those of :mod:`include.quality.plan.tables`.
"""

from __future__ import annotations

from include.domain.request.request import ReassignmentRequest
from include.quality.engine.rules import DEFECT, Rule
from include.quality.plan.request_rules import request_rules

_PARTITION = ("topic", "partition")
_BROKER = ("broker",)
_PLAN = ("plan_id",)


def plan_rules(request: ReassignmentRequest, *, rack_levels: int) -> tuple[Rule, ...]:
    """The expectations on a plan for this request.

    :param rack_levels: depth of the cluster's rack tree; 0 = no racks.
    """
    return (
        *_TARGET_RULES,
        *_WAY_RULES,
        *_DISK_RULES,
        *_SUMMARY_RULES,
        *request_rules(request, rack_levels=rack_levels),
    )


_TARGET_RULES = (
    Rule("a partition is moved once", "moves", "times_planned = 1", _PARTITION, DEFECT),
    Rule(
        "a move is of a partition that exists",
        "moves",
        "snapshot_replicas IS NOT NULL",
        _PARTITION,
        DEFECT,
    ),
    Rule("a target names a broker", "moves", "size(target) > 0", _PARTITION, DEFECT),
    Rule(
        "a target names no broker twice",
        "moves",
        "size(array_distinct(target)) = size(target)",
        _PARTITION,
        DEFECT,
        ("target",),
    ),
    Rule(
        "a target names live brokers only",
        "moves",
        "size(not_live) = 0",
        _PARTITION,
        "Bring the broker back or leave it out of the request.",
        ("target", "not_live"),
    ),
    Rule(
        "a copy goes to a broker that takes replicas",
        "moves",
        "size(closed) = 0",
        _PARTITION,
        "All log dirs of the broker are offline or cordoned: uncordon one, or leave it out.",
        ("target", "closed"),
    ),
    Rule(
        "a copy has a live leader to come from",
        "moves",
        "size(adding) = 0 OR leader_is_live",
        _PARTITION,
        "Bring back a broker of its ISR, or leave the partition out of the request.",
    ),
    Rule(
        "a partition that is being reassigned is left alone",
        "moves",
        "NOT coalesce(in_flight, false)",
        _PARTITION,
        "Wait for its reassignment to end, or leave it out of the request.",
    ),
    Rule(
        "a partition that gives up replicas keeps those that are in sync",
        "moves",
        "size(target) >= size(current) OR in_sync_kept = least(in_sync_found, size(target))",
        _PARTITION,
        DEFECT,
        ("current", "target", "in_sync_now"),
    ),
    Rule(
        "log dirs are aligned with the target",
        "moves",
        "size(target_log_dirs) IN (0, size(target))",
        _PARTITION,
        DEFECT,
    ),
    Rule(
        "a log dir that is named can be used",
        "moves",
        "size(unusable_log_dirs) = 0",
        _PARTITION,
        "The broker has no such log dir, or it is offline or cordoned: name another.",
        ("unusable_log_dirs",),
    ),
    Rule("a move has a size", "moves", "size_bytes >= 0", _PARTITION, DEFECT),
    Rule(
        "a move is as large as the snapshot says",
        "moves",
        "size_bytes = snapshot_size",
        _PARTITION,
        DEFECT,
        ("size_bytes", "snapshot_size"),
    ),
    Rule(
        "a move changes something",
        "moves",
        "target <> current OR size(target_log_dirs) > 0",
        _PARTITION,
        DEFECT,
    ),
    Rule(
        "a move states how many replicas are in sync",
        "moves",
        "in_sync IN (-1, in_sync_found)",
        _PARTITION,
        DEFECT,
        ("in_sync", "in_sync_found"),
    ),
    Rule("a move says why", "moves", "trim(why) <> ''", _PARTITION, DEFECT),
)

_WAY_RULES = (
    Rule(
        "the way back leads to where the snapshot found the partition",
        "moves",
        "current = snapshot_replicas AND rollback_replicas = current",
        _PARTITION,
        DEFECT,
        ("current", "snapshot_replicas", "rollback_replicas"),
    ),
    Rule(
        "the way back leads to the log dirs where the snapshot found the replicas",
        "moves",
        "rollback_log_dirs = snapshot_log_dirs",
        _PARTITION,
        DEFECT,
        ("snapshot_log_dirs", "rollback_log_dirs"),
    ),
    Rule(
        "what is sent is what was planned",
        "moves",
        "sent_replicas = target AND sent_log_dirs = if(size(target_log_dirs) = 0, "
        "array_repeat('any', size(target)), target_log_dirs)",
        _PARTITION,
        DEFECT,
        ("target", "sent_replicas", "target_log_dirs", "sent_log_dirs"),
    ),
    Rule(
        "a file lists what is planned, once, and nothing else",
        "files",
        "planned AND times_listed = 1",
        ("file", *_PARTITION),
        DEFECT,
        ("times_listed",),
    ),
    Rule(
        "the files are of the version that Kafka reads",
        "plan",
        "sent_version = 1 AND rollback_version = 1",
        _PLAN,
        DEFECT,
        ("sent_version", "rollback_version"),
    ),
)

_DISK_RULES = (
    Rule(
        "a broker's disk holds old and new copies at once",
        "brokers_after",
        "room_bytes IS NULL OR arriving_bytes <= room_bytes OR arriving_bytes = 0",
        _BROKER,
        "Free disk on the broker, or move less at a time.",
        ("arriving_bytes", "room_bytes"),
    ),
    Rule(
        "a broker's disk holds what it has in the end",
        "brokers_after",
        "room_bytes IS NULL OR arriving_bytes - leaving_bytes <= room_bytes "
        "OR arriving_bytes <= leaving_bytes",
        _BROKER,
        "Free disk on the broker, or give it less.",
        ("arriving_bytes", "leaving_bytes", "room_bytes"),
    ),
    Rule(
        "each copy fits into a log dir",
        "brokers_after",
        "size(fits_nowhere) = 0",
        _BROKER,
        "Free disk on one of the broker's volumes, name log dirs, or move less at a time.",
        ("fits_nowhere",),
    ),
    Rule(
        "a log dir holds what is sent to it",
        "log_dirs_after",
        "room_bytes IS NULL OR arriving_bytes <= room_bytes OR arriving_bytes = 0",
        ("broker", "log_dir"),
        "Free disk on the volume, or name another log dir.",
        ("arriving_bytes", "room_bytes"),
    ),
)

_SUMMARY_RULES = (
    Rule(
        "the plan is for the snapshot that was checked",
        "plan",
        "snapshot = snapshot_seen AND cluster_id = cluster_seen AND cluster_told = cluster_seen "
        "AND action = action_asked",
        _PLAN,
        DEFECT,
        (
            *("snapshot", "snapshot_seen", "cluster_id", "cluster_told", "cluster_seen"),
            *("action", "action_asked"),
        ),
    ),
    Rule(
        "the hash is that of what the plan does", "plan", "plan_hash = computed_hash", _PLAN, DEFECT
    ),
    Rule(
        "the summary names the files that were checked, to the byte",
        "plan",
        "files_told = files_checked",
        _PLAN,
        DEFECT,
        ("files_told", "files_checked"),
    ),
    Rule(
        "the lower bound is not above what is moved",
        "plan",
        "lower_bound_bytes BETWEEN 0 AND bytes_to_move",
        _PLAN,
        DEFECT,
        ("lower_bound_bytes", "bytes_to_move"),
    ),
    Rule(
        "the summary states the bytes that are moved",
        "plan",
        "bytes_to_move = computed_bytes",
        _PLAN,
        DEFECT,
        ("bytes_to_move", "computed_bytes"),
    ),
    Rule(
        "the summary counts partitions, copies and leaders as they are",
        "plan",
        "partitions = computed_partitions AND replica_moves = computed_moves "
        "AND leader_changes = computed_leader_changes",
        _PLAN,
        DEFECT,
        (
            *("partitions", "computed_partitions", "replica_moves", "computed_moves"),
            *("leader_changes", "computed_leader_changes"),
        ),
    ),
    Rule(
        "the summary states each broker's load before and after",
        "brokers_after",
        "told = computed",
        _BROKER,
        DEFECT,
        ("told", "computed"),
    ),
)
