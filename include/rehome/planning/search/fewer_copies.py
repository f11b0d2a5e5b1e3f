"""Fewer and smaller copies: one or two copies are undone, and one other replica moves instead.

A replica that is to move in place of others has to weigh what keeps all brokers in their bands: an
interval in each resource, computed for all choices of copies and brokers at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask
from rehome.planning.search.state import Search


@dataclass(frozen=True, slots=True)
class FewerCopiesOptions:
    """How many choices are computed, and how many of them are tried.

    :param paired: copies of which each two are tried: the smallest ones.
    :param most_choices: choices of a copy and two brokers up to which single copies are replaced.
    :param work_per_choice: what a choice counts in the budget of work.
    :param tried: choices that are tried before all are computed anew.
    :param replicas_tried: replicas that are checked of each choice.
    """

    paired: int = 120
    most_choices: int = 40_000
    work_per_choice: int = 40
    tried: int = 400
    replicas_tried: int = 12


FEWER_COPIES = FewerCopiesOptions()


def exchange_and_merge(search: Search, most_bytes: float) -> None:
    """Replace copies as long as there are fewer or, of as many, fewer bytes. No band is met less
    well then.

    :param most_bytes: what all copies together may weigh.
    """
    while not search.work.is_spent() and _replace(search, most_bytes):
        pass  # each time there are fewer copies or fewer bytes


@dataclass(frozen=True)
class _Choices:
    """n choices: the copies ``first`` and ``second`` (NONE = one only) are undone, and a replica
    goes from ``source`` to ``target`` that weighs between ``least`` and ``most`` (K, n).
    """

    first: Ints
    second: Ints
    source: Ints
    target: Ints
    least: Floats
    most: Floats

    def only(self, some: Ints | Mask) -> _Choices:
        return _Choices(
            self.first[some],
            self.second[some],
            self.source[some],
            self.target[some],
            self.least[:, some],
            self.most[:, some],
        )


def _replace(search: Search, most_bytes: float) -> int:
    """Make the most worthwhile choices that share no broker. Returns how many."""
    origin, problem = search.origin.reshape(-1), search.problem
    copies = search.copies()
    copies = copies[(problem.gives & ~problem.leaving)[origin[copies]]]
    if not len(copies):
        return 0
    size = search.weights[0].take(copies // search.width)
    copies = copies[np.argsort(size, kind="stable")]
    choices = _best_first(search, _all_choices(search, copies, most_bytes))
    made, changed = 0, np.zeros(len(problem.gives), bool)
    for n in range(len(choices.first)):
        gone = [int(side[n]) for side in (choices.first, choices.second) if side[n] != NONE]
        brokers = [*origin[gone].tolist(), *search.flat[gone].tolist()]
        brokers += [int(choices.source[n]), int(choices.target[n])]
        if search.work.is_spent():
            break
        if not changed[brokers].any() and _try(search, choices, n, gone):
            changed[brokers] = True
            made += 1
    return made


def _all_choices(search: Search, copies: Ints, most_bytes: float) -> list[_Choices]:
    """Each two small copies and one larger; each copy and one that is smaller."""
    origin, choices = search.origin.reshape(-1), []
    first, second = (
        copies[side] for side in np.triu_indices(min(len(copies), FEWER_COPIES.paired), 1)
    )
    room = most_bytes - search.copied_bytes()
    ends = [(origin[one].astype(np.int64), search.holders(one)) for one in (first, second)]
    for source, target in product((0, 1), (0, 1)):
        out, into = ends[source][0], ends[target][1]
        differs = out != into
        for side, chosen in ((0, source), (1, target)):
            differs &= (ends[0][side] != ends[1][side]) | (chosen == 0)
        some = np.flatnonzero(differs)
        undone = _weights(search, first[some])[0] + _weights(search, second[some])[0]
        choices.append(
            _choices(search, first[some], second[some], out[some], into[some], undone + room)
        )
    givers, takers = np.flatnonzero(search.problem.gives), np.flatnonzero(search.problem.takes)
    if len(copies) * len(givers) * len(takers) <= FEWER_COPIES.most_choices:
        one, out, into = (
            side.reshape(-1) for side in np.meshgrid(copies, givers, takers, indexing="ij")
        )
        one, out, into = (side[out != into] for side in (one, out, into))
        smaller = _weights(search, one)[0] - 1
        choices.append(_choices(search, one, np.full(len(one), NONE), out, into, smaller))
    return choices


def _weights(search: Search, replicas: Ints) -> Floats:
    """(K, n) loads of replicas; 0 of NONE."""
    return np.where(replicas == NONE, 0.0, search.weight(np.maximum(replicas, 0)))


def _choices(
    search: Search, first: Ints, second: Ints, source: Ints, target: Ints, bytes_at_most: Floats
) -> _Choices:
    """Those of the choices for which some weight would keep all brokers in their bands, or no
    further off than now.

    :param bytes_at_most: (n,) of the replica that moves.
    """
    search.work.score(FEWER_COPIES.work_per_choice * len(first))
    banded, origin = search.scale > 0, search.origin.reshape(-1)
    low = np.where(banded, np.minimum(search.low, search.load), -np.inf)
    high = np.where(banded, np.maximum(search.high, search.load), np.inf)
    undone = [
        (_weights(search, one), origin[one].astype(np.int64), search.holders(one))
        for one in (first, second)
    ]
    least = np.full((len(low), len(first)), -np.inf)
    most = np.full_like(least, np.inf)
    most[0] = bytes_at_most
    fine = np.ones(len(first), bool)
    for broker in (*undone[0][1:], *undone[1][1:], source, target):
        load = search.load[:, broker]
        for weight, home, there in undone:
            load = load + weight * (home == broker) - weight * (there == broker)
        above, below = load - high[:, broker], load - low[:, broker]
        gives, takes = broker == source, broker == target
        least = np.where(gives, np.maximum(least, above), least)
        most = np.where(gives, np.minimum(most, below), most)
        least = np.where(takes, np.maximum(least, -below), least)
        most = np.where(takes, np.minimum(most, -above), most)
        fine &= gives | takes | ((above <= 0) & (below >= 0)).all(axis=0)
    fine &= (least <= most).all(axis=0)
    return _Choices(first, second, source, target, least, most).only(fine)


def _best_first(search: Search, parts: list[_Choices]) -> _Choices:
    """The choices for which the source has a replica of about that size: two copies less first,
    then by bytes that are added.
    """
    sides = ("first", "second", "source", "target")
    choices = _Choices(
        *(np.concatenate([getattr(part, side) for part in parts]) for side in sides),
        *(
            np.concatenate([getattr(part, side) for part in parts], axis=1)
            for side in ("least", "most")
        ),
    )
    exists = np.zeros(len(choices.first), bool)
    for broker in np.unique(choices.source).tolist():
        mine = np.flatnonzero(choices.source == broker)
        size = np.sort(_weights(search, _at_home(search, broker))[0])
        exists[mine] = np.searchsorted(size, choices.most[0, mine], side="right") > (
            np.searchsorted(size, choices.least[0, mine])
        )
    choices = choices.only(exists)
    undone = _weights(search, choices.first)[0] + _weights(search, choices.second)[0]
    added = np.maximum(choices.least[0], 0.0) - undone
    return choices.only(np.lexsort((added, choices.second == NONE))[: FEWER_COPIES.tried])


def _at_home(search: Search, broker: int) -> Ints:
    """Replicas that a broker holds as it did before."""
    replicas = search.on(broker)
    home: Ints = replicas[search.held_before(replicas, np.array(broker))]
    return home


def _try(search: Search, choices: _Choices, n: int, gone: list[int]) -> bool:
    """Make a choice with the smallest replica that may move instead. Returns whether there is
    one.
    """
    replicas = _at_home(search, int(choices.source[n]))
    search.work.score(len(replicas))
    weight = _weights(search, replicas)
    fits = ((weight >= choices.least[:, [n]]) & (weight <= choices.most[:, [n]])).all(axis=0)
    smallest = np.argsort(weight[0, fits], kind="stable")[: FEWER_COPIES.replicas_tried]
    undone = _Undone(search, gone)
    target, instead = int(choices.target[n]), replicas[fits][smallest].tolist()
    if instead and undone.make() and any(undone.move(replica, target) for replica in instead):
        return True
    undone.take_back()
    return False


class _Undone:
    """Copies that are undone so that another replica moves instead, unless rules or the spread of
    topics forbid it.

    :param gone: the copies.
    """

    def __init__(self, search: Search, gone: list[int]) -> None:
        self._search, self._gone = search, gone
        self._before: list[tuple[int, int]] = []
        self._worse = 0

    def make(self) -> bool:
        """Undo the copies, as far as they may. Returns whether all may."""
        origin = self._search.origin.reshape(-1)
        return all(self._make_one(one, int(origin[one])) for one in self._gone)

    def move(self, replica: int, target: int) -> bool:
        """Move the replica as well, unless it would be copied and leave its partition unevenly
        spread over racks. Returns whether it has moved.
        """
        before, worse = int(self._search.flat[replica]), self._worse
        if not self._make_one(replica, target):
            return False
        if self._worse <= 0 and _is_even(self._search, replica // self._search.width):
            return True
        self._search.move(replica, before)
        self._before.pop()
        self._worse = worse
        return False

    def _make_one(self, replica: int, broker: int) -> bool:
        search, partition = self._search, replica // self._search.width
        if broker in search.rows[partition].tolist() or not search.valid_one(replica, broker):
            return False
        there = int(search.flat[replica])
        if search.topic_counts is not None:
            self._worse += search.topic_counts.moving_one(partition, there, broker)
        search.move(replica, broker)
        self._before.append((replica, there))
        return True

    def take_back(self) -> None:
        """Put everything back."""
        for replica, broker in reversed(self._before):
            self._search.move(replica, broker)


def _is_even(search: Search, partition: int) -> bool:
    tree, row = search.problem.tree, search.rows[[partition]]
    return not tree.violations_of(np.array([partition]), row).any()
