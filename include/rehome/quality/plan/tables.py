"""The tables that the rules on a plan are checked on.

Each row has the facts that it must agree with. Facts are computed from the snapshot, the request
and Kafka's files alone, by code that the planner does not use.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from rehome.domain.actions import Action
from rehome.domain.array_types import Mask
from rehome.domain.kafka import LogDirKey
from rehome.quality.facts.broker_places import places
from rehome.quality.facts.evacuated import evacuated_log_dirs
from rehome.quality.facts.gate_input import Checked, rows_of
from rehome.quality.facts.plan_hash import hash_of
from rehome.quality.facts.ragged_lists import Ragged
from rehome.quality.facts.unmet_targets import Obstacles
from rehome.quality.facts.unplannable import (
    at_caps,
    excused_partitions,
    kept_uneven,
    offline_counts,
    without_leader,
)
from rehome.quality.plan.broker_table import brokers_after
from rehome.quality.plan.leader_table import leaders_after
from rehome.quality.plan.leadership import elects
from rehome.quality.plan.limit_table import (
    left_elsewhere,
    left_outside,
    outside_in_the_end,
    set_too_small,
)
from rehome.quality.plan.move_table import moves_table_with_facts
from rehome.quality.plan.set_spread import uneven
from rehome.quality.plan.stated_limits import unproven_limits
from rehome.quality.plan.topic_table import topics_after


def plan_tables(checked: Checked) -> dict[str, pa.Table]:
    """``moves``, ``brokers_after``, ``log_dirs_after``, ``topics_after``, ``leaders_after``,
    ``files`` and ``plan`` (one row).
    """
    return {
        "moves": moves_table_with_facts(checked),
        "brokers_after": brokers_after(checked),
        "log_dirs_after": _log_dirs_after(checked),
        "topics_after": topics_after(checked),
        "leaders_after": leaders_after(checked),
        "files": _files(checked),
        "plan": pa.Table.from_pylist([_plan_row(checked)]),
    }


def _log_dirs_after(checked: Checked) -> pa.Table:
    """One row per log dir that takes replicas: the headroom of its volume, and the bytes that moves
    send there by name.
    """
    arriving: Counter[tuple[int, str]] = Counter()
    headroom, first = checked.disks.headroom, checked.disks.first
    for item in checked.moved.named_log_dirs:
        place = item.broker, item.path
        arriving[first.get(place, place)] += item.size_bytes
    return pa.table(
        {
            "broker": pa.array([broker for broker, _ in headroom], pa.int32()),
            "log_dir": pa.array([path for _, path in headroom], pa.string()),
            "headroom_bytes": pa.array(headroom.values(), pa.int64()),
            "arriving_bytes": pa.array(
                [arriving[first[place]] or None for place in headroom], pa.int64()
            ),
        }
    )


def _files(checked: Checked) -> pa.Table:
    """One row per partition that a file lists."""
    tables = []
    for name, file in (("reassignment.json", checked.sent), ("rollback.json", checked.taken_back)):
        listed = file.counts()
        planned = rows_of(checked.moved.table, listed) >= 0
        columns = {
            "file": pa.repeat(name, len(listed)),
            "topic": listed.column("topic"),
            "partition": listed.column("partition"),
            "planned": pa.array(planned),
            "times_listed": listed.column("times_listed").cast(pa.int32()),
        }
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def _plan_row(checked: Checked) -> dict[str, Any]:
    plan, moved, summary = checked.plan, checked.moved, checked.plan.summary
    copies = moved.adding.lengths
    left_out, apart = _left_out(checked), left_outside(checked)
    unproven, elsewhere = unproven_limits(checked), left_elsewhere(checked)
    return {
        "plan_id": plan.plan_id,
        "plan_hash": plan.plan_hash,
        "computed_hash": hash_of(
            checked.snapshot.cluster_id,
            checked.request.action.value,
            moved.table,
            allows_factor_change=plan.allow_replication_factor_change,
        ),
        "snapshot": summary.snapshot,
        "snapshot_seen": checked.snapshot.name,
        "cluster_id": plan.cluster_id,
        "cluster_stated": summary.cluster_id,
        "cluster_seen": checked.snapshot.cluster_id,
        "action": plan.action,
        "action_asked": checked.request.action.value,
        "bytes_to_move": summary.bytes_to_move,
        "computed_bytes": int((moved.size * copies).sum()),
        "lower_bound_bytes": summary.lower_bound_bytes,
        "partitions": summary.partitions,
        "computed_partitions": len(copies),
        "replica_moves": summary.replica_moves,
        "computed_moves": int(copies.sum()),
        "leader_changes": summary.leader_changes,
        "computed_leader_changes": int((moved.current.first != moved.target.first).sum()),
        "weakened_stated": _counts(_weakened_stated(checked)),
        "weakened_computed": _counts(_weakened_by_level(checked)),
        "elections": summary.elections,
        "computed_elections": int(elects(checked).sum()),
        "allows_factor_change": plan.allow_replication_factor_change,
        "changes_factor": bool((moved.current.lengths != moved.target.lengths).any()),
        "files_stated": json.dumps(dict(sorted(summary.files.items()))),
        "files_checked": json.dumps(dict(sorted(checked.digests.items()))),
        "sent_version": checked.sent.version,
        "rollback_version": checked.taken_back.version,
        "left_out": len(left_out),
        "left_out_first": left_out[0] if left_out else "",
        "outside_set": len(apart),
        "outside_set_first": apart[0] if apart else "",
        "left_elsewhere": len(elsewhere),
        "elsewhere_first": elsewhere[0] if elsewhere else "",
        "stated_unpaid": Obstacles(summary.infeasible).unpaid_partitions,
        "unproven_limits": len(unproven),
        "unproven_first": unproven[0] if unproven else "",
    }


def _weakened_stated(checked: Checked) -> Counter[int]:
    """Level of the racks → partitions that the summary says are weakened."""
    stated: Counter[int] = Counter()
    for item in checked.plan.summary.weakened:
        stated[item.level] += item.partitions
    return stated


def _counts(of_levels: Mapping[int, int]) -> str:
    return json.dumps({str(level): of_levels[level] for level in sorted(of_levels)})


def _due(checked: Checked, planned: Mask) -> Mask | None:
    """(P,) partitions without a move that need one by the request and their state alone; None if
    that does not follow for this action.
    """
    partitions, request = checked.moved.partitions, checked.request
    scope = checked.in_scope & ~planned
    if request.action is Action.SET_REPLICATION_FACTOR:
        other: Mask = scope & (partitions.replicas.lengths != request.replication_factor)
        return other & ~excused_partitions(checked)
    if request.action is Action.REPAIR_RACKS:
        well = ~partitions.in_flight & (offline_counts(checked) == 0) & ~without_leader(checked)
        amiss = outside_in_the_end(checked)
        if not request.ignore_racks:
            amiss |= uneven(checked)
        unrepaired: Mask = scope & well & amiss & ~_named_as_limited(checked)
        return unrepaired & ~kept_uneven(checked, unrepaired & ~outside_in_the_end(checked))
    if request.action is Action.FIX_OFFLINE_REPLICAS:
        meant = partitions.offline.copy()
        if request.brokers:
            meant &= np.isin(partitions.replicas.values, np.array(request.brokers))
        harmed: Mask = scope & (partitions.replicas.where(meant).lengths > 0)
        return harmed & ~excused_partitions(checked)
    if request.action is Action.DEMOTE:
        demoted = np.array(checked.demoted, np.int64)
        led = np.isin(partitions.leader, demoted) | np.isin(partitions.replicas.first, demoted)
        well = ~partitions.in_flight & ~without_leader(checked)
        unled: Mask = scope & well & led & ~excused_partitions(checked)
        return unled
    if request.action is Action.EVACUATE_LOG_DIRS:
        inside = _lies_in(checked, evacuated_log_dirs(checked))
        well = ~partitions.in_flight & (offline_counts(checked) == 0) & ~without_leader(checked)
        stays: Mask = scope & well & inside & ~_moving_already(checked)
        return stays
    if request.action is Action.ELECT_PREFERRED:
        able = Ragged(partitions.replicas.first, np.arange(len(partitions.keys) + 1))
        in_sync = partitions.replicas.where(partitions.in_sync & ~partitions.offline)
        waits = partitions.leader != partitions.replicas.first
        electable: Mask = scope & ~partitions.in_flight & waits & ~able.missing_in(in_sync)
        return electable
    return None


def _named_as_limited(checked: Checked) -> Mask:
    """(P,) reported partitions whose broker set has too few brokers, or has brokers at their
    caps.
    """
    allowed_brokers, full = (
        checked.allowed_brokers,
        np.isin(checked.brokers, sorted(at_caps(checked))),
    )
    some: Mask = (allowed_brokers.may & full).sum(axis=1) > 0
    capped = some[allowed_brokers.number] & ~outside_in_the_end(checked)
    limited = np.array(set_too_small(checked) | capped, bool)
    excuses = Obstacles(checked.plan.summary.infeasible).partitions
    for p in np.flatnonzero(limited).tolist():
        limited[p] = checked.moved.partitions.name(p) in excuses
    return limited


def _lies_in(checked: Checked, places: frozenset[LogDirKey]) -> Mask:
    """(P,) partitions with a replica in one of these log dirs."""
    partitions = checked.moved.partitions
    pairs = zip(partitions.replicas.values.tolist(), partitions.log_dirs.to_pylist(), strict=True)
    inside = np.array([pair in places for pair in pairs], bool)
    is_inside: Mask = partitions.replicas.where(inside).lengths > 0
    return is_inside


def _moving_already(checked: Checked) -> Mask:
    """(P,) reported partitions with a replica that is being moved between log dirs already."""
    excuses = Obstacles(checked.plan.summary.infeasible).partitions
    rows = checked.snapshot.replicas.filter(
        checked.snapshot.replicas.column("future_log_dir").is_valid()
    ).to_pylist()
    moving = {f"{row['topic']}-{row['partition']}" for row in rows}
    partitions = checked.moved.partitions
    return np.array(
        [partitions.name(p) in moving & excuses for p in range(len(partitions.keys))], bool
    )


def _left_out(checked: Checked) -> list[str]:
    """Partitions that the request must change and that have no move."""
    partitions = checked.moved.partitions
    planned = np.zeros(len(partitions.keys), bool)
    planned[checked.moved.at[checked.moved.at >= 0]] = True
    due = _due(checked, planned)
    if due is not None:
        return [partitions.name(p) for p in np.flatnonzero(due).tolist()]
    if checked.request.action is not Action.REASSIGN:
        return []
    entries = list(checked.requested)
    at = partitions.find(
        pa.chunked_array([pa.array([topic for topic, _ in entries], pa.string())]),
        pa.chunked_array([pa.array([number for _, number in entries], pa.int32())]),
    )
    today = partitions.lists_at(at)[0].to_pylist()
    moved = set(checked.planned)
    return [
        str(partition)
        for partition, replicas in zip(entries, today, strict=True)
        if partition not in moved and replicas != list(checked.requested[partition][0])
    ]


def _weakened_by_level(checked: Checked) -> dict[int, int]:
    """Level of the racks, 0 = replicas → partitions that end in fewer domains than they had.

    Levels without any are left out; so is, of racks, a broker that is dead or has none, and a level
    that only dead ones have.
    """
    moved = checked.moved
    sides = [
        (lists, places(checked.brokers, lists.values)) for lists in (moved.current, moved.target)
    ]
    fewer = moved.target.distinct_lengths < moved.current.distinct_lengths
    counts = {0: int(fewer.sum())}
    depths = np.array([len(path) for path in checked.rack_paths], np.int64)
    racked = checked.live & (depths > 0)
    for level in range(1, depths[checked.live].max(initial=0) + 1):
        nodes = [tuple([*path, *[""] * level][:level]) for path in checked.rack_paths]
        numbers = {name: number for number, name in enumerate(sorted(set(nodes)))}
        node = np.array([*(numbers[name] for name in nodes), 0], np.int64)

        has_rack = np.append(racked, False)  # -1: a broker that there is not
        before, after = (Ragged(node[at], lists.offsets).where(has_rack[at]) for lists, at in sides)
        counts[level] = int((after.distinct_lengths < before.distinct_lengths).sum())
    return {level: count for level, count in counts.items() if count}
