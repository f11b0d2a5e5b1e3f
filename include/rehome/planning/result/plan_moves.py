"""Turn an outcome into the table of moves, column by column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rehome.domain.array_types import NONE, Ints, Rows
from rehome.domain.kafka import ANY_LOG_DIR
from rehome.domain.plan.move import MoveReason
from rehome.domain.plan.move_columns import lists
from rehome.domain.plan.move_table import MOVES_SCHEMA, MoveTable
from rehome.planning.model.arrays import ClusterArrays, is_new, replica_counts
from rehome.planning.result.outcome import Outcome


def planned_moves(outcome: Outcome) -> MoveTable:
    """All changes with their causes, in partition order."""
    layout, arrays = outcome.layout, outcome.layout.arrays
    changed = outcome.changes()
    origin, rows = layout.origin[changed], layout.rows[changed]
    topics = pa.array(arrays.topics, pa.string())
    columns = {
        "topic": topics.take(pa.array(arrays.topic_of[changed])),
        "partition": arrays.partition_of[changed].astype(np.int32),
        "current": _broker_lists(arrays, origin),
        "target": _broker_lists(arrays, rows),
        "size_bytes": layout.size[changed],
        "reason": _reasons(outcome, changed),
        "causes": outcome.causes(changed),
        "current_log_dirs": _current_log_dirs(arrays, changed),
        "target_log_dirs": _target_log_dirs(outcome, changed),
        "topic_id": _topic_ids(arrays, changed),
        "in_sync": _in_sync(arrays, changed),
        "end_offset": _end_offsets(arrays, changed),
    }
    return MoveTable(pa.table([columns[name] for name in MOVES_SCHEMA.names], schema=MOVES_SCHEMA))


def _in_sync(arrays: ClusterArrays, changed: Ints) -> Ints:
    """(n,) replicas in the ISR."""
    if arrays.in_sync is None:
        return np.full(len(changed), -1, np.int32)
    return replica_counts(np.where(arrays.in_sync[changed], arrays.rows[changed], NONE))


def _end_offsets(arrays: ClusterArrays, changed: Ints) -> Ints:
    """(n,) up to which the whole ISR had the messages; -1 = not known."""
    end_offsets = arrays.end_offsets
    return np.full(len(changed), -1, np.int64) if end_offsets is None else end_offsets[changed]


def _topic_ids(arrays: ClusterArrays, changed: Ints) -> pa.Array:
    ids = arrays.topic_ids or ("",) * len(arrays.topics)
    return pa.array(ids, pa.string()).take(pa.array(arrays.topic_of[changed]))


def _broker_lists(arrays: ClusterArrays, rows: Rows) -> pa.ListArray:
    is_replica = rows != NONE
    ids = arrays.brokers.ids.astype(np.int32)
    return lists(pa.array(ids[rows[is_replica]]), is_replica.sum(axis=1))


def _reasons(outcome: Outcome, changed: Ints) -> pa.Array:
    """The action's reason; for moves without a copy between brokers, the kind of move."""
    reason = outcome.reason
    if reason not in (MoveReason.REQUESTED, MoveReason.BALANCE):
        only_led = set(outcome.elections)
        reasons = [MoveReason.ELECTION if p in only_led else reason for p in changed.tolist()]
        return pa.array([item.value for item in reasons], pa.string())
    origin, rows = outcome.layout.origin[changed], outcome.layout.rows[changed]
    same_set = ~is_new(rows, origin).any(axis=1) & ~is_new(origin, rows).any(axis=1)
    same_order = (rows == origin).all(axis=1)
    kind = np.where(same_order, MoveReason.LOG_DIR.value, MoveReason.LEADER.value)
    return pa.array(np.where(same_set, kind, reason.value).tolist(), pa.string())


def _current_log_dirs(arrays: ClusterArrays, changed: Ints) -> pa.ListArray:
    """Log dir of each replica; empty if all are unknown."""
    codes, is_replica = arrays.log_dirs[changed], arrays.rows[changed] != NONE
    has_log_dir = is_replica & ((codes >= 0) & is_replica).any(axis=1)[:, None]
    names = pa.array([*arrays.log_dir_names, ANY_LOG_DIR], pa.string())
    codes = np.where(codes >= 0, codes, len(arrays.log_dir_names))
    return lists(names.take(pa.array(codes[has_log_dir])), has_log_dir.sum(axis=1))


def _target_log_dirs(outcome: Outcome, changed: Ints) -> pa.ListArray:
    log_dirs: list[Sequence[str]] = [outcome.log_dirs.get(p, ()) for p in changed.tolist()]
    return pa.array(log_dirs, pa.list_(pa.string()))
