"""How many bytes each broker should hold, and by how much it may be off.

A broker's fair share is by its disk (or equal, where disks are unknown). Shares are handed down
the rack tree from the root and clipped at each node to what is possible there: the spread rule
forces and permits only so many replicas below a node, replicas that are out of scope stay, and
a disk holds only so much. Every clip beyond the tolerance is named: it is a target that no
plan can meet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.planning.arrays import NONE, UNLIMITED, Floats, Ints, Mask
from include.planning.layout import Layout
from include.planning.plan import Infeasible
from include.planning.racks import RackTree


@dataclass(frozen=True)
class Targets:
    """The box of each broker, in bytes.

    :param share: (B,) aimed at; ``low`` ≤ ``share`` ≤ ``high``.
    :param low, high: (B,) share less and plus the tolerance. Of a broker that does not take
        part, what it holds.
    :param domain: (B,) brokers with the same number share a total that no plan can change.
    :param fair: (B,) what the share would be if everything could be moved anywhere.
    :param infeasible: fair shares that had to be clipped by more than the tolerance.
    """

    share: Ints
    low: Ints
    high: Ints
    domain: Ints
    fair: Floats
    infeasible: tuple[Infeasible, ...]


def disk_shares(layout: Layout, hosts: Mask) -> Floats:
    """(B,) relative size of the brokers: by their disks when all hosts report them, else equal."""
    capacity = layout.arrays.brokers.capacity_bytes
    if (capacity[hosts] > 0).all():
        return capacity / max(1.0, float(capacity[hosts].mean()))
    return np.ones(len(hosts))


def byte_targets(
    layout: Layout,
    tree: RackTree,
    *,
    partitions: Mask,
    brokers: Mask,
    capacity: Floats,
    tolerance: float,
) -> Targets:
    """Boxes for a rebalance.

    :param partitions: (P,) that may move.
    :param brokers: (B,) that give and take replicas; the others keep what they hold.
    :param capacity: (B,) relative size of the brokers.
    :param tolerance: allowed deviation from the share, as a fraction.
    """
    least, most = _reachable(layout, tree, partitions, brokers)
    domain = _domains(tree, least, most)
    fixed = np.where(brokers, 0, layout.load)
    weight = np.where(brokers, capacity, 0.0)
    share, infeasible = _hand_down(layout, tree, least, most, fixed, weight, tolerance)
    low = np.where(brokers, np.floor(share * (1 - tolerance)), layout.load).astype(np.int64)
    high = np.where(brokers, np.ceil(share * (1 + tolerance)), layout.load).astype(np.int64)
    high = np.minimum(high, np.maximum(layout.load + layout.room, low))
    aim = np.clip(np.rint(share).astype(np.int64), low, high)
    fair = fixed + weight * _fraction(layout.load.sum() - fixed.sum(), weight.sum())
    return Targets(aim, low, high, domain, fair, infeasible)


def _reachable(
    layout: Layout, tree: RackTree, partitions: Mask, brokers: Mask
) -> tuple[list[Ints], list[Ints]]:
    """Per level, per node: the fewest and the most bytes it can hold.

    Partitions that may move hold between ``tree.least`` and ``tree.most`` replicas in a node,
    and no fewer than lie on brokers that keep theirs; all others stay. Today's place of what
    may move plays no part, so that a plan that has been carried out leaves the targets as
    they were.
    """
    rows, size = layout.rows, layout.size
    held = rows != NONE
    replicas = held.sum(axis=1)
    least, most = [], []
    for level, node in enumerate(tree.node):
        nodes = len(tree.capacity[level])
        floor = _held(node, nodes, layout, held & ~(partitions[:, None] & brokers[rows]))
        stays = _held(node, nodes, layout, held & ~partitions[:, None])
        low, high = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        for count in np.unique(replicas):
            bytes_of = int(size[partitions & (replicas == count)].sum())
            low += bytes_of * tree.least[level][count]
            high += bytes_of * tree.most[level][count]
        least.append(np.maximum(stays + low, floor))
        most.append(stays + high)
    leaf = tree.node[-1]
    keeps = ~brokers
    least[-1][leaf[keeps]] = most[-1][leaf[keeps]] = layout.load[keeps]
    gives = brokers & ~layout.arrays.brokers.takes
    limit = np.where(gives, layout.load, layout.load + np.minimum(layout.room, UNLIMITED))
    most[-1] = np.maximum(np.minimum(most[-1], limit), least[-1])
    for level in range(tree.height - 1, -1, -1):
        below = np.zeros((2, len(least[level])), np.int64)
        np.add.at(below[0], tree.parent[level + 1], least[level + 1])
        np.add.at(below[1], tree.parent[level + 1], most[level + 1])
        least[level] = np.maximum(least[level], below[0])
        most[level] = np.maximum(np.minimum(most[level], below[1]), least[level])
    return least, most


def _held(node: Ints, nodes: int, layout: Layout, slots: Mask) -> Ints:
    total = np.zeros(nodes, np.int64)
    size = np.broadcast_to(layout.size[:, None], layout.rows.shape)
    np.add.at(total, node[layout.rows[slots]], size[slots])
    return total


def _domains(tree: RackTree, least: list[Ints], most: list[Ints]) -> Ints:
    """(B,) number of each broker's deepest branch whose bytes no plan can change."""
    domain = np.zeros(len(tree.hosts), np.int64)
    offset = 0
    for level in range(1, tree.height):
        offset += len(least[level - 1])
        node = tree.node[level]
        domain = np.where((least[level] == most[level])[node], offset + node, domain)
    return domain


