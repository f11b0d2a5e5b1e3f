"""What a snapshot must satisfy before anything is planned on it: suites/snapshot.

The tables are those of :mod:`include.quality.snapshot.tables`.
"""

from __future__ import annotations

from include.quality.engine.rules import Rule, rules_of

TABLES = ("snapshot", "brokers", "log_dirs", "topics", "replicas", "partitions")


def snapshot_rules(*, additional: bool, ignore_racks: bool = False) -> tuple[Rule, ...]:
    """The rules on a snapshot. Dead brokers, failed log dirs and partitions without a leader
    refuse nothing but what is about them: elsewhere the plan leaves them alone, and names them.

    :param additional: whether reassignments in flight are allowed (KIP-455).
    :param ignore_racks: whether the plan is made as if no broker had a rack.
    """
    asked = {"racks": not ignore_racks, "nothing_in_flight": not additional}
    return rules_of("snapshot", TABLES, [name for name, is_asked in asked.items() if is_asked])
