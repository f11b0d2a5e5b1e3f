"""Which replicas leave their brokers, so that what is left is what each broker should keep.

Every broker has a wanted load per resource, inside its box: the level that moves the least. A
broker gives up bytes first, as few and as large replicas as possible, chosen among those whose
bytes in per byte match what has to leave as well; then rate, then count. It never gives up more
than it should in bytes.
"""

from __future__ import annotations

import numpy as np

from include.planning.arrays import Floats, Ints, Mask
from include.planning.search import Search
from include.planning.targets import grain

BYTES, REPLICAS, RATE = range(3)
"""Rows of (K, …) arrays, see resources.PLACED."""

Inner = tuple[float, float, float]

INNER: Inner = (0.98, 0.8, 0.8)
"""Part of its box that a broker's wanted load lies in: slack for whole replicas."""

ALONE = 0.985
"""The same where only one resource has boxes: there is nothing else to match."""

ALL = float("inf")
PASSES = 60


def wanted_loads(search: Search, inner: Inner) -> Floats:
    """(K, B) load each broker should end with: inside its box, moving the least.

    Loads clipped into their boxes rarely add up to what a domain has. The brokers inside their
    boxes then give or take as well, down or up to one level relative to their shares.

    :param inner: per resource, the part of a box that wanted loads lie in, see INNER.
    """
    wanted = search.load.copy()
    domain, gives = search.problem.targets.domain, search.problem.gives
    boxed: Mask = np.asarray(search.scale.any(axis=1))
    for resource, part in enumerate(inner):
        if not boxed[resource]:
            continue
        if boxed.sum() == 1:
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
    for _ in range(PASSES):
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


def shed(search: Search, wanted: Floats) -> Ints:
    """Slots that leave: everything on brokers to be emptied, and what exceeds wanted loads.

    :param wanted: (K, B) of :func:`wanted_loads`.
    """
    problem = search.problem
    chosen = []
    for broker in np.flatnonzero(problem.gives).tolist():
        if problem.leaving[broker]:
            chosen.append(search.on(broker))
        elif (search.load[:, broker] > wanted[:, broker])[search.scale[:, broker] > 0].any():
            chosen.append(_Shedder(search, wanted, broker).chosen())
    return np.concatenate(chosen) if chosen else np.zeros(0, np.int64)


