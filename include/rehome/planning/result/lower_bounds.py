"""Lower bounds of the bytes to copy, and the predicted time."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.domain.plan.summary import BrokerLoad
from rehome.domain.run.pace import QUICK_MOVE_S, TOPIC_PARTITIONS, Pace
from rehome.planning.model.arrays import broker_sums, is_new
from rehome.planning.model.layout import Layout
from rehome.planning.model.load_bands import LoadBands
from rehome.planning.model.rack_tree import RackTree
from rehome.planning.placement.rack_constraint import RackConstraint
from rehome.planning.placement.rack_spread import keepable


def placement_bound(layout: Layout, tree: RackTree, partitions: Ints) -> int:
    """Lower bound in bytes for giving these partitions their number of replicas.

    An evenly spread set can keep at most ``keepable`` of a partition's replicas (exact, see there);
    each other replica is a copy of the partition's size. For a drain these are the bytes on the
    drained brokers, plus copies that the racks force. If disk space allows no even spread, only
    missing replicas count.
    """
    if not len(partitions):
        return 0
    rows = layout.rows[partitions]
    is_even = tree.violations_of(partitions, rows) == 0
    replicas = (rows != NONE).sum(axis=1)
    least = least_copies(tree, layout.origin, partitions, replicas, is_even)
    return int((layout.size[partitions] * least).sum())


def least_copies(
    tree: RackTree, origin: Rows, partitions: Ints, replicas: Ints, is_even: Mask | None = None
) -> Ints:
    """(n,) the fewest new replicas that partitions need to have their number of them.

    :param origin: (P, R) the brokers that hold each partition of the cluster.
    :param replicas: (n,) how many each of the ``partitions`` is to have; ``is_even``: (n,) whether
        these must be evenly spread; None = all.
    """
    rows, least = origin[partitions], np.zeros(len(partitions), np.int64)
    for one, mine in tree.parts(np.isin(np.arange(len(origin)), partitions)):
        of_tree = np.flatnonzero(mine[partitions])
        brokers = rows[of_tree]
        hosted = np.where((brokers != NONE) & one.hosts[brokers], brokers, NONE)
        kept = (hosted != NONE).sum(axis=1)
        # An even spread can grow as it is, and what need not be even keeps all.
        fewer = (replicas[of_tree] < kept) | (one.violations(hosted) > 0)
        if is_even is not None:
            fewer &= is_even[of_tree]
        kept[fewer] = _keepable_of_each(one, hosted[fewer], replicas[of_tree][fewer])
        least[of_tree] = np.maximum(replicas[of_tree] - kept, 0)
    return least


def _keepable_of_each(tree: RackTree, hosted: Rows, replicas: Ints) -> Ints:
    """(n,) how many replicas partitions can keep; those in the same innermost racks are alike.

    :param hosted: (n, R) brokers, padded with -1.
    """
    racks = np.sort(np.where(hosted == NONE, NONE, tree.node[-2][hosted]), axis=1)
    alike = np.column_stack([racks, replicas])
    _, first, which = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    kept = [
        keepable(tree, 0, 0, hosted[at][hosted[at] != NONE].tolist(), int(replicas[at]))
        for at in first.tolist()
    ]
    return np.array(kept, np.int64)[which.ravel()]


def rebalance_bound(
    layout: Layout, tree: RackTree, targets: LoadBands, partitions: Mask, before: Ints
) -> int:
    """Lower bound in bytes for plans that meet the bands as well as this one, on each broker.

    An unmet band is widened to what was reached. Brokers above their bands must lose the surplus,
    and brokers below must gain the deficit, so both sums are lower bounds. The total of a domain is
    fixed while partitions are evenly spread, so no bytes leave a domain, and the larger sum counts
    per domain. If movable partitions are uneven, a repair may cross domains: then the larger sum
    counts once for all brokers.

    :param before: (B,) bytes per broker in the snapshot.
    """
    domain = targets.domain
    if not RackConstraint(tree, layout.origin[partitions], np.flatnonzero(partitions)).even():
        domain = np.zeros_like(domain)
    return bands_bound(before, layout.load, targets.low[0], targets.high[0], domain)


def asked_bound(
    layout: Layout, tree: RackTree, targets: LoadBands, partitions: Mask, before: Ints
) -> int:
    """The same for plans that meet all bands, regardless of this one."""
    domain = targets.domain
    if not RackConstraint(tree, layout.origin[partitions], np.flatnonzero(partitions)).even():
        domain = np.zeros_like(domain)
    inside = targets.share[0]
    return bands_bound(before, inside, targets.low[0], targets.high[0], domain)


def bands_bound(
    before: Ints | Floats, after: Ints | Floats, low: Floats, high: Floats, domain: Ints
) -> int:
    """The bound of :func:`rebalance_bound` from (B,) loads and bands of bytes alone."""
    over = np.maximum(before - np.maximum(high, after), 0)
    under = np.maximum(np.minimum(low, after) - before, 0)
    return sum(
        max(int(over[domain == number].sum()), int(under[domain == number].sum()))
        for number in np.unique(domain)
    )


def predicted_seconds(
    layout: Layout, changed: Ints, relocated: Ints, pace: Pace, log_dir_bytes: int = 0
) -> float:
    """Predicted time of a plan: that of the busiest broker, in, out or between its log dirs. Each
    of the three has its own throttle.

    Copies are read from leaders, so bytes out count there. The largest partition needs no term of
    its own: all of it goes into one broker.

    :param changed: partitions that the plan changes; ``relocated``: those with a copy between log
        dirs.
    :param log_dir_bytes: bytes that the busiest broker copies between its log dirs.
    """
    if not len(changed):
        return 0.0
    busiest_s = copying_s(layout, pace).max(initial=log_dir_bytes / pace.bytes_per_s)
    small = _small_moves(layout, changed, relocated, pace.small_bytes)
    return pace.plan_s(float(busiest_s), len(changed) - len(small), _small_s(layout, small))


def _small_moves(layout: Layout, changed: Ints, relocated: Ints, small_bytes: int) -> Ints:
    """Of the changed partitions, those that send hardly anything through any broker."""
    if not small_bytes:
        return changed[:0]
    copies = is_new(layout.rows[changed], layout.origin[changed]).sum(axis=1)
    sent = layout.size[changed] * np.maximum(copies, np.isin(changed, relocated))
    small: Ints = changed[sent <= small_bytes]
    return small


def _small_s(layout: Layout, small: Ints) -> float:
    """What brokers take for small moves, one after the other: the more, the larger a topic is."""
    topic_of = layout.arrays.topic_of
    cost = np.maximum(np.bincount(topic_of) / TOPIC_PARTITIONS, 1.0)
    return QUICK_MOVE_S * float(cost[topic_of[small]].sum())


def copying_s(layout: Layout, pace: Pace) -> Floats:
    """(2, B) seconds that each broker copies, in and out."""
    added, copies, source = _copied_replicas(layout)
    size, brokers = layout.size, len(layout.arrays.brokers.ids)
    into = broker_sums(np.where(added, layout.rows, NONE), pace.copies_s(size), brokers)
    moved = copies > 0
    out = np.bincount(source[moved], pace.copies_s((size * copies)[moved]), brokers)
    return np.stack([into, out])


def broker_loads(layout: Layout) -> tuple[BrokerLoad, ...]:
    """Every broker before and after, ascending by id."""
    arrays = layout.arrays
    ones = np.ones_like(layout.size)
    added, copies, source = _copied_replicas(layout)
    moved = copies > 0
    load, count = arrays.load(layout.origin, layout.size), arrays.load(layout.origin, ones)
    bytes_in = arrays.load(np.where(added, layout.rows, NONE), layout.size)
    bytes_out = np.zeros_like(load)
    np.add.at(bytes_out, source[moved], (layout.size * copies)[moved])
    leads, will_lead = (
        np.bincount(rows[rows[:, 0] != NONE, 0], minlength=len(load))
        for rows in (layout.origin, layout.rows)
    )
    columns = (arrays.brokers.ids, load, layout.load, count, layout.count, leads, will_lead)
    rows = zip(*(column.tolist() for column in (*columns, bytes_in, bytes_out)), strict=True)
    return tuple(BrokerLoad(*row) for row in rows)


def _copied_replicas(layout: Layout) -> tuple[Mask, Ints, Ints]:
    """(P, R) positions of ``rows`` that are new; (P,) how many; (P,) the broker they are read
    from.
    """
    added = is_new(layout.rows, layout.origin)
    leader = layout.arrays.leader
    return added, added.sum(axis=1), np.where(leader != NONE, leader, layout.origin[:, 0])
