"""The action reassign: an operator's own assignment, checked and turned into a layout."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.array_types import NONE
from rehome.domain.kafka import ANY_LOG_DIR, BrokerId, TopicPartition
from rehome.domain.plan.causes.move_cause import CauseCode
from rehome.domain.plan.move import MoveReason
from rehome.domain.reassignment_file import Assignment, parse_reassignment
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.text import brokers_text
from rehome.planning.model.arrays import ClusterArrays, in_sync_of, is_new, replica_counts
from rehome.planning.model.in_sync import in_sync
from rehome.planning.model.layout import Layout
from rehome.planning.model.scope import check_movable, destinations_of, raise_if, shorten
from rehome.planning.result.outcome import Outcome, all_alike, tree_of


def plan_requested(
    snapshot: Snapshot, arrays: ClusterArrays, request: ReassignmentRequest
) -> Outcome:
    """The action reassign: the operator's own file."""
    assignments = parse_reassignment(request.reassignment or {})
    keep = not request.allow_replication_factor_change
    layout, log_dirs = lay_out(snapshot, arrays, assignments, keep_replication_factor=keep)
    raise_if(shorten(_given_up_in_sync(layout)))
    raise_if(shorten(_not_to_destinations(layout, request)))
    tree = tree_of(arrays, arrays.brokers.live, request, layout.rows.shape[1])
    return Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=int(layout.incoming.sum()),
        reason=MoveReason.REQUESTED,
        causes=all_alike(CauseCode.REQUESTED),
        log_dirs=log_dirs,
    )


def lay_out(
    snapshot: Snapshot,
    arrays: ClusterArrays,
    assignments: Mapping[TopicPartition, Assignment],
    *,
    keep_replication_factor: bool = True,
) -> tuple[Layout, dict[int, tuple[str, ...]]]:
    """The layout after the reassignment, and per partition (dense index) the requested log dirs.

    A requested log dir is kept only if it changes something: the replica is new, or lies elsewhere.

    :raises InvalidRequestError: unknown or dead brokers, unknown topics, partitions or log
        dirs, another replication factor, partitions that cannot be moved now.
    """
    index = arrays.partition_index()
    problems = _problems(snapshot, arrays, index, assignments)
    if keep_replication_factor:
        problems += _replication_factor_problems(arrays, index, assignments)
    raise_if(shorten(problems))
    width = max((len(assignment.replicas) for assignment in assignments.values()), default=1)
    layout = Layout(arrays, width)
    brokers = arrays.brokers.index()
    log_dirs = {}
    for partition, assignment in sorted(assignments.items()):
        p = index[partition]
        target = np.full(layout.rows.shape[1], NONE, np.int32)
        target[: len(assignment.replicas)] = [brokers[broker] for broker in assignment.replicas]
        for position in np.flatnonzero(layout.rows[p] != target):
            layout.move(p, int(position), int(target[position]))
        paths = _asked_log_dirs(arrays, p, assignment)
        if any(path != ANY_LOG_DIR for path in paths):
            log_dirs[p] = paths
    changed = np.union1d(layout.changed_partitions(), np.array(sorted(log_dirs), np.int64))
    copied = np.flatnonzero(is_new(layout.rows, layout.origin).any(axis=1))
    check_movable(arrays, changed, copied)
    return layout, log_dirs


def _asked_log_dirs(arrays: ClusterArrays, p: int, assignment: Assignment) -> tuple[str, ...]:
    """The requested log dir of each replica, ``any`` if the replica lies there already."""
    lies_in = _lies_in(arrays, p)
    return tuple(
        ANY_LOG_DIR if lies_in.get(broker) == path else path
        for broker, path in zip(assignment.replicas, assignment.log_dirs, strict=True)
    )


def _lies_in(arrays: ClusterArrays, p: int) -> dict[BrokerId, str]:
    """Broker → log dir of each replica of a partition, the preferred leader's first."""
    return dict(zip(arrays.broker_ids(arrays.rows[p]), arrays.log_dir_paths(p), strict=True))


def _problems(
    snapshot: Snapshot,
    arrays: ClusterArrays,
    index: Mapping[TopicPartition, int],
    assignments: Mapping[TopicPartition, Assignment],
) -> list[str]:
    topics = set(arrays.topics)
    online = _online_log_dirs(snapshot)
    states = zip(arrays.brokers.live.tolist(), arrays.brokers.takes.tolist(), strict=True)
    brokers = dict(zip(arrays.brokers.ids.tolist(), states, strict=True))
    problems = []
    for partition, assignment in sorted(assignments.items()):
        p = index.get(partition)
        now = {} if p is None else _lies_in(arrays, p)
        problems += _broker_problems(partition, assignment, now, brokers, online)
        if partition.topic not in topics:
            problems.append(f"Unknown topic {partition.topic!r}.")
        elif partition not in index:
            problems.append(f"Unknown partition {partition}.")
    return list(dict.fromkeys(problems))


