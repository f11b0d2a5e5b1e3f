"""Notes on brokers that a rebalance leaves outside their bands, with the obstacle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from rehome.domain.array_types import Floats, Mask, Rows
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject
from rehome.domain.resources import PLACED, Resource
from rehome.planning.model.layout import Layout
from rehome.planning.model.load_bands import LoadBands
from rehome.planning.model.topic_bands import ROUNDING


@dataclass(frozen=True)
class BandNotes:
    """Unmet bands of a finished rebalance.

    :param weights: (K, P) load of one replica of each partition in each placed resource.
    :param brokers: (B,) that take part; ``partitions``: (P,) that may move.
    """

    layout: Layout
    targets: LoadBands
    weights: Floats
    brokers: Mask
    partitions: Mask
    cut_by_budget: bool
    one_sided: bool

    def _loads(self, rows: Rows | None = None) -> Floats:
        arrays, rows = self.layout.arrays, self.layout.rows if rows is None else rows
        return np.stack([arrays.load(rows, weight) for weight in self.weights]).astype(float)

    def limits_and_misses(self) -> tuple[Infeasible, ...]:
        """Fair shares that are out of reach, and brokers that end outside their bands. Of a broker
        of which both is so, only what takes it further off its fair share.
        """
        missed = {(note.subject, note.resource): note for note in self._missed_notes()}
        limits = []
        for limit in self.targets.infeasible:
            miss = missed.get((limit.subject, limit.resource))
            if miss is None:
                limits.append(limit)
                continue
            by_limit, further = limit.nearest - limit.wanted, miss.nearest - limit.nearest
            if by_limit * further > 0 and abs(further) <= abs(by_limit):
                limits.append(replace(limit, nearest=miss.nearest))
                del missed[limit.subject, limit.resource]
        return (*limits, *missed.values())

    def _missed_notes(self) -> tuple[Infeasible, ...]:
        """Each broker that ends outside a band, and the obstacle."""
        load, low, high = self._loads(), self.targets.low, self.targets.high
        outside = self.brokers & ((load > high) | (load < low))
        return tuple(
            self._note(
                k, b, load[k, b], float(high[k, b] if load[k, b] > high[k, b] else low[k, b])
            )
            for k, b in np.argwhere(outside).tolist()
        )

    def shifted_notes(
        self, tolerances: dict[Resource, float], donors: Mask | None = None
    ) -> tuple[Infeasible, ...]:
        """Brokers inside their bands but off their fair share by more than the tolerance.

        Clipping a rack's share shifts the shares of all brokers. Clips within the tolerance are not
        reported one by one, but they can add up to more than the tolerance.

        :param donors: (B,) brokers that only give: off are those that give too much.
        """
        clipped = {(item.subject, item.resource) for item in self.targets.infeasible}
        load, fair = self._loads(), self.targets.fair
        allowed = np.array([tolerances[resource] for resource in PLACED[: len(fair)]])[:, None]
        slack = np.where(np.isinf(allowed), np.inf, 0.0)
        slack = slack + np.where(np.isinf(allowed), 0.0, allowed) * fair + 1 + ROUNDING
        inside = (load <= self.targets.high) & (load >= self.targets.low)
        off = load - fair if self.one_sided else np.abs(load - fair)
        if donors is not None:
            gave = load < self._loads(self.layout.origin)
            off = np.where(donors, np.where(gave, fair - load, 0), off)
        off = inside & self.brokers & (off > slack)
        return tuple(
            Infeasible(
                self._subject(b),
                Obstacle.SHIFTED_SHARE,
                wanted=float(round(fair[k, b])),
                nearest=float(load[k, b]),
                resource=PLACED[k],
            )
            for k, b in np.argwhere(off).tolist()
            if (self._subject(b), PLACED[k]) not in clipped
        )

    def _subject(self, broker: int) -> Subject:
        return Subject.of_broker(self.layout.arrays.brokers.ids[broker])

    def _note(self, resource: int, broker: int, load: float, target: float) -> Infeasible:
        """Why a broker ends outside its band."""
        note = partial(
            Infeasible,
            self._subject(broker),
            wanted=target,
            nearest=float(load),
            resource=PLACED[resource],
        )
        if self.cut_by_budget:
            return note(obstacle=Obstacle.BUDGET)
        layout, weight = self.layout, self.weights[resource]
        high = self.targets.high[resource, broker]
        on_broker = (layout.rows == broker).any(axis=1)
        if load > high and on_broker.any():
            stays = int(weight[on_broker & ~self.partitions].sum())
            if stays > high:
                return note(obstacle=Obstacle.FIXED_REPLICAS, amount=stays)
            largest = int(np.where(on_broker, weight, -1).argmax())
            if weight[largest] > high:
                return note(
                    obstacle=Obstacle.LARGE_PARTITION,
                    amount=float(weight[largest]),
                    partition=str(layout.arrays.partition(largest)),
                )
        return note(obstacle=Obstacle.NO_MOVE)
