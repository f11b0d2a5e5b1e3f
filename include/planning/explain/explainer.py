"""Why a plan does what it does, and not something else: from its files and its snapshot alone.

Nothing is planned again. Each broker that could hold a replica instead is judged by the rules
the planner goes by: racks, disks, exclusions, and the bands in the plan's summary.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from include.cluster.snapshot.model import Snapshot
from include.domain.array_types import NONE, Floats, Mask, Rows
from include.domain.kafka import BrokerId, TopicPartition
from include.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from include.domain.plan.infeasible_text import BUDGET_SPENT, obstacle_text
from include.domain.plan.move import Move
from include.domain.plan.plan import Plan
from include.domain.request.request import (
    ABOUT_LEADERS,
    SPREADS_TOPICS,
    USED_BY,
    Action,
    ReassignmentRequest,
    spread_tolerance,
)
from include.domain.resources import LED, PLACED, RATES, Resource
from include.errors import InvalidRequestError
from include.planning.limits.limited import groups, limited, loads_of
from include.planning.model.arrays import ClusterArrays
from include.planning.model.layout import Layout
from include.planning.model.rack_tree import RackTree
from include.planning.model.resource_loads import capacities, partition_weight
from include.planning.model.scope import has_source, partitions_in_scope, without_excluded
from include.planning.model.topic_bands import TopicBands, topic_bands
from include.planning.result.outcome import tree_of

_BY_LIMITS = (Obstacle.OUTSIDE_SET, Obstacle.SET_TOO_SMALL, Obstacle.CAPS_KEEP_UNEVEN)


class Verdict(enum.StrEnum):
    """What speaks against a broker as the place of a replica."""

    CHOSEN = "chosen"
    HOLDS_ONE = "holds a replica of the partition already"
    GONE = "is not live, or is being emptied"
    UNWILLING = "takes no new replicas: it is excluded, or its log dirs are offline or cordoned"
    SET = "is not one of the brokers that may hold the topic, by its broker set"
    CAP = "would be above its cap"
    RACKS = "would spread the partition less evenly over the racks"
    DISK = "has no room on its disks"
    OUTSIDE = "would end further outside its band"
    TOPIC = "would hold more replicas of the topic than its share and the tolerance allow"
    POSSIBLE = "would have done as well"


@dataclass(frozen=True)
class BrokerAsTarget:
    """One broker as the place of a replica.

    :param excess: how far it would be outside its bands with the replica, in shares, beyond
        where it ends in the plan.
    :param resource: the resource in which that is most; None where it is in none.
    """

    broker: BrokerId
    verdict: Verdict
    excess: float = 0.0
    resource: Resource | None = None


@dataclass(frozen=True)
class CopyExplained:
    """One new replica of a partition: where it goes, and where else it could have gone.

    :param target: the broker that receives it; ``source``: the leader it is copied from.
    :param choices: every broker, the chosen one first, then by what speaks against it.
    """

    target: BrokerId
    source: BrokerId
    choices: tuple[BrokerAsTarget, ...]


@dataclass(frozen=True)
class ReplicaExplained:
    """A replica as it lies now: what keeping it there means for its broker.

    :param load: per resource with a band: what the broker would hold at the end of the plan if
        it kept the replica, and the band's least and most.
    :param leaves: whether the plan takes it away.
    """

    broker: BrokerId
    leaves: bool
    load: tuple[tuple[Resource, int, int, int], ...]


@dataclass(frozen=True)
class PartitionExplained:
    """A partition and what the plan makes of it.

    :param move: None where the plan leaves it as it is.
    :param barred: why the plan could not have moved it; empty where it could.
    """

    partition: TopicPartition
    size_bytes: int
    replicas: tuple[BrokerId, ...]
    move: Move | None
    barred: str
    copies: tuple[CopyExplained, ...]
    held: tuple[ReplicaExplained, ...]


@dataclass(frozen=True)
class BrokerExplained:
    """A broker before and after the plan.

    :param loads: per resource: before, after, and the band's least and most (None = no band).
    :param gives: moves that take a replica off it, largest first; ``receives`` bring one.
    :param infeasible: targets of it, or of its racks, that could not be met.
    """

    broker: BrokerId
    loads: tuple[tuple[Resource, int, int, int | None, int | None], ...]
    gives: tuple[Move, ...]
    receives: tuple[Move, ...]
    infeasible: tuple[Infeasible, ...]


class Explainer:
    """Answers for one plan.

    :param snapshot: the one the plan was made on.
    :raises InvalidRequestError: the snapshot is another one.
    """

    def __init__(self, snapshot: Snapshot, request: ReassignmentRequest, plan: Plan) -> None:
        if snapshot.name != plan.summary.snapshot:
            problem = f"The plan was made on {plan.summary.snapshot}, not on {snapshot.name}."
            raise InvalidRequestError([problem])
        self._request, self._plan = request, plan
        self._arrays = without_excluded(
            limited(
                ClusterArrays.from_snapshot(
                    snapshot,
                    min_free_disk_fraction=plan.summary.min_free_disk_fraction,
                    caps=request.caps,
                ),
                request.caps,
                request.broker_sets,
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
            barred="" if move else self._barred(p),
            copies=tuple(
                CopyExplained(target, source, self._choices(p, move, target))
                for target in added
                if move and not self._named_in_request(move, target)
            ),
            held=tuple(self._held(p, move, broker) for broker in replicas),
        )

    def _named_in_request(self, move: Move, target: BrokerId) -> bool:
        """Whether a replacement takes the place it is for: then there was nothing to choose."""
        old = dict(zip(move.target, move.current, strict=False)).get(target, -1)
        return self._request.replacements.get(old) == target

    def broker(self, broker: BrokerId) -> BrokerExplained:
        """What the plan makes of a broker.

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

    def unmeasured(self) -> tuple[Resource, ...]:
        """Resources with bands whose load per partition the snapshot does not have: a plan may
        have them from a history that is not at hand. They are left out of every judgement.
        """
        return tuple(resource for resource in self._banded if not self._measured(resource))

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

    def _measured(self, resource: Resource) -> bool:
        return resource not in RATES or bool(partition_weight(self._arrays, resource).any())

    @cached_property
    def _judged(self) -> tuple[Resource, ...]:
        return tuple(r for r in self._banded if r not in LED and self._measured(r))

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
    def _incoming(self) -> Floats:
        return np.array([load.bytes_in for load in self._plan.summary.brokers], float)

    def _barred(self, p: int) -> str:
        arrays = self._arrays
        if arrays.in_flight[p]:
            return "it was being reassigned already"
        if self._unpaid(p):
            return BUDGET_SPENT
        if not has_source(arrays, np.array([p]))[0]:
            return "it had no live leader to copy from"
        harmed = arrays.offline is not None and bool(arrays.offline[p].any())
        if self._request.action is Action.FIX_OFFLINE_REPLICAS:
            if not harmed:
                return "none of its replicas was offline"
        elif harmed and self._request.action not in ABOUT_LEADERS:
            return "one of its replicas was on a broker that was not live, or in a failed log dir"
        scoped = self._request.action in USED_BY["topics"]
        if scoped and not partitions_in_scope(arrays, self._request)[p]:
            return "its topic is not in the scope of the request, or is excluded"
        return self._limited_otherwise(p) or self._led_otherwise(p) or self._evacuated_otherwise(p)

    def _limited_otherwise(self, p: int) -> str:
        """What caps or broker sets kept the partition from; "" = nothing."""
        named = str(self._arrays.partition(p))
        for item in self._plan.summary.infeasible:
            if item.obstacle in _BY_LIMITS and item.subject.name == named:
                return obstacle_text(item)
        return ""

    def _led_otherwise(self, p: int) -> str:
        """Why an action that is about leaders leaves a partition; "" = the action is another."""
        named = str(self._arrays.partition(p))
        for item in self._plan.summary.infeasible:
            if self._request.action in ABOUT_LEADERS and item.subject.name == named:
                return obstacle_text(item)
        if self._request.action is Action.DEMOTE:
            return "no broker that is demoted leads it, or is preferred to"
        if self._request.action is Action.ELECT_PREFERRED:
            return "its preferred leader led it already"
        return ""

    def _evacuated_otherwise(self, p: int) -> str:
        """Why an evacuation leaves a partition; "" = the action is another."""
        if self._request.action is not Action.EVACUATE_LOG_DIRS:
            return ""
        named = str(self._arrays.partition(p))
        for item in self._plan.summary.infeasible:
            if item.subject.name == named:
                return obstacle_text(item)
        return "none of its replicas lay in a log dir that is to be emptied"

    def _unpaid(self, p: int) -> bool:
        """Whether the budget leaves it in places that the request asks to change."""
        if not any(item.obstacle is Obstacle.BUDGET for item in self._plan.summary.infeasible):
            return False
        row, request = self._arrays.rows[p], self._request
        held = row[row != NONE]
        if request.action is Action.DRAIN:
            return bool(np.isin(self._arrays.brokers.ids[held], request.brokers).any())
        if request.action is Action.SET_REPLICATION_FACTOR:
            return len(held) != request.replication_factor
        if request.action is Action.FIX_OFFLINE_REPLICAS:
            return self._arrays.offline is not None and bool(self._arrays.offline[p].any())
        if request.action is Action.REPAIR_RACKS:
            return bool(self._tree.of(p).violations(row[None, :]).any())
        return False

    def _weight(self, resource: Resource, p: int) -> float:
        return float(partition_weight(self._arrays, resource)[p])

    def _held(self, p: int, move: Move | None, broker: BrokerId) -> ReplicaExplained:
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
            (Verdict.UNWILLING, ~brokers.takes),
            (Verdict.SET, ~self._of_its_set(p)),
            (Verdict.CAP, self._above_caps(p, self._index[target])),
            (Verdict.RACKS, uneven > uneven[self._index[target]]),
            (Verdict.DISK, self._incoming + size > brokers.room_bytes),
            (Verdict.DISK, size > brokers.rooms.max(axis=1)),
            (Verdict.OUTSIDE, excess > excess[self._index[target]] + 1e-12),
            (Verdict.TOPIC, self._crowded(p, self._index[target])),
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
        """(B,) brokers that would hold more than a cap with the replica that goes to the target."""
        above, limits = np.zeros(len(self._index), bool), self._arrays.limits
        if limits is not None:
            for k in limits.counted.tolist():
                weight = self._weight(PLACED[k], p)
                held = loads_of(self._arrays, self._rows_after, PLACED[k])
                held[target] -= weight
                above |= (held + weight > limits.placed[k]) & (weight > 0)
        return above

    @cached_property
    def _spread_bands(self) -> TopicBands | None:
        arrays, request, live = self._arrays, self._request, self._arrays.brokers.live
        if request.action not in SPREADS_TOPICS:
            return None
        limited = request.action is Action.REBALANCE and bool(request.brokers)
        named = np.isin(arrays.brokers.ids, request.brokers)
        part = live & named if limited else live
        if request.action is Action.DRAIN:
            part = live | named
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
        """(P, R) the rows that the plan leads to."""
        layout = Layout(self._arrays, max((len(m.target) for m in self._moves.values()), default=0))
        index = self._arrays.partition_index()
        for name, move in self._moves.items():
            row = [self._index[broker] for broker in move.target]
            layout.rows[index[name]] = row + [NONE] * (layout.rows.shape[1] - len(row))
        return layout.rows

    def _crowded(self, p: int, target: int) -> Mask:
        """(B,) brokers that would be above the band of the partition's topic with the replica that
        goes to the target.
        """
        spread_bands = self._spread_bands
        if spread_bands is None:
            return np.zeros(len(self._index), bool)
        row = int(spread_bands.row[p])
        held = np.bincount(
            self._rows_after[(spread_bands.row == row)].ravel() + 1, minlength=len(self._index) + 1
        )[1:]
        held[target] -= 1
        crowded: Mask = held + 1 > spread_bands.high[row]
        return crowded

    def _excess(self, p: int, target: int) -> tuple[Floats, list[Resource]]:
        """(B,) excess that the replica on each broker means beyond the plan without it; and in
        which resource most.
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
