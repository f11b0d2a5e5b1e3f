"""The rules on a snapshot: suites/snapshot.

The tables are those of :mod:`rehome.quality.snapshot.tables`.
"""

from __future__ import annotations

from rehome.quality.engine.rules import Rule, rules_of

_TABLES = ("snapshot", "brokers", "log_dirs", "topics", "replicas", "partitions")


def snapshot_rules(*, additional: bool) -> tuple[Rule, ...]:
    """The rules on a snapshot. Dead brokers, failed log dirs and partitions without a leader only
    block requests that need them. Other plans leave them as they are, and report them.

    :param additional: whether reassignments in flight are allowed (KIP-455).
    """
    return rules_of("snapshot", _TABLES, [] if additional else ["nothing_in_flight"])