def _hand_down(
    layout: Layout,
    tree: RackTree,
    least: list[Ints],
    most: list[Ints],
    fixed: Ints,
    weight: Floats,
    tolerance: float,
) -> tuple[Floats, tuple[Infeasible, ...]]:
    """(B,) shares, and the nodes whose fair part of their parent's share is out of reach."""
    infeasible = []
    share = np.array([float(layout.load.sum())])
    for level in range(1, tree.height + 1):
        node = tree.node[level]
        weights = _sum(node, weight, len(least[level]))
        stays = _sum(node, fixed, len(least[level]))
        below = np.zeros(len(least[level]))
        for parent, children in enumerate(tree.children[level - 1]):
            low, high = least[level][children], most[level][children]
            part, base = weights[children], stays[children]
            below[children] = _pour(share[parent], base, part, low, high)
            fair = base + part * _fraction(share[parent] - base.sum(), part.sum())
            off = np.abs(below[children] - fair) > tolerance * fair + 1
            for i in np.flatnonzero(off & (part > 0) & ((fair > high) | (fair < low))):
                child = int(children[i])
                clip = Infeasible(
                    subject=_subject(layout, tree, level, child),
                    constraint=_constraint(layout, tree, level, child, fair[i] > high[i]),
                    wanted=float(round(fair[i])),
                    nearest=float(round(below[child])),
                )
                infeasible.append(clip)
        share = below
    return share, tuple(infeasible)


def _sum(node: Ints, values: Ints | Floats, nodes: int) -> Floats:
    total = np.zeros(nodes)
    np.add.at(total, node, values)
    return total


def _fraction(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _pour(total: float, base: Floats, weight: Floats, low: Ints, high: Ints) -> Floats:
    """Hand ``total`` out as ``clip(base + level · weight, low, high)`` with one level for all."""
    bottom, top = 0.0, 1.0
    positive = weight > 0
    if positive.any():
        top = float((np.maximum(high - base, 0)[positive] / weight[positive]).max()) + 1.0
    for _ in range(100):
        level = (bottom + top) / 2
        if np.clip(base + level * weight, low, high).sum() < total:
            bottom = level
        else:
            top = level
    poured: Floats = np.clip(base + top * weight, low, high)
    return poured


def _subject(layout: Layout, tree: RackTree, level: int, node: int) -> str:
    if level == tree.height:
        return f"broker {layout.arrays.brokers.ids[node]}"
    return f"rack {tree.name(level, node)}"


def _constraint(layout: Layout, tree: RackTree, level: int, node: int, too_much: bool) -> str:
    if level == tree.height:
        if not too_much:
            return "replicas that may not move hold more than the broker's share"
        if not layout.arrays.brokers.takes[node]:
            return "the broker's log dirs are cordoned: it takes no new replicas"
        if layout.load[node] + layout.room[node] < UNLIMITED:
            return "the broker's disk does not hold its share"
        return "one replica of a partition per broker allows no more"
    verb = "allow no more" if too_much else "force more"
    return f"even spread over racks, and replicas that stay, {verb} in this rack"