def _replication_factor_problems(
    arrays: ClusterArrays,
    index: Mapping[TopicPartition, int],
    assignments: Mapping[TopicPartition, Assignment],
) -> list[str]:
    problems = []
    replicas = arrays.replication_factor
    for partition, assignment in sorted(assignments.items()):
        has = replicas[index[partition]] if partition in index else None
        if has is not None and has != len(assignment.replicas):
            problems.append(
                f"{partition}: the replication factor would change from {has} to "
                f"{len(assignment.replicas)}; give allow_replication_factor_change if that is "
                "meant."
            )
    return problems


def _given_up_in_sync(layout: Layout) -> list[str]:
    """Partitions that would end with fewer replicas, and give up some in sync for others that are
    not.
    """
    arrays = layout.arrays
    count = replica_counts(layout.rows)
    fewer = np.flatnonzero(count < arrays.replication_factor)
    rows, in_sync_before = layout.rows[fewer], in_sync_of(arrays)[fewer]
    copied = is_new(rows, layout.origin[fewer]).sum(axis=1)
    kept = in_sync(arrays, fewer, rows).sum(axis=1) + copied
    short = fewer[(kept < np.minimum(in_sync_before, count[fewer])) & (arrays.in_sync is not None)]
    return [
        f"{arrays.partition(p)} would give up replicas that are in sync, and keep others that are "
        "not: name those that are in sync, or wait until all are."
        for p in short
    ]


def _not_to_destinations(layout: Layout, request: ReassignmentRequest) -> list[str]:
    """Partitions to which the file gives new replicas elsewhere than on the destinations."""
    arrays = layout.arrays
    new = is_new(layout.rows, layout.origin)
    new &= ~destinations_of(arrays.brokers, request)[layout.rows]
    return [
        f"{arrays.partition(p)} would get a replica on "
        f"{brokers_text(arrays.broker_ids(layout.rows[p][new[p]]))}, and destinations does not "
        "name it: change the file, or destinations."
        for p in np.flatnonzero(new.any(axis=1)).tolist()
    ]


def _online_log_dirs(snapshot: Snapshot) -> dict[BrokerId, dict[str, bool]]:
    """Broker → log dirs that are online, and whether each takes new replicas."""
    online: dict[BrokerId, dict[str, bool]] = {}
    for row in snapshot.log_dirs.to_pylist():
        if not row["offline"]:
            online.setdefault(row["broker"], {})[row["log_dir"]] = not row["cordoned"]
    return online


def _broker_problems(
    partition: TopicPartition,
    assignment: Assignment,
    now: Mapping[BrokerId, str],
    brokers: Mapping[BrokerId, tuple[bool, bool]],
    online: Mapping[BrokerId, Mapping[str, bool]],
) -> list[str]:
    """What is wrong with its brokers and log dirs, and was not so before.

    A dead broker may keep its replica where nothing is copied and it is not preferred anew: with
    anything else the controller waits for it. So may an offline log dir.

    :param now: broker → log dir of the replicas that the partition has.
    :param brokers: id → whether it is live, and takes new replicas; ``online``: their log dirs.
    """
    problems = []
    kept = set(now) if set(now) == set(assignment.replicas) else set()
    if assignment.replicas[:1] != tuple(now)[:1]:
        kept -= set(assignment.replicas[:1])
    for broker, path in zip(assignment.replicas, assignment.log_dirs, strict=True):
        live, takes = brokers.get(broker, (False, False))
        log_dirs, stays = online.get(broker, {}), path in (ANY_LOG_DIR, now.get(broker))
        if broker not in brokers:
            problems.append(f"{partition}: unknown broker {broker}.")
        elif not live and broker not in kept:
            problems.append(f"{partition}: broker {broker} is not live.")
        elif live and not takes and broker not in now:
            problems.append(
                f"{partition}: broker {broker} takes no new replicas: all its log dirs are "
                "offline or cordoned."
            )
        elif not stays and path not in log_dirs:
            problems.append(f"{partition}: broker {broker} has no usable log dir {path!r}.")
        elif not stays and not log_dirs[path]:
            problems.append(
                f"{partition}: log dir {path!r} of broker {broker} is cordoned and takes no "
                "replicas."
            )
    return problems
