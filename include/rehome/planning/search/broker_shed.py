"""Choose the replicas that one broker gives up.

Bytes first: as few and as large replicas as possible, among those whose rate per byte matches the
rate that has to leave as well. Then rate, then count. With further resources, those that match what
has to leave in all of them come first. The broker never gives up more bytes than it should. In a
narrow domain (see shed.py) bytes leave in the replicas with the least rate per byte instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from rehome.domain.array_types import Floats, Ints, Mask
from rehome.planning.effort.shed_options import BROKER_SHED
from rehome.planning.placement.stable_order import stable_order_of_floats
from rehome.planning.search.leader_egress import LeaderEgress
from rehome.planning.search.state import Search

BYTES_ROW, REPLICAS_ROW, RATE_ROW = range(3)
"""Rows of (K, …) arrays, see resources.PLACED; further rows are rates as well."""

NO_LIMIT = float("inf")


def for_rows(values: Sequence[float], rows: int) -> tuple[float, ...]:
    """Values for ``rows`` rows: further rows get the value of the rate."""
    return (*values, *[values[RATE_ROW]] * (rows - len(values)))


class BrokerShed:
    """Chooses the replicas that one broker gives up. All amounts are in shares of the broker.

    :param wanted_load: (K, B) that brokers should end with.
    :param brought: rate that comes with bytes that the broker will receive, in shares of rate per
        share of bytes; None = as usual.
    :param cold: give up bytes with as little rate as possible.
    :param extra_bytes: bytes to give up in addition to the surplus.
    """

    def __init__(
        self,
        search: Search,
        wanted_load: Floats,
        broker: int,
        replicas: Ints,
        *,
        brought: float | None = None,
        cold: bool = False,
        extra_bytes: float = 0.0,
    ) -> None:
        scale = search.scale[:, broker]
        weight = search.weight(replicas)
        counts = weight[scale > 0].any(axis=0)
        self._replicas = replicas[counts]
        load, low, high = (part[:, broker] for part in (search.load, search.low, search.high))
        loose = scale == 0
        self._weight = weight.compress(counts, axis=1) * scale[:, None]
        self._loose = bool(loose[REPLICAS_ROW])
        self.due = np.where(loose, 0.0, (load - wanted_load[:, broker]) * scale)
        self._slack = np.where(loose, NO_LIMIT, (wanted_load[:, broker] - low) * scale)
        self._room = np.where(
            loose,
            NO_LIMIT,
            (np.where(loose, 0, high) - np.where(loose, 0, wanted_load[:, broker])) * scale,
        )
        self._cold = cold
        self._brought = 0.0
        if self.due[BYTES_ROW] < 0 and not loose[RATE_ROW]:
            self._brought = BROKER_SHED.brought if brought is None else brought
            spare = search.share[RATE_ROW, broker] * scale[RATE_ROW] + BROKER_SHED.filled * (
                (high - search.share[:, broker])[RATE_ROW] * scale[RATE_ROW]
            )
            ahead = load[RATE_ROW] * scale[RATE_ROW] - spare + self._brought * -self.due[BYTES_ROW]
            self.due[RATE_ROW] = max(self.due[RATE_ROW], ahead)
        self.due[BYTES_ROW] += extra_bytes * scale[BYTES_ROW]
        self._left = np.ones(len(self._replicas), bool)
        self._got = np.zeros(len(self._weight))
        self._window: Ints = np.zeros(0, np.int64)

    def choose(self) -> Ints:
        """The replicas to give up."""
        if not len(self._replicas):
            return self._replicas
        size = self._weight[BYTES_ROW]
        self._largest: Ints = stable_order_of_floats(-size)
        per_byte = np.maximum(size, 1e-300)
        self._heat: Floats = self._weight[RATE_ROW] / per_byte
        self._coldest = self._largest
        if not (self._loose and not self._weight[RATE_ROW].any()):
            extra = self._weight[REPLICAS_ROW] / per_byte
            crowd = BROKER_SHED.weight_of_count if self._cold else 1.0
            self._coldest = stable_order_of_floats(self._heat + crowd * extra)
        rates = list(range(RATE_ROW, len(self._got)))
        if len(rates) > 1 and not self._cold:
            self._shed_in_proportion()
        else:
            self._shed_bytes_and_rate()
            rates.remove(RATE_ROW)
        for row in sorted(rates, key=self._open, reverse=True):
            self._shed_surplus(row)
        if self.due[REPLICAS_ROW] > self._got[REPLICAS_ROW]:
            self._shed_count()
        if self.due[BYTES_ROW] > 0:
            self._keep_what_overshoots()
            self._close_the_gap()
        self._make_room()
        return self._replicas[~self._left]

    def _open(self, resource: int) -> float:
        return float(self.due[resource] - self._got[resource])

    def _take(self, order: Ints, limit: Floats) -> Ints:
        """Give up replicas in this order, each that keeps every sum within its limit."""
        taken = _prefix_that_fits(order[self._left[order]], self._weight, limit)
        self._left[taken] = False
        self._got = self._got + self._weight[:, taken].sum(axis=1)
        return taken

    def _limit(
        self, size: float, count: float, rate: float, further: Floats | float = NO_LIMIT
    ) -> Floats:
        """(K,) the limit of each row; ``further``: of the rows after the rate."""
        limit = np.full(len(self._got), NO_LIMIT)
        limit[:3] = size, count, rate
        limit[3:] = further
        return limit

    def _shed_in_proportion(self) -> None:
        """Replicas whose loads are in the proportion of what has to leave, again and again for what
        is left: of those that match best, the largest.
        """
        rows = [BYTES_ROW, *range(RATE_ROW, len(self._got))]
        weight, due, window = (self._weight[rows], np.maximum(self.due, 0), [self._window])
        length = np.sqrt((weight**2).sum(axis=0))
        for part in BROKER_SHED.parts_of_slack:
            left = np.maximum(due - self._got, 0)[rows]
            far = float(np.sqrt((left**2).sum()))
            if far <= BROKER_SHED.least_distance:
                break
            along = left @ weight / far
            some = np.flatnonzero(self._left & (along > 0))
            best = some[stable_order_of_floats(-along[some] / length[some])]
            pool = best[: np.searchsorted(np.cumsum(along[best]), BROKER_SHED.choice * far) + 1]
            limit = np.maximum(due + part * self._slack - self._got, 0)
            if due[BYTES_ROW] > 0:
                limit[BYTES_ROW] = due[BYTES_ROW] - self._got[BYTES_ROW]
            window.append(self._take(pool[stable_order_of_floats(-along[pool])], limit))
        self._window = np.concatenate(window)

    def _shed_bytes_and_rate(self) -> None:
        if self.due[BYTES_ROW] > 0:
            self._shed_bytes()
        if self.due[RATE_ROW] > self._got[RATE_ROW]:
            self._shed_rate()
            if self._cold:
                self._shed_rate_of_replacements()

    def _shed_bytes(self) -> None:
        due = np.maximum(self.due, 0)
        if self._cold:
            self._window = self._take(
                self._coldest, self._limit(due[BYTES_ROW], NO_LIMIT, NO_LIMIT)
            )
            return
        only_bytes = self._loose and not self._weight[RATE_ROW:].any()
        limit = self._limit(
            due[BYTES_ROW] * (1 if only_bytes else BROKER_SHED.first_bytes),
            due[REPLICAS_ROW] + BROKER_SHED.slack_of_count * self._slack[REPLICAS_ROW],
            due[RATE_ROW] + BROKER_SHED.slack_of_rate * self._slack[RATE_ROW],
            due[3:] + BROKER_SHED.slack_of_count * self._slack[3:],
        )
        inside = self._matching_heat(due[RATE_ROW] / due[BYTES_ROW], due[BYTES_ROW])
        self._window = self._take(self._largest[inside[self._largest]], limit)

    def _matching_heat(self, heat: float, size: float) -> Floats:
        """(n,) replicas whose mean rate per byte is ``heat``, from a few times the bytes."""
        inside = np.ones(len(self._replicas), bool)
        if not self._weight[RATE_ROW].any():
            return inside
        order = stable_order_of_floats(self._heat)
        bytes_below = np.cumsum(self._weight[BYTES_ROW].take(order))
        rate_below = np.cumsum(self._weight[RATE_ROW].take(order))
        enough = min(BROKER_SHED.choice * size, bytes_below[-1] * 0.999)
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
        size = max(self._open(BYTES_ROW), 0) + max(self._slack[BYTES_ROW], BROKER_SHED.size_of_rate)
        self._take(self._hottest, self._limit(size, NO_LIMIT, self._open(RATE_ROW)))

    @cached_property
    def _hottest(self) -> Ints:
        return stable_order_of_floats(-self._heat)

    def _shed_surplus(self, row: int) -> None:
        """What is left of the surplus in one row: first the replicas that hold most of it per load
        that need not leave in that proportion.
        """
        left = self._open(row)
        if left <= 0:
            return
        unwanted = np.zeros(len(self._replicas))
        for other in (BYTES_ROW, *range(RATE_ROW, len(self._got))):
            if other != row:
                unwanted += (1 - np.clip(self._open(other) / left, 0, 1)) * self._weight[other]
        limit = self._limit(
            max(self._open(BYTES_ROW), 0) + max(self._slack[BYTES_ROW], BROKER_SHED.size_of_rate),
            NO_LIMIT,
            NO_LIMIT,
        )
        limit[row] = left
        order = stable_order_of_floats(-self._weight[row] / np.maximum(unwanted, 1e-300))
        self._take(order, limit)

    def _shed_rate_of_replacements(self) -> None:
        """Bytes that left with the rate will be replaced, and the new bytes bring rate again: give
        up that rate too.
        """
        due = float(self.due[RATE_ROW])
        for _ in range(BROKER_SHED.replacement_passes):
            self.due[RATE_ROW] = due + self._brought * float(self._got[BYTES_ROW])
            self._shed_rate()

    def _shed_count(self) -> None:
        """The smallest replicas, up to the surplus in count."""
        one = float(self._weight[REPLICAS_ROW, 0])
        count = int(np.ceil(self._open(REPLICAS_ROW) / one - 1e-9))
        left = np.flatnonzero(self._left)
        both = self._weight[BYTES_ROW].take(left) + self._weight[RATE_ROW].take(left)
        taken = left[stable_order_of_floats(both)[: max(0, count)]]
        self._left[taken] = False
        self._got = self._got + self._weight[:, taken].sum(axis=1)

    def _keep_what_overshoots(self) -> None:
        """Rate and count took bytes along: take back as many bytes of the first choice."""
        over = -self._open(BYTES_ROW)
        if over <= BROKER_SHED.few_bytes or not len(self._window):
            return
        mine = np.zeros(len(self._replicas), bool)
        mine[self._window] = True
        limit = self._limit(
            over,
            BROKER_SHED.room * self._room[REPLICAS_ROW] - self._open(REPLICAS_ROW),
            BROKER_SHED.room * self._room[RATE_ROW] + max(-self._open(RATE_ROW), 0),
            BROKER_SHED.room * self._room[3:] + np.maximum(self._got - self.due, 0)[3:],
        )
        order = self._coldest
        if self._cold:
            limit[[REPLICAS_ROW, RATE_ROW]], order = NO_LIMIT, order[::-1]
        kept = _prefix_that_fits(order[mine[order]], self._weight, limit)
        self._left[kept] = True
        self._got = self._got - self._weight[:, kept].sum(axis=1)

    def _close_the_gap(self) -> None:
        due = np.maximum(self.due, 0)
        for number, part in enumerate(BROKER_SHED.gap_passes):
            if self._open(BYTES_ROW) > BROKER_SHED.least_gap:
                limit = due + part * self._slack - self._got
                limit[BYTES_ROW] = self._open(BYTES_ROW)
                order = self._largest if number == 0 else self._coldest
                if number and self._loose:
                    order = self._largest_of_coldest()
                self._take(order, np.maximum(limit, 0))
        if self._open(BYTES_ROW) > BROKER_SHED.wide_gap:
            self._take(self._coldest, self._limit(self._open(BYTES_ROW), NO_LIMIT, NO_LIMIT))

    def _largest_of_coldest(self) -> Ints:
        """Of the coldest replicas, a few times the bytes that have to leave: the largest first.
        Where the number of replicas has no band, nothing else keeps it low.
        """
        due, order = self._open(BYTES_ROW), self._coldest[self._left[self._coldest]]
        size = self._weight[BYTES_ROW].take(order)
        order, size = order[size <= due], size[size <= due]
        first = int(np.searchsorted(np.cumsum(size), BROKER_SHED.choice_of_gap * due)) + 1
        largest: Ints = order[:first][stable_order_of_floats(-size[:first])]
        return largest

    def _make_room(self) -> None:
        """Give up a few more bytes, because what arrives for rate and count brings bytes along."""
        lack = np.maximum(self._got - self.due, 0)[[REPLICAS_ROW, RATE_ROW]]
        if self._loose or lack[0] <= BROKER_SHED.crowded:
            return
        room = min(BROKER_SHED.room_per_lack * float(lack.sum()), BROKER_SHED.most_room)
        extra_bytes = room - max(-self._open(BYTES_ROW), 0)
        if extra_bytes > 0:
            self._take(self._coldest, self._limit(extra_bytes, NO_LIMIT, NO_LIMIT))


def largest_within(
    search: Search, replicas: Ints, broker: int, size_bytes: float, senders: LeaderEgress
) -> Ints:
    """First fit decreasing: the largest replicas of a broker that together hold no more than
    ``size_bytes``, until at most ``least_gap`` is missing.

    :param senders: orders the largest by their leaders, and records what is given up.
    """
    size = search.weights[BYTES_ROW].take(replicas // search.width)
    enough = BROKER_SHED.least_gap * search.share[BYTES_ROW, broker]
    taken: list[int] = []
    left = size_bytes
    while left > enough:
        largest = _largest_up_to(size, left)
        if not len(largest):
            break
        chosen, left = senders.choose(replicas[largest], broker, left, enough)
        taken += largest[chosen].tolist()
        size[largest] = 0
    return replicas[taken]


def _largest_up_to(size: Floats, most: float) -> Ints:
    """Indexes of the largest sizes in (0, ``most``], in no order."""
    fitting = np.flatnonzero((size <= most) & (size > 0))
    together = BROKER_SHED.ordered_together
    if len(fitting) > together:
        least = np.partition(size[fitting], -together)[-together]
        fitting = fitting[size[fitting] >= least]
    return fitting


def _prefix_that_fits(order: Ints, weight: Floats, limit: Floats) -> Ints:
    """Greedy: the elements of ``order`` that are taken if each is taken that keeps the sums within
    the limit.

    :param weight: (K, n) weights by index; ``limit`` (K,) of their sums.
    """
    limited = np.isfinite(limit)
    taken, left = [], limit[limited].astype(float)
    weight = weight[limited].take(order, axis=1)
    for _ in range(BROKER_SHED.fitting_passes):
        small = ~_any_above(weight, left)
        if not small.all():
            order, weight = order[small], weight.compress(small, axis=1)
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
