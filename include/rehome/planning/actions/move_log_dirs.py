"""The action move_log_dirs: balance the log dirs within each broker.

Each broker is treated as a small cluster: its log dirs are the brokers, and its replicas are the
partitions. The search is that of a rebalance. Nothing crosses the network.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.array_types import NONE, Ints, Mask
from rehome.domain.kafka import ANY_LOG_DIR, BrokerId
from rehome.domain.plan.causes.move_cause import CauseCode, HeldLoad, MoveCause
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.resources import Resource, placed_resources
from rehome.planning.actions.exhaustive_search import enumerate_layouts, is_enumerable
from rehome.planning.effort.work import SearchWork, budget_of_work
from rehome.planning.model.arrays import BrokerArrays, ClusterArrays
from rehome.planning.model.layout import Layout
from rehome.planning.model.load_bands import LoadBands
from rehome.planning.model.log_dir_arrays import LogDirs, StoredReplicas, stored_log_dirs
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.resource_loads import capacities
from rehome.planning.model.scope import brokers_named, brokers_with, partitions_in_scope, raise_if
from rehome.planning.placement.movable import free_to_move, notes_of
from rehome.planning.rebalance.budget_cut import budget_of, keep_within_budget
from rehome.planning.rebalance.fixed_point import plan_on
from rehome.planning.rebalance.problem import problem_of
from rehome.planning.rebalance.solver import rebalance
from rehome.planning.result.lower_bounds import asked_bound, rebalance_bound
from rehome.planning.result.outcome import Outcome, WithinBrokers, each_by_itself, tree_of
from rehome.planning.search.state import Problem

BYTES_ONLY: dict[str, float | None] = {
    "replicas": None,
    "bytes_in": None,
    "leaders": None,
    "bytes_out": None,
}


def plan_log_dirs(
    snapshot: Snapshot,
    arrays: ClusterArrays,
    request: ReassignmentRequest,
    *,
    min_free_disk_fraction: float,
) -> Outcome:
    """Bring every log dir within tolerance of its share of the broker's bytes.

    :raises InvalidRequestError: a named broker is unknown or not live.
    """
    dirs, replicas = stored_log_dirs(
        snapshot, arrays, min_free_disk_fraction=min_free_disk_fraction, caps=request.caps
    )
    scope, notes = free_to_move(arrays, partitions_in_scope(arrays, request))
    movable = scope[replicas.partition] & ~replicas.moving & replicas.sized
    disks = _LogDirBalance(dirs, replicas, movable, request)
    disks.balance(_brokers(arrays, request))
    under_way = replicas.moving & disks.takes_part[replicas.log_dir] & scope[replicas.partition]
    return _outcome(
        arrays,
        request,
        disks,
        (
            *notes,
            *notes_of(
                arrays,
                np.unique(replicas.partition[under_way]),
                Obstacle.LOG_DIR_MOVE_IN_FLIGHT,
            ),
            *disks.missed_notes(arrays),
        ),
    )


def _brokers(arrays: ClusterArrays, request: ReassignmentRequest) -> Ints:
    """Dense indexes of the brokers whose disks are balanced."""
    live = arrays.brokers.live
    request_brokers = brokers_named(arrays, request) if request.brokers else live
    raise_if(
        [f"Broker {broker} is not live." for broker in arrays.brokers.ids[request_brokers & ~live]]
    )
    left_out = brokers_with(arrays.brokers, request.exclude_brokers)
    return np.flatnonzero(request_brokers & ~left_out)


def within_brokers(outcome: Outcome) -> WithinBrokers:
    """Bytes that a plan copies between log dirs of one broker. If the request named the log dirs,
    the bound equals these bytes.
    """
    if outcome.within is not None:
        return outcome.within
    layout, replicas = outcome.layout, 0
    size_bytes: Counter[BrokerId] = Counter()
    for p, paths in outcome.log_dirs.items():
        stays = set(layout.arrays.broker_ids(layout.origin[p]))
        for broker, path in zip(layout.arrays.broker_ids(layout.rows[p]), paths, strict=True):
            if path != ANY_LOG_DIR and broker in stays:
                replicas += 1
                size_bytes[broker] += int(layout.size[p])
    return WithinBrokers(replicas, size_bytes, size_bytes.total())


class _LogDirBalance:
    """All log dirs as the brokers of one cluster, balanced one real broker at a time.

    :ivar layout: replica (as partition) → log dir (as broker), as planned.
    """

    def __init__(
        self, dirs: LogDirs, replicas: StoredReplicas, movable: Mask, request: ReassignmentRequest
    ) -> None:
        self.dirs, self.replicas, self.movable = dirs, replicas, movable
        self._request = replace(request, tolerances=BYTES_ONLY, weights={})
        everything = np.arange(len(dirs.paths)), np.arange(len(replicas.log_dir))
        self.layout = Layout(_as_cluster(dirs, replicas, *everything))
        self.before = self.layout.load.copy()
        shape = len(placed_resources(BYTES_ONLY)), len(dirs.paths)
        self.share, self.fair = np.tile(self.before.astype(float), (2, 1))
        self.low, self.high = np.zeros(shape), np.full(shape, float("inf"))
        self.takes_part = np.zeros(len(dirs.paths), bool)
        self.cut = False

    def balance(self, brokers: Ints) -> None:
        """Balance these brokers, each by itself, and cut the total to the budget."""
        ends = np.searchsorted(self.dirs.broker, [brokers, brokers + 1])
        for first, end in ends.T.tolist():
            if end - first > 1:
                self._balance_one(np.arange(first, end))
        self.cut = keep_within_budget(self._problem(), budget_of(self._request))

    def _balance_one(self, mine: Ints) -> None:
        ends = np.searchsorted(self.replicas.log_dir, [mine[0], mine[-1] + 1])
        replicas = np.arange(*ends)
        if not self.movable[replicas].any():
            return
        arrays, movable = (
            _as_cluster(self.dirs, self.replicas, mine, replicas),
            self.movable[replicas],
        )
        work = SearchWork(
            budget_of_work(len(self.replicas.log_dir)) * len(replicas) / len(self.movable)
        )
        problem = _solve(arrays, movable, self._request, work)
        layout = problem.layout

        def again(then: ClusterArrays) -> Layout:
            return _solve(then, movable, self._request, work).layout

        plan_on(layout, again, lambda: False, work)
        self.layout.rows[replicas] = layout.rows + mine[0]
        targets = problem.targets
        self.share[mine], self.fair[mine] = targets.share[0], targets.fair[0]
        self.low[0, mine], self.high[0, mine] = targets.low[0], targets.high[0]
        self.takes_part[mine] = True

    def _problem(self) -> Problem:
        """The problem with the bands of all log dirs; moves stay within a broker."""
        self.layout.refresh()
        return Problem(
            layout=self.layout,
            tree=_tree(self.layout.arrays, self._request.seed),
            targets=self._targets(),
            weights=np.stack(
                [self.replicas.size_bytes.astype(float)] * len(placed_resources(BYTES_ONLY))
            ),
            partitions=self.movable,
            gives=self.takes_part,
            takes=self.takes_part & self.dirs.takes,
            leaving=np.zeros(len(self.dirs.paths), bool),
            overhead_bytes=float(self._request.move_overhead_bytes),
        )

    def _targets(self) -> LoadBands:
        share = np.stack([self.share] * len(placed_resources(BYTES_ONLY)))
        return LoadBands(share, self.low, self.high, self.dirs.broker, share, ())

    def lower_bound_bytes(self) -> int:
        """Lower bound for plans that meet the bands as well as this one."""
        tree = _tree(self.layout.arrays, self._request.seed)
        return rebalance_bound(self.layout, tree, self._targets(), self.movable, self.before)

    def asked_bound_bytes(self) -> int | None:
        """The same for plans that meet all bands; None if no budget has cut this plan."""
        if not self.cut:
            return None
        tree = _tree(self.layout.arrays, self._request.seed)
        return asked_bound(self.layout, tree, self._targets(), self.movable, self.before)

    def missed_notes(self, arrays: ClusterArrays) -> tuple[Infeasible, ...]:
        """Each log dir that ends off its fair share by more than the tolerance, with the
        obstacle.
        """
        load, fair, tolerance = self.layout.load, self.fair, self._request.tolerance
        low, high = np.floor(fair * (1 - tolerance)), np.ceil(fair * (1 + tolerance))
        off = self.takes_part & ((load < low) | (load > high))
        return tuple(
            self._note(arrays, d, load[d], float(high[d] if load[d] > high[d] else low[d]))
            for d in np.flatnonzero(off).tolist()
        )

    def _note(self, arrays: ClusterArrays, d: int, load: float, share: float) -> Infeasible:
        """Note on a log dir that ends off its share: above it if ``load`` is above ``share``."""
        broker = int(arrays.brokers.ids[self.dirs.broker[d]])
        note = partial(
            Infeasible,
            Subject(SubjectKind.LOG_DIR, self.dirs.paths[d], broker),
            wanted=share,
            nearest=float(load),
            resource=Resource.BYTES,
        )
        if self.cut:
            return note(obstacle=Obstacle.BUDGET)
        if load < share:
            if not self.dirs.takes[d]:
                return note(obstacle=Obstacle.TAKES_NO_REPLICAS)
            if self.before[d] + self.dirs.headroom_bytes[d] < self.low_of(d):
                return note(obstacle=Obstacle.DISK_FULL)
            return note(obstacle=Obstacle.NO_MOVE)
        in_dir = self.layout.rows[:, 0] == d
        size = self.replicas.size_bytes
        stays = int(size[in_dir & ~self.movable].sum())
        if stays > self.high[0, d]:
            return note(obstacle=Obstacle.FIXED_REPLICAS, amount=stays)
        largest = int(size[in_dir].max(initial=0))
        if largest > self.high[0, d]:
            return note(obstacle=Obstacle.LARGE_PARTITION, amount=largest)
        return note(obstacle=Obstacle.NO_MOVE)

    def low_of(self, log_dir: int) -> float:
        """The lower end of the tolerance around its fair share."""
        return float(self.fair[log_dir] * (1 - self._request.tolerance))


def _as_cluster(
    dirs: LogDirs, replicas: StoredReplicas, some: Ints, indexes: Ints
) -> ClusterArrays:
    """Log dirs as brokers without racks, the replicas in them as partitions with one replica."""
    log_dir = (replicas.log_dir[indexes] - (some[0] if len(some) else 0)).astype(np.int32)
    nothing = np.zeros(len(indexes), bool)
    return ClusterArrays(
        brokers=BrokerArrays(
            ids=np.arange(len(some)),
            live=np.ones(len(some), bool),
            takes=dirs.takes[some],
            rack_paths=((),) * len(some),
            capacity_bytes=dirs.total_bytes[some],
            headroom_bytes=dirs.headroom_bytes[some],
        ),
        topics=("",),
        internal=np.zeros(1, bool),
        topic_of=np.zeros(len(indexes), np.int64),
        partition_of=np.arange(len(indexes)),
        rows=log_dir[:, None],
        log_dirs=np.full((len(indexes), 1), NONE, np.int32),
        log_dir_names=(),
        size_bytes=replicas.size_bytes[indexes],
        leader=log_dir,
        in_flight=nothing,
    )


def _solve(
    arrays: ClusterArrays, movable: Mask, request: ReassignmentRequest, work: SearchWork
) -> Problem:
    """Set up and solve the problem of one broker's log dirs.

    :param movable: (P,) replicas that may move.
    """
    everyone = np.ones(len(arrays.brokers.ids), bool)
    capacity = capacities(arrays, everyone, {})
    problem = problem_of(
        Layout(arrays),
        _tree(arrays, request.seed),
        request,
        partitions=movable,
        brokers=everyone,
        capacity=capacity,
        whole=False,
    )
    problem = replace(problem, work=work)
    if is_enumerable(problem):
        enumerate_layouts(problem)
    else:
        rebalance(problem, capacity, part_of_a_cluster=True)
    return problem


def _tree(arrays: ClusterArrays, seed: int) -> RackTree:
    order = np.random.default_rng(seed).permutation(len(arrays.brokers.ids))
    return RackTree(arrays.brokers.rack_paths, arrays.brokers.live, 1, order)


def _outcome(
    arrays: ClusterArrays,
    request: ReassignmentRequest,
    disks: _LogDirBalance,
    infeasible: tuple[Infeasible, ...],
) -> Outcome:
    """The moves of single replicas as moves of partitions that keep their brokers."""
    dirs, replicas, ids = disks.dirs, disks.replicas, arrays.brokers.ids
    log_dirs: dict[int, list[str]] = {}
    causes: dict[int, list[MoveCause]] = {}
    size_bytes: Counter[BrokerId] = Counter()
    for n in disks.layout.changed_partitions().tolist():
        p, source, target = int(replicas.partition[n]), *_way(disks, n)
        broker = int(dirs.broker[target])
        place = arrays.rows[p].tolist().index(broker)
        dir_names = log_dirs.setdefault(p, [ANY_LOG_DIR] * int(arrays.replication_factor[p]))
        dir_names[place] = dirs.paths[target]
        size_bytes[int(ids[broker])] += int(replicas.size_bytes[n])
        load, takes_held = (
            HeldLoad(Resource.BYTES, float(disks.before[at]), float(disks.share[at]))
            for at in (source, target)
        )
        causes.setdefault(p, []).append(
            MoveCause(
                CauseCode.LOG_DIR_OVER_SHARE,
                int(ids[broker]),
                name=dirs.paths[source],
                takes_name=dirs.paths[target],
                held=load,
                takes_held=takes_held,
            )
        )
    tree = tree_of(arrays, arrays.brokers.live, request)
    return Outcome(
        layout=Layout(arrays),
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=0,
        asked_bound_bytes=disks.asked_bound_bytes(),
        reason=MoveReason.LOG_DIR,
        causes=each_by_itself(causes.__getitem__),
        infeasible=infeasible,
        log_dirs={p: tuple(paths) for p, paths in log_dirs.items()},
        within=WithinBrokers(
            len(disks.layout.changed_partitions()), size_bytes, disks.lower_bound_bytes()
        ),
    )


def _way(disks: _LogDirBalance, replica: int) -> tuple[int, int]:
    """The log dir of a replica now, and after the plan."""
    return int(disks.replicas.log_dir[replica]), int(disks.layout.rows[replica, 0])
