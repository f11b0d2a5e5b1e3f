"""Notes that say that a cluster allows no more: each needs a cause that the gate finds by itself.

From the racks, the disks, the caps, the broker sets and what may not move, the gate computes how
little and how much each rack and each broker can hold at an even spread. A note on a rack or a
broker is proven if its fair share lies outside of that. A note that others' limits shift a share is
proven if there is such a rack or broker, or a partition that is larger than any share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rehome.domain.actions import Action
from rehome.domain.array_types import Floats, Ints, Mask
from rehome.domain.kafka import BrokerId
from rehome.domain.plan.infeasible import (
    OF_THE_CLUSTER,
    Infeasible,
    Obstacle,
    Subject,
    SubjectKind,
)
from rehome.domain.plan.infeasible_text import subject_text
from rehome.domain.resources import LED, Resource
from rehome.quality.facts.gate_input import Checked
from rehome.quality.facts.limits import CAPPED, cap_of, kept_free
from rehome.quality.facts.ragged_lists import Ragged
from rehome.quality.facts.unplannable import offline_counts, without_leader
from rehome.quality.plan.broker_table import BrokerSums
from rehome.quality.plan.limit_table import set_too_small

_ROUNDING, _UNITS = 1e-6, 2.0
"""How far figures of the planner may be off: as a fraction, and in bytes or replicas."""

_ALL = slice(None)

_NONE_WITHIN = ", no rack within"
"""What the name of a rack ends with that is about its brokers in no rack within it."""

_EVERY = -1
"""In place of the number of a set: all live brokers."""

JUDGED = OF_THE_CLUSTER | {
    *(Obstacle.FIXED_REPLICAS, Obstacle.TAKES_NO_REPLICAS, Obstacle.DISK_FULL),
    *(Obstacle.ONE_REPLICA_PER_BROKER, Obstacle.CAP),
}
"""What a note can claim as a limit, so that it needs a cause."""

_OF_ITSELF = (Obstacle.DISK_FULL, Obstacle.CAP, Obstacle.TAKES_NO_REPLICAS)


def unproven_limits(checked: Checked) -> list[str]:
    """Subjects of the notes of a rebalance or an expansion that claim a limit without a cause."""
    if checked.request.action not in (Action.REBALANCE, Action.EXPAND):
        return []
    limits = StatedLimits(checked)
    claims = [note for note in checked.plan.summary.infeasible if note.obstacle in JUDGED]
    return [subject_text(note.subject) for note in claims if not limits.prove(note)]


@dataclass(frozen=True)
class _Reach:
    """How much racks and brokers can hold. Nodes: the racks level by level, then the brokers.

    :param name: of each node: a rack's path, a broker's id.
    :param least, most: (N,) what it can hold if partitions are spread evenly.
    :param fair: (N,) its share by capacity.
    :param largest: one replica of the largest partition that may move; ``widest``: the largest fair
        share of a broker.
    """

    name: list[object]
    least: Floats
    most: Floats
    fair: Floats
    largest: float
    widest: float

    def shifts(self) -> bool:
        """Whether some node cannot have its fair share."""
        off = (self.fair > self.most + _ROUNDING) | (self.fair < self.least - _ROUNDING)
        return bool(off.any()) or self.largest > self.widest

    def is_share(self, rack: Subject, amount: float) -> bool:
        """Whether that is the rack's share. Racks within racks share what theirs has."""
        nested = rack.name.count("/") > 1 or rack.name.endswith(_NONE_WITHIN)
        if rack.name not in self.name or nested:
            return rack.name in self.name
        fair = float(self.fair[self.name.index(rack.name)])
        return fair <= _over(amount) and amount <= _over(fair)

    def too_little(self, name: object, amount: float) -> bool:
        """Whether a node cannot hold as much as is wanted."""
        return name in self.name and bool(self.most[self.name.index(name)] < _over(amount))

    def too_much(self, name: object, amount: float) -> bool:
        """Whether a node has to hold more than is wanted."""
        return name in self.name and bool(_over(self.least[self.name.index(name)]) > amount)


def _over(figure: float) -> float:
    return figure * (1 + _ROUNDING) + _UNITS


