"""Expectations as data: what must hold of each row of a table, and what to do where it does not.

``holds`` is a Spark SQL condition; a null counts as broken, since Great Expectations would skip
it. Keys name the row to a person.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """One expectation on one table.

    :param holds: Spark SQL condition that is true of every good row.
    :param keys: columns that name a row.
    :param shows: further columns to show of an offending row.
    """

    name: str
    table: str
    holds: str
    keys: tuple[str, ...]
    remedy: str
    shows: tuple[str, ...] = ()


_REPLICA = ("topic", "partition", "broker")
_PARTITION = ("topic", "partition")


def snapshot_rules(*, max_age_s: float, additional: bool) -> tuple[Rule, ...]:
    """What a snapshot must satisfy before anything is planned on it.

    :param additional: whether reassignments in flight are allowed (KIP-455).
    """
    rules = [
        Rule(
            "the snapshot is fresh",
            "snapshot",
            f"age_s BETWEEN -60 AND {float(max_age_s)}",
            ("taken_at",),
            "Take a new snapshot; check the clocks of this machine and of the scheduler.",
            ("age_s",),
        ),
        Rule(
            "every broker with replicas is alive",
            "brokers",
            "live",
            ("broker",),
            "Bring the broker back, or wait until it has rejoined, then run again.",
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
            "all brokers name a rack, or none does",
            "brokers",
            "NOT live OR rack IS NOT NULL OR count(rack) OVER () = 0",
            ("broker",),
            "Set broker.rack on the brokers that lack it.",
        ),
        Rule(
            "no log dir is offline",
            "log_dirs",
            "NOT offline",
            ("broker", "log_dir"),
            "Repair or remove the disk and restart the broker, then run again.",
            ("error",),
        ),
        Rule(
            "log dirs hold only replicas that the metadata knows",
            "log_dirs",
            "stray_replicas = 0",
            ("broker", "log_dir"),
            "Wait for the broker to delete them, or remove what an aborted move left behind.",
            ("stray_replicas",),
        ),
        Rule(
            "no topic is hidden from this principal",
            "topics",
            "visible",
            ("topic",),
            "Grant Topic Describe on it to the principal of the connection.",
        ),
        Rule(
            "every replica lies in a log dir",
            "replicas",
            "log_dir IS NOT NULL",
            _REPLICA,
            "Its broker did not answer or lost the replica: see the broker's log.",
        ),
        Rule(
            "every replica has a size",
            "replicas",
            "size_bytes >= 0",
            _REPLICA,
            "Its broker did not answer: see the expectations on brokers.",
        ),
        Rule(
            "every replica tells its log end offset",
            "replicas",
            "log_end_offset >= 0",
            _REPLICA,
            "Its broker did not answer or does not host it: see the broker's log.",
        ),
        Rule(
            "every partition has one leader",
            "partitions",
            "leaders = 1",
            _PARTITION,
            "Bring back a broker of its ISR; a partition without a leader cannot be moved.",
        ),
        Rule(
            "the replicas of a partition are on distinct brokers",
            "partitions",
            "distinct_brokers = replicas",
            _PARTITION,
            "The snapshot contradicts itself: take a new one.",
        ),
        Rule(
            "the replicas of a partition are listed in order",
            "partitions",
            "first_position = 0 AND last_position = replicas - 1 AND distinct_positions = replicas",
            _PARTITION,
            "The snapshot contradicts itself: take a new one.",
        ),
    ]
    if not additional:
        rules.append(
            Rule(
                "no reassignment is in flight",
                "partitions",
                "moving = 0",
                _PARTITION,
                "Wait for it to end, or allow it with the parameter additional.",
            )
        )
    return tuple(rules)


def plan_rules(
    *,
    drained: tuple[int, ...],
    replication_factor: int | None,
    keeps_replication_factor: bool,
    guards_racks: bool,
) -> tuple[Rule, ...]:
    """Hard rules on a plan as data.

    :param drained: brokers that must end empty.
    :param replication_factor: the size of every target where the action is to set it.
    :param keeps_replication_factor: whether it must stay as it is.
    :param guards_racks: false where the operator named the targets.
    """
    defect = "This is a defect of the planner: keep the plan's files and report it."
    rules = [
        Rule("a partition is moved once", "moves", "times_planned = 1", _PARTITION, defect),
        Rule("a target names a broker", "moves", "size(target) > 0", _PARTITION, defect),
        Rule(
            "a target names no broker twice",
            "moves",
            "size(array_distinct(target)) = size(target)",
            _PARTITION,
            defect,
            ("target",),
        ),
        Rule(
            "a target names live brokers only",
            "moves",
            "size(array_except(target, live_brokers)) = 0",
            _PARTITION,
            "Bring the broker back or leave it out of the request.",
            ("target",),
        ),
        Rule(
            "log dirs are aligned with the target",
            "moves",
            "size(target_log_dirs) IN (0, size(target))",
            _PARTITION,
            defect,
        ),
        Rule("a move has a size", "moves", "size_bytes >= 0", _PARTITION, defect),
        Rule(
            "a move changes something",
            "moves",
            "target <> current OR size(target_log_dirs) > 0",
            _PARTITION,
            defect,
        ),
        Rule(
            "the way back leads to where the snapshot found the partition",
            "moves",
            "current = snapshot_replicas AND rollback_replicas = current",
            _PARTITION,
            defect,
            ("current", "snapshot_replicas", "rollback_replicas"),
        ),
        Rule(
            "what is sent is what was planned",
            "moves",
            "sent_replicas = target",
            _PARTITION,
            defect,
            ("target", "sent_replicas"),
        ),
        Rule(
            "a broker's disk holds old and new copies at once",
            "brokers_after",
            "room_bytes IS NULL OR bytes_in <= room_bytes",
            ("broker",),
            "Free disk on the broker, or move less at a time.",
            ("bytes_in", "room_bytes"),
        ),
        Rule(
            "the hash is that of the moves",
            "plan",
            "plan_hash = computed_hash",
            ("plan_id",),
            defect,
        ),
        Rule(
            "the lower bound is not above what is moved",
            "plan",
            "lower_bound_bytes <= bytes_to_move AND bytes_to_move = computed_bytes",
            ("plan_id",),
            defect,
            ("lower_bound_bytes", "bytes_to_move", "computed_bytes"),
        ),
    ]
    if drained:
        ids = ", ".join(str(int(broker)) for broker in drained)
        rules += [
            Rule(
                "no target names a drained broker",
                "moves",
                f"size(array_intersect(target, array({ids}))) = 0",
                _PARTITION,
                defect,
                ("target",),
            ),
        ]
    if keeps_replication_factor:
        rules.append(
            Rule(
                "the replication factor stays",
                "moves",
                "size(target) = size(current)",
                _PARTITION,
                "Use the action set_replication_factor to change it.",
                ("current", "target"),
            )
        )
    if replication_factor is not None:
        rules.append(
            Rule(
                "the replication factor is the one asked for",
                "moves",
                f"size(target) = {int(replication_factor)}",
                _PARTITION,
                defect,
                ("target",),
            )
        )
    if guards_racks:
        rules.append(
            Rule(
                "replicas are spread over racks no worse than before",
                "moves",
                "rack_violations_after <= rack_violations_before",
                _PARTITION,
                defect,
                ("current", "target"),
            )
        )
    return tuple(rules)


def drained_empty_rule(drained: tuple[int, ...]) -> Rule:
    """A drained broker hosts nothing afterwards; holds only for a drain of all topics."""
    ids = ", ".join(str(int(broker)) for broker in drained)
    return Rule(
        "a drained broker ends empty",
        "brokers_after",
        f"broker NOT IN ({ids}) OR replicas_after = 0",
        ("broker",),
        "This is a defect of the planner: keep the plan's files and report it.",
        ("replicas_after",),
    )
