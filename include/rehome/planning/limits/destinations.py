"""Destinations of a request as limits: the brokers that new replicas may go to.

That no other broker takes a new replica is part of the cluster as all actions see it
(:func:`rehome.planning.model.scope.without_excluded`). A rebalance moreover brings all that it is
about to its destinations: they are a broker set for the time of the plan, within the broker sets
that there are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rehome.domain.array_types import Ints, Mask
from rehome.domain.request.limits import BrokerCaps
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.text import brokers_text, count_text
from rehome.planning.limits.apply_limits import apply_limits, groups, limits_of
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.limits import Limits
from rehome.planning.model.scope import (
    destinations_of,
    partitions_in_scope,
    raise_if,
    shorten,
)


def with_limits(arrays: ClusterArrays, request: ReassignmentRequest) -> ClusterArrays:
    """The cluster with all limits of a request: caps, broker sets, and where a rebalance goes.

    :raises InvalidRequestError: destinations that are unknown, closed, too few for a partition or
        all outside of its broker set, or that only some partitions of a topic are to go to.
    """
    arrays = apply_limits(arrays, request.caps, request.broker_sets)
    if not request.brought:
        return arrays
    scope, destinations = (
        partitions_in_scope(arrays, request),
        destinations_of(arrays.brokers, request),
    )
    limits = arrays.limits or limits_of(arrays, BrokerCaps(), ())
    bound = _bound_topics(arrays, scope)
    cluster = replace(arrays, limits=_with_groups(limits, bound, destinations))
    movable = scope & ~arrays.in_flight
    _refuse_too_few(cluster, np.flatnonzero(movable), destinations)
    return cluster


def refuse_apart(
    arrays: ClusterArrays, request: ReassignmentRequest, hosts: Mask, partitions: Ints
) -> None:
    """Refuse destinations of which none may hold a partition by its broker set.

    :param hosts: (B,) brokers that may hold replicas in the end.
    :param partitions: that are to get new replicas.
    :raises InvalidRequestError: names the topics, their sets and the destinations.
    """
    limits = arrays.limits
    if not request.destinations or limits is None or not limits.has_sets:
        return
    destinations = destinations_of(arrays.brokers, request) & hosts
    group = groups(arrays)[partitions]
    may = (limits.allowed & destinations).sum(axis=1)
    shut = may[group] == 0
    raise_if(
        shorten(
            [
                _no_common_broker(arrays, limits, int(topic), destinations)
                for topic in np.unique(arrays.topic_of[partitions[shut]])
            ]
        )
    )


def _bound_topics(arrays: ClusterArrays, scope: Mask) -> Mask:
    """(T,) topics of the partitions in scope.

    :raises InvalidRequestError: others of their partitions are not in scope.
    """
    inside, outside = (np.zeros(len(arrays.topics), bool) for _ in range(2))
    inside[arrays.topic_of[scope]] = True
    outside[arrays.topic_of[~scope]] = True
    raise_if(
        shorten(
            [
                f"Only some partitions of {arrays.topics[t]} are to go to the destinations: a "
                "rebalance brings whole topics there. Name the topic without partitions; the "
                "action drain, or a file for reassign, moves single partitions."
                for t in np.flatnonzero(inside & outside)
            ]
        )
    )
    return inside


def _with_groups(limits: Limits, bound: Mask, destinations: Mask) -> Limits:
    """The limits with the bound topics in groups of their own: within the brokers of the group that
    they were in, the destinations.
    """
    group_of, allowed, names = limits.group_of.copy(), list(limits.allowed), list(limits.names)
    for group in np.unique(limits.group_of[bound]).tolist():
        group_of[bound & (limits.group_of == group)] = len(allowed)
        allowed.append(limits.allowed[group] & destinations)
        names.append(f"{limits.names[group]} (destinations)" if group else "destinations")
    return replace(
        limits,
        group_of=group_of,
        allowed=np.array(allowed),
        names=tuple(names),
        bound_from=len(limits.allowed),
    )


def _refuse_too_few(arrays: ClusterArrays, partitions: Ints, destinations: Mask) -> None:
    """Refuse partitions with more replicas than there are destinations for them.

    :raises InvalidRequestError: names them, and the broker set that leaves fewer destinations.
    """
    limits = arrays.limits
    assert limits is not None
    group, replicas = groups(arrays)[partitions], arrays.replication_factor[partitions]
    there = limits.allowed.sum(axis=1)
    raise_if(
        shorten(
            [
                _no_common_broker(arrays, limits, int(topic), destinations)
                for topic in np.unique(arrays.topic_of[partitions[there[group] == 0]])
            ]
        )
    )
    few = np.flatnonzero(replicas > there[group])
    raise_if(
        shorten(
            [
                f"{arrays.partition(int(partitions[n]))} has "
                f"{count_text(int(replicas[n]), 'replica')}; destinations for it: "
                f"{brokers_text(arrays.brokers.ids[limits.allowed[group[n]]].tolist())}"
                f"{_of_set(arrays, limits, int(partitions[n]))}."
                for n in few
            ]
        )
    )


def _of_set(arrays: ClusterArrays, limits: Limits, partition: int) -> str:
    topic = int(arrays.topic_of[partition])
    number = limits.set_number(arrays.topics[topic], bool(arrays.internal[topic]))
    return "" if number is None else f", those of its broker set {limits.sets[number].name!r}"


def _no_common_broker(arrays: ClusterArrays, limits: Limits, topic: int, destinations: Mask) -> str:
    number = limits.set_number(arrays.topics[topic], bool(arrays.internal[topic]))
    ids = arrays.brokers.ids
    conflict = (
        f"{arrays.topics[topic]}: destinations has {brokers_text(ids[destinations].tolist())}, and"
    )
    if number is None:
        return (
            f"{conflict} each of them is of an exclusive broker set of other topics: name others, "
            "or lift the sets for this run (broker_sets)."
        )
    item = limits.sets[number]
    return (
        f"{conflict} the topic's broker set {item.name!r} has {brokers_text(sorted(item.brokers))}"
        ": none is in both. Name brokers of the set, or lift it for this run (broker_sets)."
    )
