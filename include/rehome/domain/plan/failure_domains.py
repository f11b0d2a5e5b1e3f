"""What a plan weakens: partitions that end in fewer racks, or with fewer replicas, than they had.

Measured against what was there, not against what the remaining brokers allow: a drain of a whole
data centre may be as good as the rest allows, and still takes a copy out of every other building.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from rehome.domain.array_types import Ints, Mask
from rehome.domain.kafka import BrokerId
from rehome.domain.plan.figures import Weakened
from rehome.domain.plan.move import Move
from rehome.domain.plan.move_columns import pad_lists
from rehome.domain.plan.move_table import moves_table


def weaknesses_of(
    moves: Iterable[Move], racks: Mapping[BrokerId, Sequence[str]]
) -> tuple[Weakened, ...]:
    """What the moves weaken, the topmost level of the racks first, then the numbers of replicas.

    :param racks: rack path per broker, from the root down; () = it has none. Of a broker that is
        not named the rack is not known: its replica counts as a replica, and in no rack.
    """
    table = moves_table(moves).combine_chunks()
    if not len(table):
        return ()
    rows = [pad_lists(table.column(name).combine_chunks()) for name in ("current", "target")]
    depth = max((len(path) for path in racks.values()), default=0)
    weaknesses: list[Weakened] = []
    for level in (*range(1, depth + 1), 0):
        before, after = (_domains(_nodes(each, racks, level, depth)) for each in rows)
        lost = np.flatnonzero(after < before)
        pairs = zip(before[lost].tolist(), after[lost].tolist(), strict=True)
        groups: dict[tuple[int, int], list[int]] = {}
        for row, pair in zip(lost.tolist(), pairs, strict=True):
            groups.setdefault(pair, []).append(row)
        for (was, left), members in sorted(groups.items(), key=lambda item: item[0][::-1]):
            example = "-".join(str(table.column(n)[members[0]]) for n in ("topic", "partition"))
            weaknesses.append(Weakened(level, depth, was, left, len(members), example))
    return tuple(weaknesses)


def _nodes(rows: Ints, racks: Mapping[BrokerId, Sequence[str]], level: int, depth: int) -> Ints:
    """(n, R) number of the domain that each replica is in; -1 = in none that is known."""
    if level == 0:
        return rows
    numbers: dict[tuple[str, ...], int] = {}
    of_broker = {-1: -1}
    for broker, path in racks.items():
        # A path that ends above this level is a domain of its own there.
        name = tuple([*path, *[""] * depth][:level])
        of_broker[broker] = numbers.setdefault(name, len(numbers)) if path else -1
    brokers, places = np.unique(rows, return_inverse=True)
    domain_of_broker = np.array(
        [of_broker.get(broker, -1) for broker in brokers.tolist()], np.int64
    )
    nodes: Ints = domain_of_broker[places.reshape(rows.shape)]
    return nodes


def _domains(nodes: Ints) -> Ints:
    """(n,) how many different ones there are in each row, -1 not counted."""
    ordered = np.sort(nodes, axis=1)
    first = np.ones(ordered.shape, bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    counted: Mask = first & (ordered >= 0)
    number: Ints = counted.sum(axis=1)
    return number
