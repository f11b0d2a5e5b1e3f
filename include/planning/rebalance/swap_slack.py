"""What brokers may end with while replicas of theirs trade places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.domain.array_types import Floats, Ints


@dataclass
class SwapSlack:
    """What n brokers, each in the middle of some trades, may end with; of k resources.

    :param broker: (n,) the brokers; one stands for all where there is one.
    :param sign: of the change to their load when more goes out: +1 where they receive.
    :param low, high: (k, n) per resource; ``scale``: one over the share.
    :param widest: (2, n) low and high of bytes, whatever was saved.
    """

    broker: Ints
    sign: int
    low: Floats
    high: Floats
    scale: Floats
    widest: Floats

    def beyond(self, load: Floats) -> Floats:
        """(n, m) how far m loads (k, n, m) of each broker are outside, in shares."""
        low, high, scale = (part[:, :, None] for part in (self.low, self.high, self.scale))
        beyond: Floats = (scale * np.maximum(np.maximum(load - high, low - load), 0)).sum(axis=0)
        return beyond

    def of(self, places: Ints) -> SwapSlack:
        """The same of these of the brokers; of the only one, where there is one."""
        if len(self.broker) == 1:
            return self
        low, high, scale, widest = (
            part.take(places, axis=1) for part in (self.low, self.high, self.scale, self.widest)
        )
        return SwapSlack(self.broker[places], self.sign, low, high, scale, widest)

    def spend(self, load: Floats, saved: float) -> None:
        """Let no more bytes be copied than were saved, bytes (n,) being held now."""
        if self.sign > 0:
            self.high[0] = np.minimum(self.widest[1], load + saved)
        else:
            self.low[0] = np.maximum(self.widest[0], load - saved)
