"""Explain a plan, and why alternatives were not chosen, from its files and its snapshot alone.

Nothing is planned again, unless prices of targets are asked for. Each alternative broker of a
replica is checked by the planner's rules: racks, disks, exclusions, and the bands in the plan's
summary.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.actions import Action, Trait
from rehome.domain.array_types import NONE, Floats, Mask, Rows
from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.plan.figures import TargetPrice
from rehome.domain.plan.infeasible import Subject, SubjectKind
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest, spread_tolerance
from rehome.domain.resources import LED, PLACED, RATES, Resource
from rehome.errors import InvalidRequestError
from rehome.planning.explain.explanation import (
    BrokerAsTarget,
    BrokerExplained,
    CopyExplained,
    PartitionExplained,
    ReplicaExplained,
    Verdict,
)
from rehome.planning.explain.why_unmoved import Stays
from rehome.planning.limits.apply_limits import groups, loads_of
from rehome.planning.limits.destinations import with_limits
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.model.resource_loads import capacities, partition_weight
from rehome.planning.model.scope import partitions_in_scope, without_excluded
from rehome.planning.model.topic_bands import TopicBands, topic_bands
from rehome.planning.result.outcome import tree_of

Prices = tuple[TargetPrice, ...]


class Explainer:
    """Explains one plan.

    :param snapshot: the one the plan was made on.
    :raises InvalidRequestError: the snapshot is another one.
    """

    def __init__(self, snapshot: Snapshot, request: ReassignmentRequest, plan: Plan) -> None:
        if snapshot.name != plan.summary.snapshot:
            problem = f"The plan was made on {plan.summary.snapshot}, not on {snapshot.name}."
            raise InvalidRequestError([problem])
        self._request, self._plan, self._snapshot = request, plan, snapshot
        self._arrays = without_excluded(
            with_limits(
                ClusterArrays.from_snapshot(
                    snapshot,
                    min_free_disk_fraction=plan.summary.min_free_disk_fraction,
                    caps=request.caps,
                ),
                request,
            ),
            request,
        )
        self._index = self._arrays.brokers.index()
        self._moves = {move.partition: move for move in plan.moves}

    def partition(self, name: TopicPartition) -> PartitionExplained:
        """Why this partition moves as it does, or stays.

        :raises InvalidRequestError: the snapshot has no such partition.
        """
        p = self._arrays.partition_index().get(name)
        if p is None:
            raise InvalidRequestError([f"Unknown partition {name}."])
        move = self._moves.get(name)
        replicas = self._arrays.broker_ids(self._arrays.rows[p])
        leader = int(self._arrays.leader[p])
        source = int(self._arrays.brokers.ids[leader]) if leader != NONE else replicas[0]
        added = move.adding if move else ()
        return PartitionExplained(
            partition=name,
            size_bytes=int(self._arrays.size_bytes[p]),
            replicas=replicas,
            move=move,
            barred="" if move else self._stays.why(p),
            copies=tuple(
                CopyExplained(target, source, self._choices(p, move, target))
                for target in added
                if move and not self._named_in_request(move, target)
            ),
            replica_explanations=tuple(self._explain_held(p, move, broker) for broker in replicas),
        )

    def _named_in_request(self, move: Move, target: BrokerId) -> bool:
        """Whether the request determines the target (a replacement), so that there was no
        choice.
        """
        old = dict(zip(move.target, move.current, strict=False)).get(target, -1)
        return self._request.replacements.get(old) == target

    def prices(
        self, planned_again: Callable[[Snapshot, ReassignmentRequest, float], Prices]
    ) -> Prices:
        """What each target costs: as the plan states it, or planned again.

        :raises InvalidRequestError: the cluster contradicts the request.
        """
        summary = self._plan.summary
        if summary.prices or self._request.action not in (Action.REBALANCE, Action.EXPAND):
            return summary.prices
        return planned_again(self._snapshot, self._request, summary.min_free_disk_fraction)

    def broker(self, broker: BrokerId) -> BrokerExplained:
        """Explain a broker's part in the plan.

        :raises InvalidRequestError: the snapshot has no such broker.
        """
        if broker not in self._index:
            raise InvalidRequestError([f"Unknown broker {broker}."])
        b, summary = self._index[broker], self._plan.summary
        path = self._arrays.brokers.rack_paths[b]
        about = {Subject.of_broker(broker)} | {
            Subject(SubjectKind.RACK, f"/{'/'.join(path[: n + 1])}") for n in range(len(path))
        }
        touched = (m for m in self._moves.values() if broker in {*m.adding, *m.removing})
        moves = sorted(touched, key=lambda move: (-move.size_bytes, move.partition))
        return BrokerExplained(
            broker=broker,
            loads=tuple(
                (
                    Resource(item.resource),
                    item.before[b],
                    item.after[b],
                    item.low[b] if item.low else None,
                    item.high[b] if item.high else None,
                )
                for item in summary.resources
                if item.known
            ),
            gives=tuple(move for move in moves if broker in move.removing),
            receives=tuple(move for move in moves if broker in move.adding),
            infeasible=tuple(
                item
                for item in summary.infeasible
                if item.subject in about
                or (
                    item.subject.kind is SubjectKind.MIN_LEADERS
                    and item.subject.broker in (broker, None)
                )
            ),
        )

    def unmeasured_resources(self) -> tuple[Resource, ...]:
        """Resources with bands whose load per partition is not in the snapshot: the plan had it
        from a load history that is not available here. They are ignored in all checks.
        """
        return tuple(resource for resource in self._banded if not self._is_measured(resource))

    # ---------------------------------------------------------------- what the rules say

    @cached_property
    def _banded(self) -> dict[Resource, tuple[Floats, Floats, Floats]]:
        """Resource → (B,) after, low, high."""
        return {
            Resource(item.resource): (
                np.array(item.after, float),
                np.array(item.low, float),
                np.array(item.high, float),
            )
            for item in self._plan.summary.resources
            if item.low
        }

    def _is_measured(self, resource: Resource) -> bool:
        return resource not in RATES or bool(partition_weight(self._arrays, resource).any())

    @cached_property
    def _judged(self) -> tuple[Resource, ...]:
        return tuple(r for r in self._banded if r not in LED and self._is_measured(r))

    @cached_property
    def _hosts(self) -> Mask:
        arrays, request = self._arrays, self._request
        hosts: Mask = arrays.brokers.live & ~np.isin(arrays.brokers.ids, request.emptied)
        return hosts

    @cached_property
    def _tree(self) -> RackTree:
        widest = max((len(move.target) for move in self._moves.values()), default=0)
        return tree_of(self._arrays, self._hosts, self._request, widest)

    @cached_property
    def _stays(self) -> Stays:
        return Stays(self._arrays, self._request, self._plan, self._tree)

    @cached_property
    def _incoming(self) -> Floats:
        return np.array([load.bytes_in for load in self._plan.summary.brokers], float)

    def _weight(self, resource: Resource, p: int) -> float:
        return float(partition_weight(self._arrays, resource)[p])

    def _explain_held(self, p: int, move: Move | None, broker: BrokerId) -> ReplicaExplained:
        b, leaves = self._index[broker], bool(move and broker in move.removing)
        load = []
        for resource in self._judged:
            after, low, high = (side[b] for side in self._banded[resource])
            with_it = after + (self._weight(resource, p) if leaves else 0)
            load.append((resource, int(with_it), int(low), int(high)))
        return ReplicaExplained(broker, leaves, tuple(load))

    def _choices(self, p: int, move: Move, target: BrokerId) -> tuple[BrokerAsTarget, ...]:
        row = [self._index[broker] for broker in move.target]
        place, brokers = row.index(self._index[target]), self._arrays.brokers
        rows: Rows = np.tile(np.array(row, np.int32), (len(brokers.ids), 1))
        rows[:, place] = np.arange(len(brokers.ids))
        uneven = self._tree.of(p).violations(rows)
        size = self._arrays.size_bytes[p]
        excess, worst = self._excess(p, self._index[target])
        against = (
            (Verdict.CHOSEN, brokers.ids == target),
            (Verdict.HOLDS_ONE, np.isin(brokers.ids, [*move.target, *move.current])),
            (Verdict.GONE, ~self._hosts),
            (Verdict.TAKES_NONE, ~brokers.takes),
            (Verdict.SET, ~self._of_its_set(p)),
            (Verdict.CAP, self._above_caps(p, self._index[target])),
            (Verdict.RACKS, uneven > uneven[self._index[target]]),
            (Verdict.DISK, self._incoming + size > brokers.headroom_bytes),
            (Verdict.DISK, size > brokers.headrooms.max(axis=1)),
            (Verdict.OUTSIDE, excess > excess[self._index[target]] + 1e-12),
            (Verdict.TOPIC, self._crowded_brokers(p, self._index[target])),
        )
        choices = []
        for b, broker in enumerate(brokers.ids.tolist()):
            verdict = next((v for v, mask in against if mask[b]), Verdict.POSSIBLE)
            judged = verdict in (Verdict.OUTSIDE, Verdict.CHOSEN)
            resource = worst[b] if judged and excess[b] > 0 else None
            choices.append(
                BrokerAsTarget(broker, verdict, float(excess[b]) if judged else 0.0, resource)
            )
        order = list(Verdict)
        best_first = (order[0], *order[:0:-1])
        choices.sort(key=lambda c: (best_first.index(c.verdict), c.excess, c.broker))
        return tuple(choices)

    def _of_its_set(self, p: int) -> Mask:
        """(B,) brokers that may hold the partition by the broker set of its topic."""
        limits = self._arrays.limits
        if limits is None:
            return np.ones(len(self._index), bool)
        may: Mask = limits.allowed[groups(self._arrays)[p]]
        return may

    def _above_caps(self, p: int, target: int) -> Mask:
        """(B,) brokers that would be above a cap if they got the replica that goes to the
        target.
        """
        above, limits = np.zeros(len(self._index), bool), self._arrays.limits
        if limits is not None:
            for k in limits.counted.tolist():
                weight = self._weight(PLACED[k], p)
                loads = loads_of(self._arrays, self._rows_after, PLACED[k])
                loads[target] -= weight
                above |= (loads + weight > limits.placed[k]) & (weight > 0)
        return above

    @cached_property
    def _spread_bands(self) -> TopicBands | None:
        arrays, request, live = self._arrays, self._request, self._arrays.brokers.live
        if not request.has(Trait.SPREADS_TOPICS):
            return None
        limited = request.action is Action.REBALANCE and bool(request.brokers)
        request_brokers = np.isin(arrays.brokers.ids, request.brokers)
        part = live & request_brokers if limited else live
        if request.action is Action.DRAIN:
            part = live | request_brokers
        return topic_bands(
            Layout(arrays),
            self._tree,
            partitions=partitions_in_scope(arrays, request) & ~arrays.in_flight,
            brokers=part,
            capacity=capacities(arrays, self._hosts, request.weights) * self._hosts,
            tolerance=spread_tolerance(request),
        )

    @cached_property
    def _rows_after(self) -> Rows:
        """(P, R) the rows after the plan."""
        layout = Layout(self._arrays, max((len(m.target) for m in self._moves.values()), default=0))
        index = self._arrays.partition_index()
        for name, move in self._moves.items():
            row = [self._index[broker] for broker in move.target]
            layout.rows[index[name]] = row + [NONE] * (layout.rows.shape[1] - len(row))
        return layout.rows

    def _crowded_brokers(self, p: int, target: int) -> Mask:
        """(B,) brokers that would be above the topic's band if they got the replica that goes to
        the target.
        """
        spread_bands = self._spread_bands
        if spread_bands is None:
            return np.zeros(len(self._index), bool)
        row = int(spread_bands.row[p])
        counts = np.bincount(
            self._rows_after[(spread_bands.row == row)].ravel() + 1, minlength=len(self._index) + 1
        )[1:]
        counts[target] -= 1
        crowded: Mask = counts + 1 > spread_bands.high[row]
        return crowded

    def _excess(self, p: int, target: int) -> tuple[Floats, list[Resource]]:
        """(B,) added excess of each broker if it got the replica; and the resource with the most of
        it.
        """
        count = len(self._arrays.brokers.ids)
        added = np.zeros((max(1, len(self._judged)), count))
        for k, resource in enumerate(self._judged):
            after, low, high = self._banded[resource]
            weight, without = self._weight(resource, p), after.copy()
            without[target] -= weight
            share = np.maximum((low + high) / 2, 1.0)
            off, on = (
                np.maximum(np.maximum(load - high, low - load), 0) / share
                for load in (without, without + weight)
            )
            added[k] = on - off
        most = added.argmax(axis=0)
        names = [self._judged[k] for k in most] if self._judged else [Resource.BYTES] * count
        return added.sum(axis=0), names
