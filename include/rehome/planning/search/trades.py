"""Trades of a broker that the local search compares: what moves, what it gains and costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints
from rehome.planning.effort.local_search_options import LOCAL_SEARCH
from rehome.planning.placement.stable_order import first_ones


@dataclass(frozen=True)
class Trades:
    """n trades with one broker; NONE where nothing goes in that direction.

    :param give: (n,) replicas that leave the broker; ``take``: (n,) replicas that come to it.
    :param other: (n,) the broker on the other side.
    :param gain: (n,) excess removed.
    :param cost: (n,) shares of bytes copied.
    """

    give: Ints
    take: Ints
    other: Ints
    gain: Floats
    cost: Floats

    @property
    def score(self) -> Floats:
        """(n,) gain per cost."""
        return self.gain / self.cost

    def best(self, count: int) -> Trades:
        """The best by score, best first; ties by position."""
        score, chosen = self.score, np.flatnonzero(self.score > 0)
        if len(chosen) > count:
            cut = np.partition(score[chosen], -count)[-count]
            chosen = chosen[score[chosen] >= cut]
        chosen = chosen[np.argsort(-score[chosen], kind="stable")][:count]
        return self.only(chosen)

    def most(self) -> float:
        """The largest gain; 0 without trades."""
        return float(self.gain.max(initial=0.0))

    def vary(self) -> Trades:
        """These trades without those that push a replica which better ones push elsewhere."""
        order = np.argsort(-self.score, kind="stable")
        pushes = order[self.take[order] == NONE]
        kept = self.take != NONE
        kept[pushes[first_ones(self.give[pushes], LOCAL_SEARCH.targets_per_replica)]] = True
        return self.only(np.flatnonzero(kept))

    def only(self, chosen: Ints) -> Trades:
        """The trades at these indexes, in their order."""
        give, take, other = self.give[chosen], self.take[chosen], self.other[chosen]
        return Trades(give, take, other, self.gain[chosen], self.cost[chosen])


def join_trades(trades: list[Trades]) -> Trades:
    """All of them, in order."""
    return Trades(
        *(
            np.concatenate([getattr(part, name) for part in trades])
            for name in ("give", "take", "other", "gain", "cost")
        )
    )
