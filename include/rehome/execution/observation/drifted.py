"""What became of a plan's partitions since its snapshot, as types."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from rehome.domain.kafka import BrokerId


class DriftKind(enum.StrEnum):
    """What became of a partition since the snapshot."""

    UNREADABLE = "unreadable"
    """Its topic is gone, or hidden."""
    OTHER_TOPIC = "other_topic"
    """Its topic was deleted and created again."""
    GONE = "gone"
    REPLICAS = "replicas"
    """It has other ones."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How a partition is not what its plan started from.

    :param replicas: with REPLICAS, those that it has; ``planned_on``: those that it had.
    """

    kind: DriftKind
    replicas: tuple[BrokerId, ...] = ()
    planned_on: tuple[BrokerId, ...] = ()
