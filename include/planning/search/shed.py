"""Which replicas leave their brokers, so that what is left is what each broker should keep.

Every broker has a wanted load per resource, inside its band: the level that moves the least. What
it gives up is for the ``BrokerShed`` to say, broker by broker.

A domain is *narrow* where the brokers that lack bytes have no room for the rate that usually comes
with them (their disks are larger, but not their share of the traffic). There, givers send the
coldest replicas (least rate per byte), those that lack bytes return hot ones, and the givers make
room for these.
"""

from __future__ import annotations

import numpy as np

from include.domain.array_types import Floats, Ints, Mask
from include.planning.model.load_bands import grain
from include.planning.search.broker_shed import (
    BYTES,
    FILLED,
    RATE,
    REPLICAS,
    BrokerShed,
    for_rows,
    largest_within,
)
from include.planning.search.leader_egress import LeaderEgress
from include.planning.search.state import Search

Inner = tuple[float, float, float]

INNER: Inner = (0.98, 0.8, 0.8)
"""Part of its band that a broker's wanted load lies in: slack for whole replicas."""

ALONE = 0.985
"""The same where only one resource has bands: there is nothing else to match."""

BAND_PASSES = 60

NARROW = 0.6
"""Part of the rate that bytes bring on average for which there must be room, or it is short."""

MOSTLY = 0.5
"""Part of the bytes that a narrow domain lacks which is lacking where there is no such room."""

LACKING = 0.01
"""Of a share: bytes that a broker has to lack to be short of room."""

WARMER = 1.2
"""How much more rate comes than the coldest replicas have: they do not all fit."""

LEAST_ROOM = 1e-4
"""Of a share: bytes for which room is made."""


def wanted_loads(search: Search, inner: Inner) -> Floats:
    """(K, B) load each broker should end with: inside its band, moving the least.

    Loads clipped into their bands rarely add up to what a domain has. The brokers inside their
    bands then give or take as well, down or up to one level relative to their shares.

    :param inner: per resource, the part of a band that wanted loads lie in, see INNER.
    """
    wanted = search.load.copy()
    domain, gives = search.problem.targets.domain, search.problem.gives
    banded: Mask = np.asarray(search.scale.any(axis=1))
    for resource, part in enumerate(for_rows(inner, len(banded))):
        if not banded[resource]:
            continue
        if banded.sum() == 1:
            part = max(part, ALONE)
        share = search.share[resource]
        low = share - (share - search.low[resource]) * part
        high = share + (search.high[resource] - share) * part
        for number in np.unique(domain[gives]):
            brokers = np.flatnonzero(gives & (domain == number))
            wanted[resource, brokers] = _levelled(
                search.load[resource, brokers], share[brokers], low[brokers], high[brokers]
            )
    units = np.array([grain(share) for share in search.share])[:, None]
    rounded: Floats = np.rint(wanted / units) * units
    return rounded


def _levelled(load: Floats, share: Floats, low: Floats, high: Floats) -> Floats:
    clipped, total = np.clip(load, low, high), share.sum()
    raises = clipped.sum() < total
    bottom, top = 0.0, 4.0
    for _ in range(BAND_PASSES):
        level = (bottom + top) / 2
        if _at_level(clipped, level * share, low, high, raises).sum() < total:
            bottom = level
        else:
            top = level
    return _at_level(clipped, top * share, low, high, raises)


def _at_level(clipped: Floats, level: Floats, low: Floats, high: Floats, raises: bool) -> Floats:
    levelled: Floats = (
        np.minimum(high, np.maximum(clipped, level))
        if raises
        else np.maximum(low, np.minimum(clipped, level))
    )
    return levelled


def shed(search: Search, wanted: Floats, short: Mask, every: int = 1) -> Ints:
    """Slots that leave: everything on brokers to be emptied, and what exceeds wanted loads.

    :param wanted: (K, B) of :func:`wanted_loads`; ``short``: (B,) of :func:`narrow`.
    :param every: of the replicas of a broker, it chooses among one in so many.
    """
    problem, domain = search.problem, search.problem.targets.domain
    over = (search.load > wanted) & (search.scale > 0)
    only_bytes = not search.scale[REPLICAS:].any()
    tight = np.isin(domain, domain[short])
    chosen: dict[int, Ints] = {}
    senders = LeaderEgress.of(search, wanted)
    for broker in np.flatnonzero(problem.gives).tolist():
        if problem.leaving[broker]:
            chosen[broker] = search.on(broker)
        elif only_bytes and over[BYTES, broker]:
            due = float((search.load - wanted)[BYTES, broker])
            chosen[broker] = largest_within(search, _spare(search, broker), broker, due, senders)
            continue
        elif over[:, broker].any() and not short[broker]:
            replicas = senders.spared(_spare(search, broker, every))
            shedder = BrokerShed(search, wanted, broker, replicas, cold=bool(tight[broker]))
            chosen[broker] = shedder.chosen()
        if broker in chosen:
            senders.send(chosen[broker])
    if short.any():
        _return_rate(search, wanted, short, chosen)
    return _all_spare(search, chosen) if chosen else np.zeros(0, np.int64)


