"""Checks of caps and broker sets: before a plan is made, and on a finished layout."""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import Ints, Mask, Rows
from rehome.domain.plan.infeasible import Infeasible, Notes, Obstacle, Subject, SubjectKind
from rehome.domain.resources import LED, PLACED, RESOURCE_NAMES
from rehome.domain.text import amount_text, count_text
from rehome.planning.limits.apply_limits import above_caps, groups, loads_of, outside_sets
from rehome.planning.model.arrays import ClusterArrays, is_new
from rehome.planning.model.limits import Limits
from rehome.planning.model.resource_loads import partition_weight
from rehome.planning.model.scope import raise_if, shorten

LIFT = "Lift the limit for this run with its parameter, or change the setting."


def set_too_small(arrays: ClusterArrays, hosts: Mask, replicas: Ints) -> Mask:
    """(P,) partitions that should get more replicas than their broker set has hosts."""
    limits = arrays.limits
    if limits is None or not limits.has_sets:
        return np.zeros(len(replicas), bool)
    there = (limits.allowed & hosts).sum(axis=1)
    small: Mask = replicas > there[groups(arrays)]
    return small


def refuse_impossible(arrays: ClusterArrays, hosts: Mask, partitions: Ints, replicas: Ints) -> None:
    """Refuse requests that no plan can meet by its caps or broker sets. A host that is above its
    cap already may stay so. A partition that changes is brought into its set: a replica outside of
    it does not stay.

    :param partitions: that are about to change; ``replicas``: (P,) that each is to have.
    :raises InvalidRequestError: names partitions whose set is too small, and caps that are too low.
    """
    limits = arrays.limits
    if limits is None:
        return
    small = set_too_small(arrays, hosts, replicas)[partitions]
    group = groups(arrays)
    problems = [
        f"{arrays.partition(p)} is to have {count_text(int(replicas[p]), 'replica')}; "
        f"live brokers of broker set {limits.names[group[p]]!r} left: "
        f"{int((limits.allowed[group[p]] & hosts).sum())}."
        for p in partitions[small].tolist()
    ]
    replicas_after = arrays.replication_factor
    replicas_after[partitions] = replicas[partitions]
    problems += [
        f"Caps on {RESOURCE_NAMES[note.resource]} are too low: "
        f"{_whose(note)} {_amounts(note)}. {LIFT}"
        for note in caps_too_low(arrays, hosts, replicas_after, may_keep_excess=True)
        if note.resource is not None
    ]
    raise_if(shorten(problems))


def _whose(note: Infeasible) -> str:
    return f"broker set {note.subject.name!r}" if note.subject.name else "all live brokers"


def _amounts(note: Infeasible) -> str:
    assert note.resource is not None
    demand, nearest = (amount_text(note.resource, n) for n in (note.wanted, note.nearest))
    return f"would hold {demand}, and may hold {nearest}"


def caps_too_low(
    arrays: ClusterArrays, hosts: Mask, replicas: Ints, *, may_keep_excess: bool = False
) -> Notes:
    """A note for each resource whose caps, summed over all hosts or over a broker set, are less
    than its total load.

    :param replicas: (P,) that each partition is to have.
    :param may_keep_excess: count what a host holds above its cap as what it may hold: it may keep
        that.
    """
    limits = arrays.limits
    if limits is None:
        return ()
    group, notes = groups(arrays), []
    parts = [("", np.ones(len(group), bool), hosts)]
    if limits.has_sets:
        parts += [
            (name, group == number, hosts & limits.allowed[number])
            for number, name in enumerate(limits.names)
        ]
    for caps, resources in ((limits.placed, PLACED), (limits.led, LED)):
        for cap, resource in zip(caps, resources, strict=True):
            if not np.isfinite(cap).any():
                continue
            weight = partition_weight(arrays, resource)
            if resource in PLACED:
                weight = weight * replicas
            may = (
                np.maximum(cap, loads_of(arrays, arrays.rows, resource)) if may_keep_excess else cap
            )
            for name, mine, brokers in parts:
                load, most = float(weight[mine].sum()), float(may[brokers].sum())
                if load > most:
                    notes.append(
                        Infeasible(
                            Subject(SubjectKind.BROKER_SET, name),
                            Obstacle.CAPS_TOO_LOW,
                            wanted=load,
                            nearest=most,
                            resource=resource,
                        )
                    )
    return tuple(notes)


