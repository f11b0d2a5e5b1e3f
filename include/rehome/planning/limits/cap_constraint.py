"""Fast check of caps: may a replica go to a broker?"""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import Floats, Ints, Mask
from rehome.planning.model.limits import Limits


class CapConstraint:
    """The caps of brokers for moves of single replicas. A replica without any load of a resource
    breaks none of its caps.

    :param load: (K, B) held now; the search changes this array in place.
    :param weights: (K, P) weight of one replica in each resource.
    """

    def __init__(self, limits: Limits, load: Floats, weights: Floats) -> None:
        self._caps, self._counted = limits.placed, limits.counted.tolist()
        self._load, self._weights = load, weights

    @classmethod
    def of(cls, limits: Limits | None, load: Floats, weights: Floats) -> CapConstraint | None:
        """None if no cap has to be checked at every step."""
        return cls(limits, load, weights) if limits is not None and len(limits.counted) else None

    def admits(self, partitions: Ints, brokers: Ints) -> Mask:
        """(n,) whether each broker stays within its caps with a replica of the partition, each
        replica considered alone.
        """
        within = np.ones(len(partitions), bool)
        for k in self._counted:
            more = self._weights[k].take(partitions)
            after = self._load[k].take(brokers) + more
            within &= (after <= self._caps[k].take(brokers)) | (more == 0)
        return within

    def admits_one(self, partition: int, broker: int) -> bool:
        """The same for one replica."""
        more, load = self._weights[:, partition], self._load[:, broker]
        for k in self._counted:
            if more[k] and load[k] + more[k] > self._caps[k, broker]:
                return False
        return True

    def admits_together(self, partitions: Ints, brokers: Ints, chosen: Mask) -> Mask:
        """(n,) of chosen replicas that each keep the caps alone, those that also keep them
        together; only one per broker that would exceed a cap.
        """
        kept, some = chosen.copy(), np.flatnonzero(chosen)
        count = self._load.shape[1]
        over = np.zeros(count, bool)
        for k in self._counted:
            arrives = np.bincount(brokers[some], self._weights[k].take(partitions[some]), count)
            over |= (self._load[k] + arrives > self._caps[k]) & (arrives > 0)
        tight = some[over[brokers[some]]]
        kept[tight] = False
        kept[tight[np.unique(brokers[tight], return_index=True)[1]]] = True
        return kept
