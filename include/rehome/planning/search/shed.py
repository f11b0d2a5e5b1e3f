"""Phase 1 of the search: which replicas each broker gives up.

Every broker has a wanted load per resource, inside its band, chosen so that the least is moved.
``BrokerShed`` chooses the replicas of one broker.

A domain is *narrow* if brokers that lack bytes cannot take the rate that usually comes with them:
their disks are larger, but not their share of the traffic. There, givers send the coldest replicas
(least rate per byte), receivers return hot ones, and the givers free some bytes for these.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from rehome.domain.array_types import Floats, Ints, Mask
from rehome.planning.effort.shed_options import BROKER_SHED, SHED, Inner
from rehome.planning.model.load_bands import grain
from rehome.planning.placement.stable_order import stable_order_of_floats
from rehome.planning.search.broker_shed import (
    BYTES_ROW,
    RATE_ROW,
    REPLICAS_ROW,
    BrokerShed,
    for_rows,
    largest_within,
)
from rehome.planning.search.leader_egress import LeaderEgress
from rehome.planning.search.state import Search


def wanted_loads(search: Search, inner: Inner) -> Floats:
    """(K, B) load each broker should end with: inside its band, with the least to move.

    Loads clipped to their bands rarely add up to a domain's total. So brokers inside their bands
    give or take as well, to one level relative to their shares (water-filling).

    :param inner: per resource, the fraction of a band that wanted loads lie in, see ShedOptions.
    """
    return _at_totals(search, *_ends(search, inner))


def transfers(search: Search) -> Floats:
    """(K, B) loads after which each domain holds its share, with the least to move: where it holds
    too much the fullest brokers give, elsewhere the emptiest take.
    """
    domain, load = search.problem.targets.domain, search.load
    off = np.stack([np.bincount(domain, row) for row in load - search.share])[:, domain]
    return _at_totals(search, np.where(off > 0, 0.0, load), np.where(off > 0, load, np.inf))


def _ends(search: Search, inner: Inner) -> tuple[Floats, Floats]:
    """(K, B) the ends of that part of the bands."""
    banded: Mask = np.asarray(search.scale.any(axis=1))
    parts = np.array(for_rows(inner, len(banded)))[:, None]
    if banded.sum() == 1:
        parts = np.maximum(parts, SHED.of_one_resource)
    share, low, high = search.share, search.low, np.where(banded[:, None], search.high, 0.0)
    return share - (share - low) * parts, share + (high - share) * parts


def _at_totals(search: Search, low: Floats, high: Floats) -> Floats:
    """(K, B) loads between these ends that add up to the shares of each domain."""
    wanted_load = search.load.copy()
    domain, gives = search.problem.targets.domain, search.problem.gives
    for resource in np.flatnonzero(search.scale.any(axis=1)).tolist():
        for number in np.unique(domain[gives]):
            brokers = np.flatnonzero(gives & (domain == number))
            wanted_load[resource, brokers] = _water_filled(
                *(of[resource, brokers] for of in (search.load, search.share, low, high))
            )
    units = np.array([grain(share) for share in search.share])[:, None]
    rounded: Floats = np.rint(wanted_load / units) * units
    return rounded


def _water_filled(load: Floats, share: Floats, low: Floats, high: Floats) -> Floats:
    clipped, total = np.clip(load, low, high), share.sum()
    raises = clipped.sum() < total
    bottom, top = 0.0, 4.0
    while bottom < (level := (bottom + top) / 2) < top:
        if _at_level(clipped, level * share, low, high, raises).sum() < total:
            bottom = level
        else:
            top = level
    return _at_level(clipped, top * share, low, high, raises)


def _at_level(clipped: Floats, level: Floats, low: Floats, high: Floats, raises: bool) -> Floats:
    filled: Floats = (
        np.minimum(high, np.maximum(clipped, level))
        if raises
        else np.maximum(low, np.minimum(clipped, level))
    )
    return filled


def shed(
    search: Search,
    wanted_load: Floats,
    short: Mask,
    every: int = 1,
    among: Mask | None = None,
) -> Ints:
    """The replicas that leave: all on brokers to be emptied, and on others what exceeds the wanted
    load.

    :param wanted_load: (K, B) of :func:`wanted_loads`; ``short``: (B,) of :func:`narrow`.
    :param every: consider only every n-th replica of a broker.
    :param among: (P · R,) replicas that may leave; None = all.
    """
    problem, domain = search.problem, search.problem.targets.domain
    over = (search.load > wanted_load) & (search.scale > 0)
    only_bytes = not search.scale[REPLICAS_ROW:].any()
    tight = np.isin(domain, domain[short])
    chosen: dict[int, Ints] = {}
    senders, spare = LeaderEgress.of(search, wanted_load), partial(_spare, search, among)
    for broker in np.flatnonzero(problem.gives).tolist():
        if problem.leaving[broker]:
            chosen[broker] = search.on(broker)
        elif only_bytes and over[BYTES_ROW, broker]:
            due = float((search.load - wanted_load)[BYTES_ROW, broker])
            chosen[broker] = largest_within(search, spare(broker), broker, due, senders)
            continue
        elif over[:, broker].any() and not short[broker]:
            replicas = senders.without_busy_leaders(spare(broker, every))
            shedder = BrokerShed(search, wanted_load, broker, replicas, cold=bool(tight[broker]))
            chosen[broker] = shedder.choose()
        if broker in chosen:
            senders.send(chosen[broker])
    if short.any():
        _return_rate(search, wanted_load, short, chosen, spare)
    return _all_spare(search, chosen) if chosen else np.zeros(0, np.int64)


def _spare(search: Search, among: Mask | None, broker: int, every: int = 1) -> Ints:
    """Replicas of a broker (every n-th of ``among``) that may leave without taking their topic out
    of its band there.
    """
    replicas = search.on(broker)
    if among is not None:
        replicas = replicas[among[replicas]]
    replicas = replicas[::every]
    if search.topic_counts is None:
        return replicas
    only_gives = search.strict and not search.problem.takes[broker]
    if only_gives:
        replicas = _largest_first(search, replicas)
    cells = search.topic_counts.cells(replicas // search.width, broker)
    spare: Mask = search.topic_counts.leaving(cells) <= 0
    if only_gives:
        spare &= search.topic_counts.spare(cells, middle=True)
    return replicas[spare]


def _largest_first(search: Search, replicas: Ints) -> Ints:
    size = search.weights[BYTES_ROW].take(replicas // search.width)
    ordered: Ints = replicas[stable_order_of_floats(-size)]
    return ordered


def _all_spare(search: Search, chosen: dict[int, Ints]) -> Ints:
    """What all brokers give up, except replicas that would take a topic out of its band: of several
    replicas of a topic the largest go first.
    """
    replicas = np.concatenate([*chosen.values()])
    if search.topic_counts is None or not search.strict:
        return replicas
    replicas = _largest_first(search, replicas)
    spare = search.topic_counts.spare(
        search.topic_counts.cells(replicas // search.width, search.flat[replicas])
    )
    given: Ints = replicas[spare | search.problem.leaving[search.flat[replicas]]]
    return given


def narrow(search: Search, wanted_load: Floats) -> Mask:
    """(B,) brokers that are short: in narrow domains, lacking bytes, without capacity for their
    rate.

    A domain is narrow if most of its missing bytes are missing on such brokers.
    """
    problem, domain = search.problem, search.problem.targets.domain
    short = np.zeros(len(domain), bool)
    if not search.scale[RATE_ROW].any():
        return short
    lack = np.where(problem.takes, np.maximum(wanted_load - search.load, 0)[BYTES_ROW], 0.0)
    rate_headroom = np.maximum(_fill_rates(search) - search.load[RATE_ROW], 0)
    for number in np.unique(domain[problem.gives]).tolist():
        here = problem.gives & (domain == number)
        size, rate = search.load[[BYTES_ROW, RATE_ROW]][:, here].sum(axis=1).tolist()
        tight = here & (lack > SHED.short_from * search.share[BYTES_ROW])
        tight &= rate_headroom < SHED.narrow * rate / max(size, 1.0) * lack
        if lack[tight].sum() > SHED.narrow_domain_from * lack[here].sum():
            short |= tight
    return short


def _fill_rates(search: Search) -> Floats:
    """(B,) the rate up to which brokers are filled."""
    share, high = search.share[RATE_ROW], search.high[RATE_ROW]
    filled: Floats = share + BROKER_SHED.filled * (high - share)
    return filled


def coldest(search: Search, replicas: Ints, size_bytes: float) -> tuple[Mask, float]:
    """(n,) the replicas with the least rate per byte that together hold ``size_bytes``; and their
    rate per byte.
    """
    weight = search.weight(replicas)
    order = stable_order_of_floats(weight[RATE_ROW] / np.maximum(weight[BYTES_ROW], 1.0))
    sums = np.cumsum(weight[:, order], axis=1)
    end = min(int(np.searchsorted(sums[BYTES_ROW], size_bytes)), len(replicas) - 1)
    cold = np.zeros(len(replicas), bool)
    cold[order[: end + 1]] = True
    return cold, float(sums[RATE_ROW, end] / max(sums[BYTES_ROW, end], 1.0))


def _return_rate(
    search: Search,
    wanted_load: Floats,
    short: Mask,
    chosen: dict[int, Ints],
    spare: Callable[[int], Ints],
) -> None:
    """Brokers that are short give up hot replicas, and the givers free bytes for these."""
    domain, load = search.problem.targets.domain, search.load
    shedder = partial(BrokerShed, search, wanted_load, cold=True)
    for number in np.unique(domain[short]).tolist():
        here = np.flatnonzero(domain == number)
        given = np.concatenate(
            [np.zeros(0, np.int64), *(chosen[b] for b in here.tolist() if b in chosen)]
        )
        lack = float(np.maximum(wanted_load - load, 0)[BYTES_ROW, here[short[here]]].sum())
        heat = coldest(search, given, lack)[1] if len(given) else 0.0
        for broker in here[short[here]].tolist():
            scale = search.scale[:, broker]
            brought = SHED.rate_margin * heat * float(scale[RATE_ROW] / scale[BYTES_ROW])
            chosen[broker] = shedder(broker, spare(broker), brought=brought).choose()
        returning = _bytes_returning(search, wanted_load, here, short, chosen)
        for broker, size in zip(here.tolist(), returning.tolist(), strict=True):
            if size > BROKER_SHED.few_bytes * search.share[BYTES_ROW, broker]:
                chosen[broker] = shedder(broker, spare(broker), extra_bytes=size).choose()


def _bytes_returning(
    search: Search, wanted_load: Floats, here: Ints, short: Mask, chosen: dict[int, Ints]
) -> Floats:
    """(n,) bytes that come back to these brokers together with the rate that they lack now."""
    gone = np.zeros((len(search.load), len(here)))
    for place, broker in enumerate(here.tolist()):
        if broker in chosen:
            gone[:, place] = search.weight(chosen[broker]).sum(axis=1)
    returned = float(gone[BYTES_ROW, short[here]].sum())
    left = search.load[:, here] - gone
    fills = search.problem.gives[here] & ~search.problem.leaving[here] & ~short[here]
    lack = np.where(fills, np.maximum(wanted_load[:, here] - left, 0)[RATE_ROW], 0.0)
    gives = fills & (search.load[BYTES_ROW, here] > wanted_load[BYTES_ROW, here])
    returning: Floats = np.where(gives, lack * (returned / max(float(lack.sum()), 1.0)), 0.0)
    return returning
