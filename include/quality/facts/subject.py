"""What a plan's gate is given, and what it works out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from include.cluster.snapshot.model import Snapshot
from include.domain.kafka import BrokerId, TopicPartition
from include.domain.plan.move_table import moves_table
from include.domain.plan.plan import Plan
from include.domain.request.request import Action, ReassignmentRequest
from include.quality.facts.disks import Disks
from include.quality.facts.jagged import Ints, Mask
from include.quality.facts.move_columns import Moved
from include.quality.facts.partitions import Partitions
from include.quality.facts.scope import requested_entries, topics_in_scope


@dataclass(frozen=True)
class Checked:
    """A plan, the request and the snapshot it was made for, and the files that will be written.

    :param reassignment, rollback: content of Kafka's files.
    :param digests: name of each of these files → SHA-256 of its bytes.
    :param min_free: part of each log dir that must stay free at every moment.
    """

    snapshot: Snapshot
    plan: Plan
    request: ReassignmentRequest
    reassignment: Mapping[str, Any]
    rollback: Mapping[str, Any]
    min_free: float
    digests: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def moved(self) -> Moved:
        """The plan's moves beside the snapshot."""
        return Moved(moves_table(self.plan.moves), Partitions.of(self.snapshot))

    @cached_property
    def disks(self) -> Disks:
        """The brokers' log dirs."""
        return Disks.of(self.snapshot, self.min_free)

    @cached_property
    def brokers(self) -> Ints:
        """(B,) ids of the brokers that the snapshot lists."""
        ids: Ints = self.snapshot.brokers.column("broker").to_numpy().astype(np.int64)
        return ids

    @cached_property
    def live(self) -> Mask:
        """(B,) which of them are alive."""
        live: Mask = self.snapshot.brokers.column("live").to_numpy().astype(bool)
        return live

    @cached_property
    def rack_paths(self) -> list[tuple[str, ...]]:
        """Rack path of each of them."""
        return [tuple(path) for path in self.snapshot.brokers.column("rack_path").to_pylist()]

    @property
    def rack_levels(self) -> int:
        """Depth of the rack tree."""
        return max((len(path) for path in self.rack_paths), default=0)

    @property
    def drained(self) -> tuple[BrokerId, ...]:
        """Brokers that are to be emptied."""
        if self.request.action is Action.REPLACE:
            return tuple(self.request.replacements)
        return self.request.brokers if self.request.action is Action.DRAIN else ()

    @property
    def demoted(self) -> tuple[BrokerId, ...]:
        """Brokers that are to lead nothing."""
        return self.request.brokers if self.request.action is Action.DEMOTE else ()

    @cached_property
    def topics_in_scope(self) -> frozenset[str]:
        """Topics that the request may move."""
        return topics_in_scope(self.snapshot, self.request)

    @cached_property
    def requested(self) -> dict[TopicPartition, tuple[list[BrokerId], list[str]]]:
        """Replicas and log dirs per partition of the operator's own file."""
        return requested_entries(self.request)

    @cached_property
    def planned(self) -> list[TopicPartition]:
        """The partition of each row of the moves."""
        table = self.moved.table
        columns = (table.column(name).to_pylist() for name in ("topic", "partition"))
        return [TopicPartition(*names) for names in zip(*columns, strict=True)]
