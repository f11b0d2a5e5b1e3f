"""Whether the log dirs of each broker hold the copies that come to it: a replica is never split."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from include.domain.kafka import BrokerId
from include.quality.facts.disks import LogDirKey
from include.quality.facts.subject import Checked


def homeless(checked: Checked) -> dict[BrokerId, list[str]]:
    """Per broker, the partitions that are copied to it and fit into none of its log dirs, when the
    largest are put first and each where it leaves least room.

    Copies whose log dir is named come before all others. Of brokers that do not report what they
    have room for, nothing is said.
    """
    named, into = set(), Counter[LogDirKey]()
    for item in checked.moved.named_log_dirs:
        named.add((item.move, item.broker))
        place = item.broker, item.path
        into[checked.disks.first.get(place, place)] += item.size_bytes
    headrooms = {
        broker: sorted(room - into[place] for place, room in told.items())
        for broker, told in checked.disks.rooms_of_brokers().items()
        if told is not None
    }
    found = {}
    for broker, moves in _arriving(checked):
        left = headrooms.get(broker)
        if not left:  # where nothing is taken at all another rule says so
            continue
        free = [move for move in moves if (move, broker) not in named] if named else moves
        lost = _unpacked(left, free, checked.moved.size)
        if lost:
            found[broker] = [f"{checked.planned[move]} {checked.moved.size[move]}" for move in lost]
    return found


def _arriving(checked: Checked) -> Iterator[tuple[BrokerId, list[int]]]:
    """Each broker that receives copies, and the numbers of these moves."""
    adding = checked.moved.adding
    order = np.argsort(adding.values, kind="stable")
    brokers, row = adding.values[order], adding.row[order]
    ids, first = np.unique(brokers, return_index=True)
    ends = np.append(first[1:], len(row))
    for broker, start, end in zip(ids.tolist(), first.tolist(), ends.tolist(), strict=False):
        yield broker, row[start:end].tolist()


def _unpacked(headrooms: Sequence[int], moves: Sequence[int], sizes: np.ndarray) -> list[int]:
    """The moves whose copies find no room, largest first.

    :param rooms: ascending.
    """
    ascending = list(headrooms)
    needed = {move: int(sizes[move]) for move in moves}
    if ascending and sum(needed.values()) <= ascending[0]:
        return []
    lost = []
    for move in sorted(moves, key=lambda move: (-needed[move], move)):
        at = bisect_left(ascending, needed[move])
        if at == len(ascending):
            lost.append(move)
        else:
            insort(ascending, ascending.pop(at) - needed[move])
    return lost