def refuse_broken(arrays: ClusterArrays, origin: Rows, rows: Rows) -> None:
    """Refuse a layout that breaks a limit, see :func:`broken_limits`.

    :raises InvalidRequestError: names brokers and partitions.
    """
    raise_if(shorten([f"{text} {LIFT}" for text in broken_limits(arrays, origin, rows)]))


def broken_limits(arrays: ClusterArrays, origin: Rows, rows: Rows) -> list[str]:
    """A sentence for each broker that a layout takes above its cap (or further above it), and for
    each copy that it puts outside of the topic's broker set.
    """
    limits = arrays.limits
    if limits is None:
        return []
    kinds = {r: row for rs, of in ((PLACED, limits.placed), (LED, limits.led))
             for r, row in zip(rs, of, strict=True)}  # fmt: skip
    problems = [
        f"Broker {arrays.brokers.ids[b]} would end with "
        f"{amount_text(r, float(loads_of(arrays, rows, r)[b]))}; its cap ({RESOURCE_NAMES[r]}) is "
        f"{amount_text(r, float(kinds[r][b]))}."
        for r, b in above_caps(arrays, origin, rows)
    ]
    new = outside_sets(arrays, rows) & is_new(rows, origin)
    group = groups(arrays)
    return problems + [
        f"{arrays.partition(p)} would get a replica on broker {arrays.brokers.ids[rows[p, at]]}, "
        f"which is not of {set_text(limits, int(group[p]))}."
        for p, at in np.argwhere(new).tolist()
    ]


def set_text(limits: Limits, group: int) -> str:
    """The brokers that a group of topics is bound to, in words; 0 = topics of no set."""
    if group >= limits.bound_from:
        return "the destinations"
    if group:
        return f"its broker set {limits.names[group]!r}"
    return "those for topics of no set: it belongs to an exclusive set"


def limit_notes(arrays: ClusterArrays, rows: Rows, repaired: Mask | None) -> Notes:
    """Notes on brokers that a plan leaves above a cap, and on partitions that it leaves outside
    their set.

    :param repaired: (P,) partitions that the action should bring into their sets; None = none.
    """
    limits = arrays.limits
    if limits is None:
        return ()
    notes = []
    for caps, resources in ((limits.placed, PLACED), (limits.led, LED)):
        for cap, resource in zip(caps, resources, strict=True):
            if np.isfinite(cap).any():
                loads = loads_of(arrays, rows, resource)
                notes += [
                    Infeasible(
                        Subject.of_broker(arrays.brokers.ids[b]),
                        Obstacle.ABOVE_CAP,
                        wanted=float(cap[b]),
                        nearest=float(loads[b]),
                        resource=resource,
                    )
                    for b in np.flatnonzero(arrays.brokers.live & (loads > cap)).tolist()
                ]
    if repaired is not None:
        outside = outside_sets(arrays, rows) & repaired[:, None]
        inside = groups(arrays) < limits.bound_from
        notes += [
            Infeasible(
                Subject.of_partition(arrays.partition(p)),
                Obstacle.OUTSIDE_SET if inside[p] else Obstacle.OUTSIDE_DESTINATIONS,
                wanted=0,
                nearest=int(outside[p].sum()),
                brokers=arrays.broker_ids(rows[p][outside[p]]),
            )
            for p in np.flatnonzero(outside.any(axis=1)).tolist()
        ]
    return tuple(notes)
