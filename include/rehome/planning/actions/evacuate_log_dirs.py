"""The action evacuate_log_dirs: empty log dirs into others of the same broker, or else off the
broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.array_types import NONE, UNLIMITED, Ints, Mask
from rehome.domain.kafka import ANY_LOG_DIR, BrokerId, LogDirName
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.infeasible import Obstacle
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.text import brokers_text
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from rehome.planning.model.log_dir_arrays import LogDirs, StoredReplicas, stored_log_dirs
from rehome.planning.model.resource_loads import capacities
from rehome.planning.model.scope import brokers_named, raise_if
from rehome.planning.placement.movable import free_to_move, notes_of
from rehome.planning.placement.replica_sets import Placer
from rehome.planning.result.outcome import (
    MoveCauses,
    Outcome,
    WithinBrokers,
    each_by_itself,
    largest_first,
    tree_of,
)


def plan_evacuation(
    snapshot: Snapshot,
    arrays: ClusterArrays,
    request: ReassignmentRequest,
    *,
    min_free_disk_fraction: float,
) -> Outcome:
    """Empty the named log dirs; if none is named, the cordoned ones. Nothing else moves.

    Replicas are taken largest first. Each goes into another log dir of its broker if one has space
    for it. If none has, it leaves the broker, as in a drain.

    :raises InvalidRequestError: an unknown log dir, no cordoned log dir, or no broker with space
        for what has to leave.
    """
    dirs, replicas = stored_log_dirs(
        snapshot, arrays, min_free_disk_fraction=min_free_disk_fraction, caps=request.caps
    )
    leaving = _leaving(snapshot, arrays, dirs, request)
    inside = leaving[replicas.log_dir]
    meant = np.zeros(len(arrays.rows), bool)
    meant[replicas.partition[inside]] = True
    free, notes = free_to_move(arrays, meant)
    under_way = np.unique(replicas.partition[inside & replicas.moving])
    free[under_way] = False
    evacuated = np.flatnonzero(inside & free[replicas.partition])
    placed = _into_other_dirs(arrays, dirs, leaving, replicas, evacuated)
    layout = Layout(_without_takers(arrays, dirs, leaving))
    _off_the_broker(layout, request, placed.leaving_broker(replicas, dirs))
    return Outcome(
        layout=layout,
        tree_before=tree_of(arrays, arrays.brokers.live, request),
        tree_after=tree_of(arrays, arrays.brokers.live, request),
        lower_bound_bytes=min(placed.overflow_bytes, int(layout.incoming.sum())),
        reason=MoveReason.EVACUATE,
        causes=_causes(layout, dirs, replicas, placed),
        infeasible=(*notes, *notes_of(arrays, under_way, Obstacle.LOG_DIR_MOVE_IN_FLIGHT)),
        log_dirs=placed.log_dirs(layout, dirs, replicas),
        within=placed.within(arrays, dirs, replicas),
    )


def _leaving(
    snapshot: Snapshot, arrays: ClusterArrays, dirs: LogDirs, request: ReassignmentRequest
) -> Mask:
    """(D,) the log dirs that are to be emptied."""
    ids = arrays.brokers.ids[dirs.broker].tolist()
    if request.log_dirs:
        names = [LogDirName(*place) for place in zip(ids, dirs.paths, strict=True)]
        requested_dirs = set(request.log_dirs)
        raise_if(
            [
                f"Log dir {name} is unknown, offline, or of a broker that did not answer."
                for name in sorted(requested_dirs - set(names))
            ]
        )
        return np.array([name in requested_dirs for name in names], bool)
    rows = snapshot.log_dirs.filter(snapshot.log_dirs.column("cordoned").fill_null(False))
    shut = {(row["broker"], row["log_dir"]) for row in rows.to_pylist()}
    of = brokers_named(arrays, request) if request.brokers else arrays.brokers.live
    cordoned = np.array([place in shut for place in zip(ids, dirs.paths, strict=True)], bool)
    dirs_to_empty: Mask = cordoned & of[dirs.broker]
    if not dirs_to_empty.any():
        raise_if(["No log dir is cordoned, and none is named: say which are to be emptied."])
    return dirs_to_empty


@dataclass(frozen=True)
class _Placed:
    """The targets of n replicas that leave their log dirs.

    :param replica: (n,) indexes; ``path``: the new log dir of the same broker, "" = the replica
        leaves the broker.
    :param overflow_bytes: lower bound of the bytes that have to leave their brokers, however they
        are packed.
    """

    replica: Ints
    path: tuple[str, ...]
    overflow_bytes: int

    def _each(self, replicas: StoredReplicas, dirs: LogDirs) -> Iterator[tuple[int, int, int, str]]:
        """Replica, partition, dense broker and path."""
        for r, path in zip(self.replica.tolist(), self.path, strict=True):
            yield r, int(replicas.partition[r]), int(dirs.broker[replicas.log_dir[r]]), path

    def leaving_broker(self, replicas: StoredReplicas, dirs: LogDirs) -> dict[int, set[int]]:
        """Partition → dense brokers that it has to leave."""
        gone: dict[int, set[int]] = {}
        for _, p, broker, path in self._each(replicas, dirs):
            if not path:
                gone.setdefault(p, set()).add(broker)
        return gone

    def log_dirs(
        self, layout: Layout, dirs: LogDirs, replicas: StoredReplicas
    ) -> dict[int, tuple[str, ...]]:
        """Partition → log dirs, aligned with its target."""
        paths_by_partition: dict[int, list[str]] = {}
        for _, p, broker, path in self._each(replicas, dirs):
            if path:
                row = layout.rows[p][layout.rows[p] != NONE].tolist()
                paths_by_partition.setdefault(p, [ANY_LOG_DIR] * len(row))[row.index(broker)] = path
        return {p: tuple(paths) for p, paths in paths_by_partition.items()}

    def within(
        self, arrays: ClusterArrays, dirs: LogDirs, replicas: StoredReplicas
    ) -> WithinBrokers:
        """The copies inside brokers."""
        size_bytes: Counter[BrokerId] = Counter()
        for r, _, broker, path in self._each(replicas, dirs):
            if path:
                size_bytes[int(arrays.brokers.ids[broker])] += int(replicas.size_bytes[r])
        kept = sum(1 for path in self.path if path)
        return WithinBrokers(kept, size_bytes, size_bytes.total())

    def by_partition(
        self, replicas: StoredReplicas, dirs: LogDirs
    ) -> dict[int, list[tuple[int, str, str]]]:
        """Partition → dense broker, old and new log dir of each of its replicas."""
        places_by_partition: dict[int, list[tuple[int, str, str]]] = {}
        for r, p, broker, path in self._each(replicas, dirs):
            places_by_partition.setdefault(p, []).append(
                (broker, dirs.paths[replicas.log_dir[r]], path)
            )
        return places_by_partition


def _into_other_dirs(
    arrays: ClusterArrays,
    dirs: LogDirs,
    leaving: Mask,
    replicas: StoredReplicas,
    evacuated: Ints,
) -> _Placed:
    """Pack the replicas that leave into the other log dirs of their brokers."""
    paths: dict[int, str] = {}
    overflow = 0
    of_broker = dirs.broker[replicas.log_dir[evacuated]]
    size = np.maximum(replicas.size_bytes, arrays.size_bytes[replicas.partition])
    for b in np.unique(of_broker).tolist():
        mine = evacuated[of_broker == b]
        mine = mine[np.lexsort((replicas.partition[mine], -size[mine]))]
        headrooms = _headrooms(arrays, dirs, leaving, b)
        sizes = size[mine].tolist()
        chosen = max(
            (_pack(sizes, list(headrooms.values()), tight) for tight in (False, True)),
            key=lambda packing: sum(
                s for s, place in zip(sizes, packing, strict=True) if place >= 0
            ),
        )
        names = [*headrooms, ""]
        paths |= {int(r): names[place] for r, place in zip(mine, chosen, strict=True)}
        least = np.minimum(replicas.size_bytes, arrays.size_bytes[replicas.partition])[mine]
        overflow += max(0, int(least.sum()) - sum(headrooms.values()))
    return _Placed(evacuated, tuple(paths[int(r)] for r in evacuated), overflow)


def _headrooms(arrays: ClusterArrays, dirs: LogDirs, leaving: Mask, broker: int) -> dict[str, int]:
    """Headroom of each volume of a broker that has a remaining log dir; the key is the first such
    log dir.
    """
    mine = dirs.broker == broker
    gone = {dirs.paths[d] for d in np.flatnonzero(mine & leaving).tolist()}
    volumes = arrays.brokers.volume_paths[broker] if arrays.brokers.volume_paths else ()
    if not volumes:  # it does not report sizes
        there = np.flatnonzero(mine & ~leaving & dirs.takes).tolist()
        return {dirs.paths[d]: UNLIMITED for d in there}
    headrooms = arrays.brokers.headrooms[broker].tolist()
    headroom_by_path = {}
    for number, paths in enumerate(volumes):
        stays = [path for path in paths if path not in gone]
        if stays:
            headroom_by_path[stays[0]] = int(headrooms[number])
    return headroom_by_path


def _pack(sizes: list[int], headrooms: list[int], tight: bool) -> list[int]:
    """The volume of each replica, largest first: worst fit, or best fit if ``tight``; -1 = none."""
    left, places = list(headrooms), []
    for size in sizes:
        fitting = [number for number, headroom in enumerate(left) if headroom >= size]
        if not fitting:
            places.append(-1)
            continue
        best = min(fitting, key=lambda n: (left[n] if tight else -left[n], n))
        left[best] -= size
        places.append(best)
    return places


def _without_takers(arrays: ClusterArrays, dirs: LogDirs, leaving: Mask) -> ClusterArrays:
    """The cluster in which brokers with a log dir to empty receive nothing: such a broker could put
    a copy into that log dir.
    """
    takes = arrays.brokers.takes.copy()
    takes[np.unique(dirs.broker[leaving])] = False
    return replace(arrays, brokers=replace(arrays.brokers, takes=takes))


def _off_the_broker(
    layout: Layout, request: ReassignmentRequest, gone: dict[int, set[int]]
) -> None:
    """Move replicas to other brokers, spread as evenly as possible."""
    arrays = layout.arrays
    tree = tree_of(arrays, arrays.brokers.live, request)
    placer = Placer(layout, tree, capacities(arrays, arrays.brokers.live, request.weights))
    for p in largest_first(layout, np.array(sorted(gone), np.int64)):
        if not placer.replace(p, gone[p]):
            left = brokers_text(sorted(int(arrays.brokers.ids[b]) for b in gone[p]))
            raise_if(
                [
                    f"{arrays.partition(p)} finds no room in another log dir of {left}, and no "
                    "broker without a log dir to be emptied has room for it."
                ]
            )


def _causes(layout: Layout, dirs: LogDirs, replicas: StoredReplicas, placed: _Placed) -> MoveCauses:
    places, ids = placed.by_partition(replicas, dirs), layout.arrays.brokers.ids
    return each_by_itself(
        lambda p: [
            MoveCause(CauseCode.LOG_DIR_EMPTIED, int(ids[broker]), name=old, takes_name=new)
            for broker, old, new in places[p]
        ]
    )