class StatedLimits:
    """Proves notes, with the gate's own figures.

    :ivar levels: (B,) number of each broker's rack on each level, then of the broker itself.
    """

    def __init__(self, checked: Checked) -> None:
        self._checked, self._partitions = checked, checked.moved.partitions
        self._sums = BrokerSums(checked)
        scope = checked.in_scope
        harmed = without_leader(checked) | (offline_counts(checked) > 0)
        self._movable: Mask = scope & ~self._partitions.in_flight & ~harmed
        self._movable &= ~set_too_small(checked)
        part = self._sums.takes_part()
        self._part = checked.live if checked.request.action is Action.EXPAND else part
        self.levels = list(self._racks())
        self._reach_of: dict[Resource, _Reach] = {}
        self._known_ends: dict[tuple[int, int], list[tuple[Ints, Ints]]] = {}

    def prove(self, note: Infeasible) -> bool:
        """Whether the note has a cause."""
        resource = note.resource or Resource.REPLICAS
        if resource in LED:
            return False
        if self._partitions.amounts(resource) is None:
            return True  # the snapshot does not have what the plan was made by
        if note.subject.kind is SubjectKind.TOPIC:
            return self._of_topic(note.subject.name).shifts()
        of_rack = note.subject.kind is SubjectKind.RACK
        if note.obstacle in _OF_ITSELF and not of_rack:
            return self._of_itself(note, resource)
        reach = self._of(resource)
        if note.obstacle is Obstacle.SHIFTED_SHARE:
            return reach.shifts()
        if note.obstacle is Obstacle.LARGE_PARTITION:
            return reach.largest > note.wanted
        if of_rack and not reach.is_share(note.subject, note.wanted):
            return False
        if of_rack and note.obstacle in _OF_ITSELF and not self._of_one_in(note, resource):
            return False
        name = note.subject.name if of_rack else note.subject.broker
        if note.obstacle in (Obstacle.RACKS_FORCE_MORE, Obstacle.FIXED_REPLICAS):
            return reach.too_much(name, note.wanted)
        return reach.too_little(name, note.wanted)

    def _of_itself(self, note: Infeasible, resource: Resource) -> bool:
        """Whether a broker alone is the cause, whatever partitions there are."""
        broker = note.subject.broker
        if note.obstacle is Obstacle.DISK_FULL:
            return resource is Resource.BYTES and self._full(broker, note.wanted)
        if note.obstacle is Obstacle.CAP and resource is Resource.BYTES:
            at = np.flatnonzero(self._checked.brokers == broker)
            return bool((self._disk_caps[at] < _over(note.wanted)).any())
        if note.obstacle is Obstacle.CAP:
            cap = self._cap(broker, resource)
            return cap is not None and cap < _over(note.wanted)
        return broker in self._checked.shut

    def _of_one_in(self, note: Infeasible, resource: Resource) -> bool:
        """Whether what a note says of a rack's brokers is so of one of them, in any measure."""
        anything = replace(note, wanted=float("inf"))
        return any(
            self._of_itself(replace(anything, subject=Subject.of_broker(broker)), resource)
            for broker, path in zip(
                self._checked.brokers.tolist(), self._checked.rack_paths, strict=True
            )
            if note.subject.name
            in (self._rack_name(path, level) for level in range(1, self._checked.rack_levels + 1))
        )

    def _full(self, broker: BrokerId | None, amount: float) -> bool:
        """Whether a broker's disks cannot hold as much."""
        at = np.flatnonzero(self._checked.brokers == broker)
        loads = self._sums.sums_of(self._partitions.replicas, self._weight(Resource.BYTES))
        holds = loads + self._headroom(Resource.BYTES)
        return bool((holds[at] < _over(amount)).any())

    @cached_property
    def _disk_caps(self) -> Floats:
        """(B,) bytes that each broker may hold by the cap on its disks; infinite without one."""
        disks, ids = self._checked.disks, self._checked.brokers.tolist()
        kept = [kept_free(self._checked.request, 0.0, broker) for broker in ids]
        free = [
            disks.free[broker] - part * disks.capacity[broker]
            if part and broker in disks.free
            else np.inf
            for broker, part in zip(ids, kept, strict=True)
        ]
        loads = self._sums.sums_of(self._partitions.replicas, self._weight(Resource.BYTES))
        return np.array(free, float) + loads

    def _cap(self, broker: BrokerId | None, resource: Resource) -> float | None:
        if broker is None or resource not in CAPPED:
            return None
        return cap_of(self._checked.request, broker, resource)

    def _of(self, resource: Resource) -> _Reach:
        if resource not in self._reach_of:
            self._reach_of[resource] = self._reach(self._weight(resource), resource)
        return self._reach_of[resource]

    def _of_topic(self, topic: str) -> _Reach:
        names, keys = self._partitions.topics, self._partitions.keys >> 32
        number = names.index(topic) if topic in names else len(names)
        mine = slice(*np.searchsorted(keys, [number, number + 1]).tolist())
        return self._reach(np.ones_like(keys[mine]), Resource.REPLICAS, mine, of_a_topic=True)

    def _weight(self, resource: Resource) -> Ints:
        amounts = self._partitions.amounts(resource)
        return np.zeros_like(self._partitions.size_bytes) if amounts is None else amounts

    def _racks(self) -> Iterator[Ints]:
        """(B,) number of each broker's rack on each level, then of the broker itself."""
        paths = self._checked.rack_paths
        depth = 0 if self._checked.request.ignore_racks else self._checked.rack_levels
        for level in range(depth + 1):
            names = [tuple([*path, *[""] * depth][:level]) for path in paths]
            numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
            yield np.array([numbers[name] for name in names], np.int64)
        yield np.arange(len(paths))

    def _reach(
        self, weight: Ints, resource: Resource, of: slice = _ALL, *, of_a_topic: bool = False
    ) -> _Reach:
        """What can be held of some partitions.

        :param weight: (n,) of one replica of each of the partitions ``of``.
        :param of_a_topic: these are one topic's, of which the brokers of its set have equal shares.
        """
        part, movable = self._part, self._movable[of]
        lists, group = _cut(self._partitions.replicas, of), self._checked.allowed_brokers.number[of]
        loads = self._sums.sums_of(lists, weight)
        stays = self._sums.sums_of(lists, weight * ~movable)
        kept = np.where(part, stays, loads)
        least, most = [], []
        ends = self._of_groups(lists.lengths * movable, weight, group)
        for node, (few, many) in zip(self.levels, ends, strict=True):
            below = np.bincount(node, stays)
            least.append(np.maximum(below + few, np.bincount(node, kept)))
            most.append(below + many)
        room = self._headroom(resource) if not of_a_topic else self._shut_out()
        limit = np.where(part, loads + room, loads)
        if not of_a_topic:
            limit = np.minimum(limit, np.where(part, self._caps(resource), np.inf))
        most[-1] = np.maximum(np.minimum(most[-1], limit), np.where(part, least[-1], loads))
        least[-1] = np.where(part, least[-1], loads)
        for level in range(len(self.levels) - 2, -1, -1):
            up, down = self.levels[level], self.levels[level + 1]
            parent = np.zeros(len(least[level + 1]), np.int64)
            parent[down] = up
            nodes = len(least[level])
            least[level] = np.maximum(least[level], np.bincount(parent, least[level + 1], nodes))
            over = np.bincount(parent, most[level + 1], nodes)
            most[level] = np.maximum(np.minimum(most[level], over), least[level])
        among = None
        if of_a_topic and len(group):
            among = self._checked.allowed_brokers.may[group[0]]
        share = self._sums.shares(loads, resource, part, among)
        fair = [np.bincount(node, share) for node in self.levels]
        return _Reach(
            name=self._names,
            least=np.concatenate(least),
            most=np.concatenate(most),
            fair=np.concatenate(fair),
            largest=float(weight[movable].max(initial=0)),
            widest=float(share[part].max(initial=0)),
        )

    def _of_groups(self, replicas: Ints, weight: Ints, group: Ints) -> list[tuple[Floats, Floats]]:
        """The same as :meth:`spread_evenly`, of partitions that each have their set's brokers.

        :param replicas: (n,) of partitions that may move, else 0; ``group``: (n,) their set.
        """
        ends_by_level = [(np.zeros(len(c)), np.zeros(len(c))) for c in self._capacity(_EVERY)]
        for number in np.unique(group[replicas > 0]).tolist():
            mine = replicas * (group == number)
            of_factor: Floats = np.bincount(mine, weight * (mine > 0)).astype(float)
            for sides, more in zip(
                ends_by_level, self.spread_evenly(of_factor, number), strict=True
            ):
                for side, further in zip(sides, more, strict=True):
                    side += further
        return ends_by_level

    @cached_property
    def _names(self) -> list[object]:
        names: list[object] = []
        for level, node in enumerate(self.levels[:-1]):
            for number in range(int(node.max(initial=-1)) + 1):
                broker = int(np.flatnonzero(node == number)[0])
                names.append(self._rack_name(self._checked.rack_paths[broker], level))
        return [*names, *self._checked.brokers.tolist()]

    def _rack_name(self, path: tuple[str, ...], level: int) -> str:
        """The rack of such brokers on a level, as notes name it."""
        if level and not path:
            return "no rack"
        paths = self._checked.rack_paths
        deeper = level > len(path) and any(p[: len(path)] == path != p for p in paths)
        return "/" + "/".join(path[:level]) + (_NONE_WITHIN if deeper else "")

    def _caps(self, resource: Resource) -> Floats:
        """(B,) the most that each broker may hold by its cap."""
        if resource is Resource.BYTES:
            return self._disk_caps
        caps = (self._cap(broker, resource) for broker in self._checked.brokers.tolist())
        return np.array([np.inf if cap is None else cap for cap in caps])

    def _shut_out(self) -> Floats:
        """(B,) nothing where a broker may get no replica, else anything."""
        return np.where(np.isin(self._checked.brokers, list(self._checked.shut)), 0.0, np.inf)

    def _headroom(self, resource: Resource) -> Floats:
        """(B,) what may come to each broker."""
        checked, room = self._checked, self._shut_out()
        headrooms = checked.disks.headrooms_of_brokers()
        for b, broker in enumerate(checked.brokers.tolist()):
            volumes = headrooms.get(broker)
            if broker in checked.shut:
                continue
            if resource is Resource.BYTES and volumes is not None and broker in headrooms:
                room[b] = sum(volumes.values())
        return room

    def spread_evenly(
        self, of_factor: Floats, group: int | None = None
    ) -> list[tuple[Floats, Floats]]:
        """Per level: (nodes,) the least and the most load, if each partition is spread as evenly as
        the racks allow.

        :param of_factor: load of one replica of the partitions with so many replicas, together.
        :param group: number of the set whose brokers may hold them; None = all live ones may.
        """
        number = _EVERY if group is None else group
        ends_by_level = [(np.zeros(len(c)), np.zeros(len(c))) for c in self._capacity(number)]
        for count in np.flatnonzero(of_factor).tolist():
            for sides, ends in zip(ends_by_level, self._ends(count, number), strict=True):
                for side, of_one in zip(sides, ends, strict=True):
                    side += of_factor[count] * of_one
        return ends_by_level

    def _capacity(self, group: int) -> list[Ints]:
        """Per level: (nodes,) brokers of each node that may hold replicas of a group."""
        hosts = self._checked.live
        if group != _EVERY:
            hosts = hosts & self._checked.allowed_brokers.may[group]
        return [
            np.bincount(node[hosts], minlength=int(node.max(initial=-1)) + 1)
            for node in self.levels
        ]

    def _ends(self, count: int, group: int) -> list[tuple[Ints, Ints]]:
        """Per level: (nodes,) the fewest and the most replicas of a partition that has so many."""
        if (count, group) not in self._known_ends:
            few = many = np.array([count])
            ends_by_level, capacity = [(few, many)], self._capacity(group)
            for level in range(1, len(self.levels)):
                few, many = self._below(level, capacity[level], few, many)
                ends_by_level.append((few, many))
            self._known_ends[count, group] = ends_by_level
        return self._known_ends[count, group]

    def _below(self, level: int, capacity: Ints, few: Ints, many: Ints) -> tuple[Ints, Ints]:
        """The fewest and the most replicas of a partition in each node of a level, from those above
        it.
        """
        up, node = self.levels[level - 1], self.levels[level]
        parent = np.zeros(len(capacity), np.int64)
        parent[node] = up
        least, most = np.zeros_like(capacity), np.zeros_like(capacity)
        for above in range(len(few)):
            children = parent == above
            least[children] = _handed_out(capacity[children], int(few[above]))[0]
            most[children] = _handed_out(capacity[children], int(many[above]))[1]
        return least, most


def _cut(lists: Ragged, some: slice) -> Ragged:
    """Some lists that follow each other."""
    first, end, _ = some.indices(len(lists.lengths))
    offsets = lists.offsets[first : end + 1]
    return Ragged(lists.values[offsets[0] : offsets[-1]], offsets - offsets[0])


def _handed_out(capacity: Ints, replicas: int) -> tuple[Ints, Ints]:
    """The fewest and the most that each of some siblings gets of so many replicas."""
    level = 0
    while np.minimum(capacity, level + 1).sum() <= replicas and level < capacity.max(initial=0):
        level += 1
    each = np.minimum(capacity, level)
    rest = replicas - int(each.sum())
    return each, each + ((capacity > level) & (rest > 0))
