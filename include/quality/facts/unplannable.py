"""Partitions that a request is about and that cannot be planned, found without the planner."""

from __future__ import annotations

import numpy as np

from include.domain.request.request import Action
from include.quality.facts.jagged import Ints, Mask
from include.quality.facts.subject import Checked
from include.quality.facts.unmet_targets import Obstacles


def without_leader(checked: Checked) -> Mask:
    """(P,) partitions that no live broker leads: there is nothing to copy from."""
    leader = checked.moved.partitions.leader
    lost: Mask = ~np.isin(leader, checked.brokers[checked.live])
    return lost


def offline_counts(checked: Checked) -> Ints:
    """(P,) replicas on dead brokers and in failed log dirs."""
    partitions = checked.moved.partitions
    return partitions.replicas.where(partitions.offline).lengths


def excused(checked: Checked) -> Mask:
    """(P,) partitions that the request is about and yet stay: cannot be planned, and are named."""
    partitions, request = checked.moved.partitions, checked.request
    stuck = without_leader(checked)
    if request.action is Action.SET_REPLICATION_FACTOR:
        replicas, wanted = partitions.replicas.lengths, int(request.replication_factor or 0)
        online = replicas - offline_counts(checked)
        stuck |= (replicas > wanted) & (online < wanted)
    if request.action is Action.FIX_OFFLINE_REPLICAS:
        stuck |= _homeless(checked) | partitions.in_flight
    if request.action is Action.DEMOTE:
        stuck |= _nobody_else_leads(checked)
    left = Obstacles(checked.plan.summary.infeasible).partitions
    for p in np.flatnonzero(stuck).tolist():
        stuck[p] = partitions.name(p) in left
    return stuck


def _nobody_else_leads(checked: Checked) -> Mask:
    """(P,) partitions without a replica in sync on a live broker that is not demoted."""
    partitions = checked.moved.partitions
    live = checked.brokers[checked.live]
    may = live[~np.isin(live, np.array(checked.demoted, np.int64))]
    able = partitions.in_sync & ~partitions.offline & np.isin(partitions.replicas.values, may)
    nobody: Mask = partitions.replicas.where(able).lengths == 0
    return nobody


def _homeless(checked: Checked) -> Mask:
    """(P,) partitions with more offline replicas than brokers that surely have room for one: beside
    all that the plan brings there, in one log dir.
    """
    partitions, taking = checked.moved.partitions, _room_left(checked)
    homeless = np.zeros(len(partitions.keys), bool)
    needed, replicas = offline_counts(checked), partitions.replicas
    planned = set(checked.moved.at.tolist())
    for p in np.flatnonzero(needed).tolist():
        if p in planned:
            continue
        held = set(replicas.values[replicas.offsets[p] : replicas.offsets[p + 1]].tolist())
        size = partitions.size_bytes[p]
        others = [b for b, room in taking.items() if b not in held and room >= size]
        homeless[p] = len(others) < needed[p]
    return homeless


def _room_left(checked: Checked) -> dict[int, float]:
    """Bytes that the emptiest log dir of each broker that takes replicas has left in the end."""
    moved, request = checked.moved, checked.request
    arriving = dict.fromkeys(checked.brokers.tolist(), 0)
    for broker, move in zip(moved.adding.values.tolist(), moved.adding.row.tolist(), strict=True):
        arriving[broker] = arriving.get(broker, 0) + int(moved.size[move])
    shut = {*checked.disks.closed, *request.exclude_brokers}
    left: dict[int, float] = {
        broker: float("inf") for broker in checked.brokers[checked.live].tolist()
    }
    largest: dict[int, float] = {}
    for (broker, _), room in checked.disks.room.items():
        here = float("inf") if room is None else float(room)
        largest[broker] = max(largest.get(broker, 0.0), here)
    return {
        broker: largest.get(broker, room) - arriving[broker]
        for broker, room in left.items()
        if broker not in shut
    }