class _Shedder:
    """Chooses what one broker gives up. All amounts are in shares of the broker."""

    def __init__(self, search: Search, wanted: Floats, broker: int) -> None:
        self._slots = search.on(broker)
        scale = search.scale[:, broker]
        load, low, high = (part[:, broker] for part in (search.load, search.low, search.high))
        loose = scale == 0
        self._weight = search.weight(self._slots) * scale[:, None]
        self._loose = bool(loose[REPLICAS])
        self.due = np.where(loose, 0.0, (load - wanted[:, broker]) * scale)
        self._slack = np.where(loose, ALL, (wanted[:, broker] - low) * scale)
        self._room = np.where(
            loose, ALL, (np.where(loose, 0, high) - np.where(loose, 0, wanted[:, broker])) * scale
        )
        if self.due[BYTES] < 0 and not loose[RATE]:
            # The bytes that this broker will receive bring their rate along.
            spare = search.share[RATE, broker] * scale[RATE] + 0.6 * (
                (high - search.share[:, broker])[RATE] * scale[RATE]
            )
            ahead = load[RATE] * scale[RATE] - spare + 0.6 * -self.due[BYTES]
            self.due[RATE] = max(self.due[RATE], ahead)
        self._left = np.ones(len(self._slots), bool)
        self._got = np.zeros(len(self._weight))
        self._window: Ints = np.zeros(0, np.int64)

    def chosen(self) -> Ints:
        """The slots given up."""
        if not len(self._slots):
            return self._slots
        size = self._weight[BYTES]
        self._largest: Ints = np.argsort(-size, kind="stable")
        per_byte = np.maximum(size, 1e-300)
        self._heat: Floats = self._weight[RATE] / per_byte
        self._coldest = self._largest
        if not (self._loose and not self._weight[RATE].any()):
            extra = self._weight[REPLICAS] / per_byte
            self._coldest = np.argsort(self._heat + extra, kind="stable")
        if self.due[BYTES] > 0:
            self._shed_bytes()
        if self.due[RATE] > self._got[RATE]:
            self._shed_rate()
        if self.due[REPLICAS] > self._got[REPLICAS]:
            self._shed_count()
        if self.due[BYTES] > 0:
            self._keep_what_overshoots()
            self._close_the_gap()
        self._make_room()
        return self._slots[~self._left]

    def _open(self, resource: int) -> float:
        return float(self.due[resource] - self._got[resource])

    def _take(self, order: Ints, limit: Floats) -> Ints:
        """Give up replicas in this order while every sum stays within its limit."""
        taken = _prefix_that_fits(order[self._left[order]], self._weight, limit)
        self._left[taken] = False
        self._got = self._got + self._weight[:, taken].sum(axis=1)
        return taken

    def _shed_bytes(self) -> None:
        due = np.maximum(self.due, 0)
        only_bytes = self._loose and not self._weight[RATE].any()
        limit = np.array(
            [
                due[BYTES] * (1 if only_bytes else 0.97),
                due[REPLICAS] + 0.3 * self._slack[REPLICAS],
                due[RATE] + 0.05 * self._slack[RATE],
            ]
        )
        inside = self._matching_heat(due[RATE] / due[BYTES], due[BYTES])
        self._window = self._take(self._largest[inside[self._largest]], limit)

    def _matching_heat(self, heat: float, size: float) -> Floats:
        """(n,) the replicas whose mean rate per byte is the wanted one, twice the bytes at
        least.
        """
        inside = np.ones(len(self._slots), bool)
        if not self._weight[RATE].any():
            return inside
        order = np.argsort(self._heat, kind="stable")
        bytes_below = np.cumsum(self._weight[BYTES, order])
        rate_below = np.cumsum(self._weight[RATE, order])
        enough = min(2 * size, bytes_below[-1] * 0.999)
        if rate_below[-1] / max(bytes_below[-1], 1e-300) > heat:
            mean = rate_below / np.maximum(bytes_below, 1e-300)
            last = max(np.searchsorted(mean, heat), np.searchsorted(bytes_below, enough))
            inside[order[last + 1 :]] = False
        else:
            above = bytes_below[-1] - bytes_below
            mean = (rate_below[-1] - rate_below)[:-1] / np.maximum(above[:-1], 1e-300)
            first = min(np.searchsorted(mean, heat), np.searchsorted(-above, -enough, "right"))
            inside[order[:first]] = False
        return inside

    def _shed_rate(self) -> None:
        hottest = np.argsort(-self._heat, kind="stable")
        size = max(self._open(BYTES), 0) + max(self._slack[BYTES], 0.1)
        self._take(hottest, np.array([size, ALL, self._open(RATE)]))

    def _shed_count(self) -> None:
        """The smallest ones, to the whole number that is due."""
        one = float(self._weight[REPLICAS, 0])
        count = int(np.ceil(self._open(REPLICAS) / one - 1e-9))
        left = np.flatnonzero(self._left)
        both = self._weight[BYTES, left] + self._weight[RATE, left]
        taken = left[np.argsort(both, kind="stable")[: max(0, count)]]
        self._left[taken] = False
        self._got = self._got + self._weight[:, taken].sum(axis=1)

    def _keep_what_overshoots(self) -> None:
        """Rate and count took bytes along: keep as much of the first choice instead."""
        over = -self._open(BYTES)
        if over <= 1e-4 or not len(self._window):
            return
        mine = np.zeros(len(self._slots), bool)
        mine[self._window] = True
        limit = np.array(
            [
                over,
                0.5 * self._room[REPLICAS] - self._open(REPLICAS),
                0.5 * self._room[RATE] + max(-self._open(RATE), 0),
            ]
        )
        kept = _prefix_that_fits(self._coldest[mine[self._coldest]], self._weight, limit)
        self._left[kept] = True
        self._got = self._got - self._weight[:, kept].sum(axis=1)

    def _close_the_gap(self) -> None:
        due = np.maximum(self.due, 0)
        for part in (0.05, 0.4, 0.9):
            if self._open(BYTES) > 1e-5:
                limit = due + part * self._slack - self._got
                limit[BYTES] = self._open(BYTES)
                order = self._largest if part == 0.05 else self._coldest
                self._take(order, np.maximum(limit, 0))
        if self._open(BYTES) > 2e-3:
            self._take(self._coldest, np.array([self._open(BYTES), ALL, ALL]))

    def _make_room(self) -> None:
        """What will come for the sake of rate and count brings a few bytes along."""
        lack = np.maximum(self._got - self.due, 0)[[REPLICAS, RATE]]
        if self._loose or lack[0] <= 0.01:
            return
        room = min(0.03 * float(lack.sum()), 0.01) - max(-self._open(BYTES), 0)
        if room > 0:
            self._take(self._coldest, np.array([room, ALL, ALL]))


def _prefix_that_fits(order: Ints, weight: Floats, limit: Floats) -> Ints:
    """Those of ``order`` that are taken when each is taken whose sums stay within the limit.

    :param weight: (K, n) weights by index; ``limit`` (K,) of their sums.
    """
    limited = np.isfinite(limit)
    taken, left = [], limit[limited].astype(float)
    weight = weight[limited][:, order]
    for _ in range(PASSES):
        small = ~_any_above(weight, left)
        if not small.all():
            order, weight = order[small], weight[:, small]
        if not len(order):
            break
        sums = np.cumsum(weight, axis=1)
        over = _any_above(sums, left)
        end = int(over.argmax()) if over.any() else len(order)
        if end:
            taken.append(order[:end])
            left = left - sums[:, end - 1]
        order, weight = order[end + 1 :], weight[:, end + 1 :]
    return np.concatenate(taken) if taken else np.zeros(0, np.int64)


def _any_above(values: Floats, limit: Floats) -> Mask:
    above: Mask = values[0] > limit[0]
    for row, most in zip(values[1:], limit[1:], strict=True):
        above |= row > most
    return above
