"""Check that the copies to each broker fit into its log dirs; a replica is never split."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from rehome.domain.kafka import BrokerId, LogDirKey
from rehome.quality.facts.gate_input import Checked


def unplaced_copies(checked: Checked) -> dict[BrokerId, list[str]]:
    """Per broker, the copies that fit into none of its log dirs, by best-fit decreasing.

    Copies with a named log dir come first. Brokers that do not report free space are skipped.
    """
    copies_with_dir, into = set(), Counter[LogDirKey]()
    for item in checked.moved.named_log_dirs:
        copies_with_dir.add((item.move, item.broker))
        place = item.broker, item.path
        into[checked.disks.first.get(place, place)] += item.size_bytes
    headrooms = {
        broker: sorted(headroom - into[place] for place, headroom in volumes.items())
        for broker, volumes in checked.disks.headrooms_of_brokers().items()
        if volumes is not None
    }
    misfits = {}
    for broker, moves in _arriving(checked):
        left = headrooms.get(broker)
        if not left:  # another rule covers brokers without any usable log dir
            continue
        free = (
            [move for move in moves if (move, broker) not in copies_with_dir]
            if copies_with_dir
            else moves
        )
        lost = _moves_that_do_not_fit(left, free, checked.moved.size)
        if lost:
            misfits[broker] = [
                f"{checked.planned[move]} {checked.moved.size[move]}" for move in lost
            ]
    return misfits


def _arriving(checked: Checked) -> Iterator[tuple[BrokerId, list[int]]]:
    """Each broker that receives copies, and the row numbers of these moves."""
    adding = checked.moved.adding
    order = np.argsort(adding.values, kind="stable")
    brokers, row = adding.values[order], adding.row[order]
    ids, first = np.unique(brokers, return_index=True)
    ends = np.append(first[1:], len(row))
    for broker, start, end in zip(ids.tolist(), first.tolist(), ends.tolist(), strict=False):
        yield broker, row[start:end].tolist()


def _moves_that_do_not_fit(
    headrooms: Sequence[int], moves: Sequence[int], sizes: np.ndarray
) -> list[int]:
    """The moves whose copies do not fit, largest first.

    :param headrooms: ascending.
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
