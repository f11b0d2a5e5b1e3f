"""Limits on the loads of brokers while replicas are exchanged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rehome.domain.array_types import Floats, Ints


@dataclass
class SwapSlack:
    """Limits on k loads of n brokers, each shared by some exchanges.

    :param broker: (n,) the brokers; a single one applies to all exchanges.
    :param sign: +1 if the brokers receive the exchanged replicas, -1 if they give them.
    :param low, high: (k, n) per resource; ``scale``: one over the share.
    :param widest: (2, n) low and high of bytes, regardless of ``saved``.
    """

    broker: Ints
    sign: int
    low: Floats
    high: Floats
    scale: Floats
    widest: Floats

    def beyond(self, load: Floats) -> Floats:
        """(n, m) distance of m loads (k, n, m) of each broker to these limits, in shares."""
        low, high, scale = (part[:, :, None] for part in (self.low, self.high, self.scale))
        beyond: Floats = (scale * np.maximum(np.maximum(load - high, low - load), 0)).sum(axis=0)
        return beyond

    def of(self, places: Ints) -> SwapSlack:
        """The same for some of the brokers; a single one stays."""
        if len(self.broker) == 1:
            return self
        low, high, scale, widest = (
            part.take(places, axis=1) for part in (self.low, self.high, self.scale, self.widest)
        )
        return SwapSlack(self.broker[places], self.sign, low, high, scale, widest)

    def spend(self, load: Floats, saved: float) -> None:
        """Tighten the limits so that no more bytes are copied than were saved; ``load`` (n,) is
        held now.
        """
        if self.sign > 0:
            self.high[0] = np.minimum(self.widest[1], load + saved)
        else:
            self.low[0] = np.maximum(self.widest[0], load - saved)
