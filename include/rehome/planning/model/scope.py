"""The scope of a request, and checks of the request against the cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from rehome.domain.actions import Trait
from rehome.domain.array_types import NONE, Ints, Mask
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.request.topic_filters import TopicFilter
from rehome.domain.text import count_text
from rehome.errors import InvalidRequestError
from rehome.planning.model.arrays import BrokerArrays, ClusterArrays

_SHOWN = 10
"""The most problems of one kind that are written out."""


def partitions_in_scope(arrays: ClusterArrays, request: ReassignmentRequest) -> Mask:
    """(P,) the partitions in scope of a request.

    Internal topics are in scope if their full name is given, in a drain of all topics (a drained
    broker must end empty), and if offline replicas of all topics are moved.

    :raises InvalidRequestError: a name or partition that does not exist, or a pattern that matches
        nothing.
    """
    if request.topics:
        in_scope = partitions_named(arrays, request.topics)
    elif request.has(Trait.TAKES_INTERNAL):
        in_scope = np.ones(len(arrays.topic_of), bool)
    else:
        in_scope = ~arrays.internal[arrays.topic_of]
    if request.exclude_topics:
        in_scope = in_scope & ~partitions_named(arrays, request.exclude_topics)
    return in_scope


def partitions_named(arrays: ClusterArrays, texts: Iterable[str]) -> Mask:
    """(P,) partitions that one of these filters is of.

    :param texts: see :mod:`rehome.domain.request.topic_filters`.
    :raises InvalidRequestError: a name or partition that does not exist, or a pattern that matches
        nothing.
    """
    chosen: Mask = np.zeros(len(arrays.topic_of), bool)
    problems = []
    for item in map(TopicFilter.read, texts):
        topics, problem = _topics_of(arrays, item)
        hits = topics[arrays.topic_of]
        if item.first is not None and item.last is not None:
            hits &= (arrays.partition_of >= item.first) & (arrays.partition_of <= item.last)
            problem = problem or _absent(arrays, item, topics, hits)
        if problem:
            problems.append(problem)
        chosen |= hits
    raise_if(problems)
    return chosen


def topics_named(arrays: ClusterArrays, names: Iterable[str]) -> Mask:
    """(T,) topics of these names, and those that are not internal and match a pattern among them.

    :raises InvalidRequestError: a name that does not exist, or a pattern that matches nothing.
    """
    matches = [_topics_of(arrays, TopicFilter.read(name)) for name in names]
    raise_if([problem for _, problem in matches if problem])
    chosen: Mask = np.logical_or.reduce([hits for hits, _ in matches], axis=0)
    return chosen


def _topics_of(arrays: ClusterArrays, item: TopicFilter) -> tuple[Mask, str]:
    """(T,) topics of a filter, and what is wrong if there is none."""
    matches = np.array(item.names(arrays.topics), bool)
    hits = matches & ~arrays.internal if item.is_pattern else matches
    if hits.any():
        return hits, ""
    if not item.is_pattern:
        return hits, f"Unknown topic {item.pattern!r}."
    problem = f"No topic matches the pattern {item.text!r}."
    internal = [arrays.topics[t] for t in np.flatnonzero(matches)]
    if internal:
        names = ", ".join(internal[:_SHOWN])
        problem += f" Patterns do not reach internal topics, such as {names}: give full names."
    return hits, problem


def _absent(arrays: ClusterArrays, item: TopicFilter, topics: Mask, hits: Mask) -> str:
    """What is wrong with partitions that a filter names; "" = nothing."""
    if item.is_pattern:
        return "" if hits.any() else f"No partition matches {item.text!r}."
    there = arrays.partition_of[topics[arrays.topic_of]]
    if not len(there) or {item.first, item.last} <= set(there.tolist()):
        return ""  # of a topic without replicas nothing can be said
    return (
        f"{item.text!r} names partitions that there are not: {item.pattern} has {there.min()} to "
        f"{there.max()}."
    )


def brokers_named(arrays: ClusterArrays, request: ReassignmentRequest) -> Mask:
    """(B,) the brokers a request names.

    :raises InvalidRequestError: for ids the cluster does not have.
    """
    return brokers_with(arrays.brokers, request.brokers)


def brokers_with(brokers: BrokerArrays, ids: Iterable[int]) -> Mask:
    """(B,) the brokers with these ids.

    :raises InvalidRequestError: for ids the cluster does not have.
    """
    broker_ids = sorted(set(ids))
    unknown = sorted(set(broker_ids) - set(brokers.ids.tolist()))
    raise_if([f"Unknown broker {broker}." for broker in unknown])
    return np.isin(brokers.ids, broker_ids)


def without_excluded(arrays: ClusterArrays, request: ReassignmentRequest) -> ClusterArrays:
    """The cluster with the excluded brokers taking no new replicas, nor any broker that is not
    among the destinations, where there are some.

    :raises InvalidRequestError: for ids the cluster does not have, and destinations that are not
        live or take nothing.
    """
    if not request.exclude_brokers and not request.destinations:
        return arrays
    takes = arrays.brokers.takes & ~brokers_with(arrays.brokers, request.exclude_brokers)
    if request.destinations:
        takes &= destinations_of(arrays.brokers, request)
    return replace(arrays, brokers=replace(arrays.brokers, takes=takes))


def destinations_of(brokers: BrokerArrays, request: ReassignmentRequest) -> Mask:
    """(B,) the brokers that the request lets have new replicas; all where it names none.

    :raises InvalidRequestError: a destination that the cluster does not have, that is not live, or
        that takes no new replicas.
    """
    if not request.destinations:
        return np.ones(len(brokers.ids), bool)
    destinations = brokers_with(brokers, request.destinations)
    raise_if(
        [f"Destination {b} is not live." for b in brokers.ids[destinations & ~brokers.live]]
        + [
            f"Destination {b} takes no new replicas: all its log dirs are offline or cordoned."
            for b in brokers.ids[destinations & brokers.live & ~brokers.takes]
        ]
    )
    return destinations


def rack_paths(brokers: BrokerArrays, *, ignore_racks: bool) -> tuple[tuple[str, ...], ...]:
    """The brokers' rack paths; all empty when racks are to be ignored. Where some have a rack, the
    others are together one more child of the root, as for Kafka's own placement.
    """
    return ((),) * len(brokers.ids) if ignore_racks else brokers.rack_paths


def check_idle(arrays: ClusterArrays, partitions: Ints) -> None:
    """Refuse partitions that must change but are being reassigned by another client.

    :raises InvalidRequestError: names them.
    """
    busy = partitions[arrays.in_flight[partitions]]
    raise_if(_refusals(arrays, busy, "is being reassigned already: wait or cancel it"))


def check_movable(arrays: ClusterArrays, partitions: Ints, copied: Ints) -> None:
    """Refuse partitions that cannot be changed now.

    :param partitions: that have to change; ``copied``: those among them that get a new replica. A
        partition without a leader may get another order.
    :raises InvalidRequestError: being reassigned already, or no leader to copy from.
    """
    busy = partitions[arrays.in_flight[partitions]]
    leaderless = copied[~has_source(arrays, copied)]
    raise_if(
        [
            *_refusals(arrays, busy, "is being reassigned already: wait or cancel it"),
            *_refusals(arrays, leaderless, "has no leader to copy from"),
        ]
    )


def has_source(arrays: ClusterArrays, partitions: Ints) -> Mask:
    """(n,) which partitions have a live leader, from which new replicas fetch."""
    leader = arrays.leader[partitions]
    has: Mask = (leader != NONE) & arrays.brokers.live[leader]
    return has


def check_replication_factor(
    arrays: ClusterArrays, partitions: Ints, replicas: Ints, brokers: int, which: str
) -> None:
    """Refuse partitions that should get more replicas than there are brokers.

    :param replicas: (P,) replicas per partition.
    :param brokers: number of brokers; ``which`` names them in the message, as in "live brokers".
    :raises InvalidRequestError: names the partitions.
    """
    problems = [
        f"{arrays.partition(p)} is to have {count_text(int(replicas[p]), 'replica')}; "
        f"{which}: {brokers}."
        for p in partitions[replicas[partitions] > brokers]
    ]
    raise_if(shorten(problems))


def raise_if(problems: list[str]) -> None:
    """Raise the problems, if there are any."""
    if problems:
        raise InvalidRequestError(problems)


def shorten(problems: list[str]) -> list[str]:
    """The first few of many problems of one kind, and the number of the rest."""
    if len(problems) <= _SHOWN:
        return problems
    return [*problems[:_SHOWN], f"… and {len(problems) - _SHOWN} more like this."]


def _refusals(arrays: ClusterArrays, partitions: Ints, what: str) -> list[str]:
    return shorten([f"{arrays.partition(index)} {what}." for index in partitions])
