"""Caps of brokers and broker sets, on the dense indexes of a cluster.

A cap is the most that a broker may hold: no plan takes a broker above it, or further above. A
*group* is all topics that are bound to the same brokers: those of a broker set, and those of none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from include.domain.array_types import Floats, Ints, Mask
from include.domain.request.limits import BrokerSet, set_of_topic
from include.domain.resources import PLACED, Resource

NO_SET = "no broker set"
"""The name of the group of all topics that no set names."""


@dataclass(frozen=True)
class Limits:
    """What brokers may hold.

    :param placed: (K, B) the most of each of :data:`PLACED`; infinite = any. That of bytes is what
        a broker may hold in the end; at every moment its room counts.
    :param led: (L, B) the most of each of :data:`LED`.
    :param group_of: (T,) the group of each topic; empty where there are no sets.
    :param allowed: (G, B) brokers that may hold replicas of each group; the first one is that of
        topics of no set.
    :param names: of the groups.
    """

    placed: Floats
    led: Floats
    group_of: Ints
    allowed: Mask
    names: tuple[str, ...]
    sets: tuple[BrokerSet, ...] = ()

    def group_of_name(self, topics: tuple[str, ...], topic: str) -> int:
        """The group of a topic, one that does not exist yet included."""
        if topic in topics:
            return int(self.group_of[topics.index(topic)])
        found = set_of_topic(self.sets, topic)
        return 0 if found is None else 1 + self.sets.index(found)

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
        """Whether any topic is kept off any broker."""
        return not bool(self.allowed.all())

    @cached_property
    def counted(self) -> Ints:
        """Rows of :data:`PLACED` whose caps are kept at every step; bytes are kept by room."""
        rows = [k for k, r in enumerate(PLACED) if r is not Resource.BYTES]
        return np.array([k for k in rows if np.isfinite(self.placed[k]).any()], np.int64)

    @property
    def leads(self) -> bool:
        """Whether any broker has a cap on what it leads."""
        return bool(np.isfinite(self.led).any())
