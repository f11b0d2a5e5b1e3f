"""Caps of brokers and broker sets, on the dense indexes of a cluster.

A cap is the most that a broker may hold. No plan takes a broker above its cap; one that is above it
already never gets more. A *group* is all topics that may use the same brokers: one group per broker
set, and one for all other topics.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rehome.domain.array_types import Floats, Ints, Mask
from rehome.domain.request.limits import BrokerSet, set_of_topic
from rehome.domain.resources import PLACED, Resource

NO_SET = "no broker set"
"""The name of the group of all topics that no set names."""


@dataclass(frozen=True)
class Limits:
    """What brokers may hold.

    :param placed: (K, B) cap on each of :data:`PLACED`; infinite = none. The cap on bytes holds for
        the end of the plan; while it runs, headroom is what counts.
    :param led: (L, B) cap on each of :data:`LED`.
    :param group_of: (T,) the group of each topic; empty where there are no sets.
    :param allowed: (G, B) brokers that may hold replicas of each group; the first one is that of
        topics of no set.
    :param names: of the groups.
    :param bound_from: the first group of topics that a rebalance brings to its destinations: their
        brokers are the destinations, within their broker set where they have one.
    """

    placed: Floats
    led: Floats
    group_of: Ints
    allowed: Mask
    names: tuple[str, ...]
    sets: tuple[BrokerSet, ...] = ()
    bound_from: int = 1_000_000_000

    def set_number(self, topic: str, internal: bool) -> int | None:
        """The index of a topic's broker set; None = it has none."""
        broker_set = set_of_topic(self.sets, topic, internal=internal)
        return None if broker_set is None else self.sets.index(broker_set)

    def group_of_name(self, topics: tuple[str, ...], topic: str) -> int:
        """The group of a topic, one that does not exist yet included."""
        if topic in topics:
            return int(self.group_of[topics.index(topic)])
        broker_set = set_of_topic(self.sets, topic)
        return 0 if broker_set is None else 1 + self.sets.index(broker_set)

    def groups_of(self, topic_of: Ints) -> Ints:
        """(P,) the group of each partition; all 0 without sets.

        :param topic_of: (P,) index of its topic.
        """
        if not self.has_sets:
            return np.zeros(len(topic_of), np.int64)
        groups: Ints = self.group_of[topic_of]
        return groups

    @cached_property
    def has_sets(self) -> bool:
        """Whether any topic may not use some broker."""
        return not bool(self.allowed.all())

    @cached_property
    def counted(self) -> Ints:
        """Rows of :data:`PLACED` whose caps are checked at every step; bytes are checked by
        headroom.
        """
        rows = [k for k, r in enumerate(PLACED) if r is not Resource.BYTES]
        return np.array([k for k in rows if np.isfinite(self.placed[k]).any()], np.int64)

    @property
    def leads(self) -> bool:
        """Whether any broker has a cap on leaders or on bytes out."""
        return bool(np.isfinite(self.led).any())