def _spare(search: Search, broker: int, every: int = 1) -> Ints:
    """Slots on a broker, one in so many, that may leave it without taking their topic out of its
    band there.
    """
    replicas = search.on(broker)[::every]
    if search.topic_counts is None:
        return replicas
    spare: Mask = (
        search.topic_counts.leaving(search.topic_counts.cells(replicas // search.width, broker))
        <= 0
    )
    return replicas[spare]


def _all_spare(search: Search, chosen: dict[int, Ints]) -> Ints:
    """What all brokers give up, less what would take a topic out of its band: of several replicas
    of a topic the largest go first.
    """
    replicas = np.concatenate([*chosen.values()])
    if search.topic_counts is None or not search.strict:
        return replicas
    replicas = replicas[
        np.argsort(-search.weights[BYTES].take(replicas // search.width), kind="stable")
    ]
    spare = search.topic_counts.spare(
        search.topic_counts.cells(replicas // search.width, search.flat[replicas])
    )
    given: Ints = replicas[spare | search.problem.leaving[search.flat[replicas]]]
    return given


def narrow(search: Search, wanted: Floats) -> Mask:
    """(B,) brokers of narrow domains that lack bytes and have no room for their rate.

    A domain is narrow when most of the bytes that are lacking in it are lacking there.
    """
    problem, domain = search.problem, search.problem.targets.domain
    short = np.zeros(len(domain), bool)
    if not search.scale[RATE].any():
        return short
    lack = np.where(problem.takes, np.maximum(wanted - search.load, 0)[BYTES], 0.0)
    rate_headroom = np.maximum(_filled(search) - search.load[RATE], 0)
    for number in np.unique(domain[problem.gives]).tolist():
        here = problem.gives & (domain == number)
        size, rate = search.load[[BYTES, RATE]][:, here].sum(axis=1).tolist()
        tight = here & (lack > LACKING * search.share[BYTES])
        tight &= rate_headroom < NARROW * rate / max(size, 1.0) * lack
        if lack[tight].sum() > MOSTLY * lack[here].sum():
            short |= tight
    return short


def _filled(search: Search) -> Floats:
    """(B,) the rate up to which brokers are filled."""
    share, high = search.share[RATE], search.high[RATE]
    filled: Floats = share + FILLED * (high - share)
    return filled


def coldest(search: Search, replicas: Ints, size_bytes: float) -> tuple[Mask, float]:
    """(n,) the replicas with the least rate per byte that hold so many bytes; their rate per
    byte.
    """
    weight = search.weight(replicas)
    order = np.argsort(weight[RATE] / np.maximum(weight[BYTES], 1.0), kind="stable")
    sums = np.cumsum(weight[:, order], axis=1)
    end = min(int(np.searchsorted(sums[BYTES], size_bytes)), len(replicas) - 1)
    cold = np.zeros(len(replicas), bool)
    cold[order[: end + 1]] = True
    return cold, float(sums[RATE, end] / max(sums[BYTES, end], 1.0))


def _return_rate(search: Search, wanted: Floats, short: Mask, chosen: dict[int, Ints]) -> None:
    """Have brokers that are short of room for rate give some up, and others make room for it."""
    domain, load = search.problem.targets.domain, search.load
    for number in np.unique(domain[short]).tolist():
        here = np.flatnonzero(domain == number)
        given = np.concatenate(
            [np.zeros(0, np.int64), *(chosen[b] for b in here.tolist() if b in chosen)]
        )
        lack = float(np.maximum(wanted - load, 0)[BYTES, here[short[here]]].sum())
        heat = coldest(search, given, lack)[1] if len(given) else 0.0
        for broker in here[short[here]].tolist():
            scale = search.scale[:, broker]
            brought = WARMER * heat * float(scale[RATE] / scale[BYTES])
            shedder = BrokerShed(
                search, wanted, broker, _spare(search, broker), brought=brought, cold=True
            )
            chosen[broker] = shedder.chosen()
        returning = _bytes_returning(search, wanted, here, short, chosen)
        for broker, size in zip(here.tolist(), returning.tolist(), strict=True):
            if size > LEAST_ROOM * search.share[BYTES, broker]:
                shedder = BrokerShed(
                    search, wanted, broker, _spare(search, broker), cold=True, extra_bytes=size
                )
                chosen[broker] = shedder.chosen()


def _bytes_returning(
    search: Search, wanted: Floats, here: Ints, short: Mask, chosen: dict[int, Ints]
) -> Floats:
    """(n,) bytes that come back to these brokers with the rate that they lack by now."""
    gone = np.zeros((len(search.load), len(here)))
    for place, broker in enumerate(here.tolist()):
        if broker in chosen:
            gone[:, place] = search.weight(chosen[broker]).sum(axis=1)
    returned = float(gone[BYTES, short[here]].sum())
    left = search.load[:, here] - gone
    fills = search.problem.gives[here] & ~search.problem.leaving[here] & ~short[here]
    lack = np.where(fills, np.maximum(wanted[:, here] - left, 0)[RATE], 0.0)
    gives = fills & (search.load[BYTES, here] > wanted[BYTES, here])
    returning: Floats = np.where(gives, lack * (returned / max(float(lack.sum()), 1.0)), 0.0)
    return returning
