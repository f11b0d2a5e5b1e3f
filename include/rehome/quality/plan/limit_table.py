"""Columns on caps and broker sets, per move and per broker."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from rehome.domain.array_types import Ints, Mask
from rehome.domain.resources import LED, Resource
from rehome.quality.facts.broker_places import places
from rehome.quality.facts.gate_input import Checked
from rehome.quality.facts.limits import CAPPED, cap_of
from rehome.quality.facts.ragged_lists import Ragged, starts_of
from rehome.quality.facts.unmet_targets import Obstacles

Sums = Callable[[Ragged, Ints], Ints]
"""Computes (B,) sums of row weights over the brokers in the rows' lists."""


def outside(checked: Checked, lists: Ragged, at: Ints) -> Mask:
    """Per value of the lists, whether that broker is outside the set of the row's partition.

    :param at: (n,) index of each row's partition; -1 = it does not exist, and any broker is
        accepted.
    """
    allowed_brokers, ids = checked.allowed_brokers, checked.brokers
    partition = at[lists.row]
    if not len(ids) or not len(allowed_brokers.number):
        return np.zeros(len(lists.values), bool)
    place = places(ids, lists.values)
    apart = ~allowed_brokers.may[allowed_brokers.number[partition], place]
    is_outside: Mask = apart & (place >= 0) & (partition >= 0)
    return is_outside


def outside_in_the_end(checked: Checked) -> Mask:
    """(P,) partitions with a replica outside their broker set after the plan."""
    moved, partitions = checked.moved, checked.moved.partitions
    every = np.arange(len(partitions.keys))
    lists = partitions.replicas
    is_outside: Mask = lists.where(outside(checked, lists, every)).lengths > 0
    is_there = moved.at >= 0
    ends = moved.target.where(outside(checked, moved.target, moved.at)).lengths > 0
    is_outside[moved.at[is_there]] = ends[is_there]
    return is_outside


def left_outside(checked: Checked) -> list[str]:
    """Partitions in scope that end outside their broker set and are not reported in the summary."""
    partitions = checked.moved.partitions
    scope = checked.in_scope
    excuses = Obstacles(checked.plan.summary.infeasible).partitions
    indexes = np.flatnonzero(scope & outside_in_the_end(checked)).tolist()
    return [name for name in map(partitions.name, indexes) if name not in excuses]


def left_elsewhere(checked: Checked) -> list[str]:
    """Partitions that a rebalance should have brought to its destinations, that end elsewhere and
    are not reported in the summary.
    """
    if not checked.brings:
        return []
    moved, partitions = checked.moved, checked.moved.partitions
    destinations = np.array(checked.request.destinations, np.int64)
    lists, planned = partitions.replicas, moved.at >= 0
    elsewhere = lists.where(~np.isin(lists.values, destinations)).lengths > 0
    ends = moved.target.where(~np.isin(moved.target.values, destinations)).lengths > 0
    elsewhere[moved.at[planned]] = ends[planned]
    reported = Obstacles(checked.plan.summary.infeasible).partitions
    names = map(partitions.name, np.flatnonzero(elsewhere & checked.in_scope).tolist())
    return [name for name in names if name not in reported]


def set_too_small(checked: Checked) -> Mask:
    """(P,) partitions with more replicas than their broker set has live brokers."""
    allowed_brokers = checked.allowed_brokers
    there = (allowed_brokers.may & checked.live).sum(axis=1)
    small: Mask = checked.moved.partitions.replicas.lengths > there[allowed_brokers.number]
    return small


def cap_columns(checked: Checked, summed: Sums) -> dict[str, pa.Array]:
    """Per broker and resource with caps: load after the plan; the most that it may be (its cap, or
    its load before if that is more); and whether it is above its cap without being reported.
    """
    request, ids = checked.request, checked.brokers.tolist()
    excuses = Obstacles(checked.plan.summary.infeasible).brokers
    above: dict[int, list[str]] = {}
    columns: dict[str, pa.Array] = {}
    for resource in CAPPED:
        caps = [cap_of(request, broker, resource) for broker in ids]
        if not any(cap is not None for cap in caps):
            columns[f"{resource.value}_in_the_end"] = pa.nulls(len(ids), pa.int64())
            columns[f"{resource.value}_at_most"] = pa.nulls(len(ids), pa.float64())
            continue
        before, after = before_and_after(checked, summed, resource)
        most = [
            None if cap is None else max(cap, had)
            for cap, had in zip(caps, before.tolist(), strict=True)
        ]
        columns[f"{resource.value}_in_the_end"] = pa.array(after, pa.int64())
        columns[f"{resource.value}_at_most"] = pa.array(most, pa.float64())
        for broker, cap, now, live in zip(
            ids, caps, after.tolist(), checked.live.tolist(), strict=True
        ):
            if live and cap is not None and now > cap and (broker, resource) not in excuses:
                above.setdefault(broker, []).append(resource.value)
    columns["above_caps"] = pa.array([above.get(b) for b in ids], pa.list_(pa.string()))
    return columns


def before_and_after(checked: Checked, summed: Sums, resource: Resource) -> tuple[Ints, Ints]:
    """(B,) load of brokers in a resource, before and after the moves."""
    moved, partitions = checked.moved, checked.moved.partitions
    weight = partitions.amounts(resource)
    if weight is None:
        weight = np.zeros(len(partitions.keys), np.int64)
    of_moves = np.where(moved.at >= 0, weight[moved.at], 0) if len(weight) else moved.at * 0
    leads = resource in LED

    def lists(of: Ragged) -> Ragged:
        if not leads:
            return of
        some = (of.lengths > 0).astype(np.int64)
        return Ragged(of.first[some > 0], starts_of(some))

    before = summed(lists(partitions.replicas), weight)
    gained = summed(lists(moved.target), of_moves) - summed(lists(moved.current), of_moves)
    return before, before + gained
