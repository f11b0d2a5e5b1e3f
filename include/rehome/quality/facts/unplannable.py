"""Partitions in scope that cannot be planned, found independently of the planner."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rehome.domain.actions import Action
from rehome.domain.array_types import Ints, Mask
from rehome.domain.resources import Resource
from rehome.quality.facts.broker_places import places
from rehome.quality.facts.gate_input import Checked
from rehome.quality.facts.limits import cap_of
from rehome.quality.facts.rack_spread import better_places
from rehome.quality.facts.unmet_targets import Obstacles


def without_leader(checked: Checked) -> Mask:
    """(P,) partitions without a live leader: nothing to copy from."""
    leader = checked.moved.partitions.leader
    lost: Mask = ~np.isin(leader, checked.brokers[checked.live])
    return lost


def offline_counts(checked: Checked) -> Ints:
    """(P,) replicas on dead brokers and in failed log dirs."""
    partitions = checked.moved.partitions
    return partitions.replicas.where(partitions.offline).lengths


def excused_partitions(checked: Checked) -> Mask:
    """(P,) partitions in scope that may stay: they cannot be planned, and the summary reports
    them.
    """
    partitions, request = checked.moved.partitions, checked.request
    immovable = without_leader(checked)
    if request.action is Action.SET_REPLICATION_FACTOR:
        replicas, factor = partitions.replicas.lengths, int(request.replication_factor or 0)
        online = replicas - offline_counts(checked)
        immovable |= (replicas > factor) & (online < factor)
    if request.action is Action.FIX_OFFLINE_REPLICAS:
        immovable |= _no_broker_fits(checked) | partitions.in_flight
    if request.action is Action.DEMOTE:
        immovable |= _no_other_leader(checked)
    left = Obstacles(checked.plan.summary.infeasible).partitions
    for p in np.flatnonzero(immovable).tolist():
        immovable[p] = partitions.name(p) in left
    return immovable


def _no_other_leader(checked: Checked) -> Mask:
    """(P,) partitions without a replica in sync on a live broker that is not demoted."""
    partitions = checked.moved.partitions
    live = checked.brokers[checked.live]
    may = live[~np.isin(live, np.array(checked.demoted, np.int64))]
    able = partitions.in_sync & ~partitions.offline & np.isin(partitions.replicas.values, may)
    none_able: Mask = partitions.replicas.where(able).lengths == 0
    return none_able


def _no_broker_fits(checked: Checked) -> Mask:
    """(P,) partitions with more offline replicas than brokers that surely have space for one, in
    one log dir and in addition to the plan's copies.
    """
    partitions, taking = checked.moved.partitions, _headroom_left(checked)
    unplaced_copies = np.zeros(len(partitions.keys), bool)
    needed, replicas = offline_counts(checked), partitions.replicas
    planned, full = set(checked.moved.at.tolist()), at_caps(checked)
    for p in np.flatnonzero(needed).tolist():
        if p in planned:
            continue
        holders = set(replicas.values[replicas.offsets[p] : replicas.offsets[p + 1]].tolist())
        size = partitions.size_bytes[p]
        allowed_brokers = set(
            checked.brokers[checked.allowed_brokers.may[checked.allowed_brokers.number[p]]].tolist()
        )
        others = [
            b
            for b, headroom in taking.items()
            if b not in holders and headroom >= size and b in allowed_brokers - full
        ]
        unplaced_copies[p] = len(others) < needed[p]
    return unplaced_copies


def kept_uneven(checked: Checked, among: Mask) -> Mask:
    """(P,) those of some partitions that the summary says cannot be spread more evenly, and rightly
    so: each broker that would help may get nothing, is at its caps, or has no log dir that
    surely has space in addition to the plan's copies.
    """
    partitions, allowed = checked.moved.partitions, checked.allowed_brokers
    excuses = Obstacles(checked.plan.summary.infeasible).kept_uneven
    takes, ids = takers(checked), checked.brokers
    replicas = partitions.replicas
    kept = np.zeros(len(partitions.keys), bool)
    for p in np.flatnonzero(among).tolist() if excuses else ():
        if partitions.name(p) not in excuses:
            continue
        row = replicas.values[replicas.offsets[p] : replicas.offsets[p + 1]]
        better = better_places(
            checked.rack_paths,
            checked.live & allowed.may[allowed.number[p]],
            places(ids, row).astype(np.int32),
            np.zeros(0, np.int32),
        )
        kept[p] = len(better) > 0 and not takes(ids[better], int(partitions.size_bytes[p]))
    return kept


def takers(checked: Checked) -> Callable[[Ints, int], bool]:
    """Whether any of some brokers surely takes one more copy of a size beside the plan's: it may,
    is not at its caps, and has a log dir with space.
    """
    taking, full = _headroom_left(checked), at_caps(checked)

    def takes(brokers: Ints, size_bytes: int) -> bool:
        return any(taking.get(b, -1) >= size_bytes and b not in full for b in brokers.tolist())

    return takes


def at_caps(checked: Checked) -> set[int]:
    """Brokers that may not take an arbitrary further replica by their caps."""
    replicas, in_the_end = Resource.REPLICAS, checked.replicas_in_the_end
    rated = (Resource.BYTES_IN, Resource.BYTES_OUT, Resource.LEADERS)
    full = set()
    for broker, count in in_the_end.items():
        most = cap_of(checked.request, broker, replicas)
        other = any(cap_of(checked.request, broker, r) is not None for r in rated)
        if other or (most is not None and count + 1 > most):
            full.add(broker)
    return full


def _headroom_left(checked: Checked) -> dict[int, float]:
    """Headroom after the plan of the emptiest usable log dir of each broker."""
    moved = checked.moved
    arriving = dict.fromkeys(checked.brokers.tolist(), 0)
    for broker, move in zip(moved.adding.values.tolist(), moved.adding.row.tolist(), strict=True):
        arriving[broker] = arriving.get(broker, 0) + int(moved.size[move])
    left: dict[int, float] = {
        broker: float("inf") for broker in checked.brokers[checked.live].tolist()
    }
    largest: dict[int, float] = {}
    for (broker, _), headroom in checked.disks.headroom.items():
        here = float("inf") if headroom is None else float(headroom)
        largest[broker] = max(largest.get(broker, 0.0), here)
    return {
        broker: largest.get(broker, headroom) - arriving[broker]
        for broker, headroom in left.items()
        if broker not in checked.shut
    }
