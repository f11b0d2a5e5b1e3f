"""The rebalance: bytes per broker within tolerance of its share."""

from __future__ import annotations

import numpy as np

from include.planning.arrays import ClusterArrays, Mask
from include.planning.balance import Balancer
from include.planning.bounds import rebalance_bound
from include.planning.explanation import bytes_text
from include.planning.layout import Layout
from include.planning.leaders import settle_leaders
from include.planning.outcome import Outcome, free_to_move, left_brokers, new_places, tree_of
from include.planning.plan import Infeasible, MoveReason
from include.planning.request import ReassignmentRequest
from include.planning.scope import brokers_named, check_movable, partitions_in_scope, raise_if
from include.planning.targets import Targets, byte_targets, disk_shares


def plan_rebalance(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """Bytes per broker come within tolerance of its share, with few bytes moved."""
    hosts = arrays.brokers.live
    named = brokers_named(arrays, request) if request.brokers else hosts
    raise_if([f"Broker {b} is not live." for b in arrays.brokers.ids[named & ~hosts]])
    movable, infeasible = free_to_move(arrays, partitions_in_scope(arrays, request))
    check_movable(arrays, np.flatnonzero(movable), leaving=np.zeros(len(hosts), bool))
    layout, tree = Layout(arrays), tree_of(arrays, hosts, request)
    capacity = disk_shares(layout, hosts)
    targets = byte_targets(
        layout,
        tree,
        partitions=movable,
        brokers=named,
        capacity=capacity,
        tolerance=request.tolerance,
    )
    before = layout.load.copy()
    balancer = Balancer(layout, tree, targets, partitions=movable, brokers=named, capacity=capacity)
    balancer.run()
    settle_leaders(layout)

    def why(p: int) -> str:
        shares = "; ".join(
            f"broker {arrays.brokers.ids[b]} held {bytes_text(before[b])} of a share of "
            f"{bytes_text(targets.share[b])}"
            for b in sorted(left_brokers(layout, p))
        )
        return f"{shares[:1].upper()}{shares[1:]}; {new_places(layout, p)}."

    return Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=rebalance_bound(layout, tree, targets, movable, before),
        reason=MoveReason.BALANCE,
        why=why,
        infeasible=(
            *infeasible,
            *targets.infeasible,
            *_missed(layout, targets, named, movable),
            *_shifted(layout, targets, named, request.tolerance),
        ),
    )


def _missed(
    layout: Layout, targets: Targets, brokers: Mask, partitions: Mask
) -> tuple[Infeasible, ...]:
    """Each broker that ends outside its box, and what keeps it there."""
    over, under = layout.load > targets.high, layout.load < targets.low
    return tuple(
        Infeasible(
            subject=f"broker {layout.arrays.brokers.ids[b]}",
            constraint=_obstacle(layout, targets, b, partitions, over=bool(over[b])),
            wanted=float(targets.high[b] if over[b] else targets.low[b]),
            nearest=float(layout.load[b]),
        )
        for b in np.flatnonzero(brokers & (over | under)).tolist()
    )


def _shifted(
    layout: Layout, targets: Targets, brokers: Mask, tolerance: float
) -> tuple[Infeasible, ...]:
    """Brokers inside their boxes and yet off their fair share by more than the tolerance.

    Clips of shares that are each within the tolerance, and so not named, can add up to this.
    """
    inside = (layout.load <= targets.high) & (layout.load >= targets.low)
    off = np.abs(layout.load - targets.fair) > tolerance * targets.fair + 1
    if targets.infeasible:
        return ()
    return tuple(
        Infeasible(
            subject=f"broker {layout.arrays.brokers.ids[b]}",
            constraint="racks, disks or replicas that may not move shift its share",
            wanted=float(round(targets.fair[b])),
            nearest=float(layout.load[b]),
        )
        for b in np.flatnonzero(brokers & inside & off).tolist()
    )


def _obstacle(
    layout: Layout, targets: Targets, broker: int, partitions: Mask, *, over: bool
) -> str:
    held = (layout.rows == broker).any(axis=1)
    if over and (held & ~partitions).any():
        stays = int(layout.size[held & ~partitions].sum())
        if stays > targets.high[broker]:
            return f"replicas that may not move hold {bytes_text(stays)}"
    if over and held.any():
        largest = int(np.where(held, layout.size, -1).argmax())
        if layout.size[largest] > targets.high[broker]:
            name = layout.arrays.partition(largest)
            return f"partition {name} ({bytes_text(layout.size[largest])}) is larger than its share"
    return "no move or swap of whole replicas that the racks and disks allow brings it closer"
