"""More partitions for topics (KIP-179's alterPartitionCounts): what is asked, what is added."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from include.domain.kafka import BrokerId, TopicPartition
from include.domain.request import param_types
from include.errors import InvalidRequestError

Replicas = tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class PartitionCountsRequest:
    """A validated request.

    :param totals: topic → number of partitions that it is to have.
    :param exclude_brokers: ids that get no new replica.
    :param ignore_racks: place as if no broker had a rack.
    :param seed: breaks ties; same snapshot, request and seed give the same placement.
    """

    totals: Mapping[str, int]
    exclude_brokers: tuple[BrokerId, ...] = ()
    ignore_racks: bool = False
    seed: int = 0
    dry_run: bool = False
    approval: bool = False


def parse_partition_counts(params: Mapping[str, Any]) -> PartitionCountsRequest:
    """The raw parameters of a run as a request. Whether topics exist is for :func:`place` to say.

    :raises InvalidRequestError: lists every problem.
    """
    problems: list[str] = []
    known = ("partitions", "exclude_brokers", "ignore_racks", "seed", "dry_run", "approval")
    for name in sorted(set(params) - {*known, "kafka_config_id"}):
        problems.append(f"Unknown parameter {name!r}; known: {', '.join(known)}.")
    given = params.get("partitions") or {}
    totals = {str(topic).strip(): param_types.int_of(total) for topic, total in given.items()}
    if not totals:
        problems.append("partitions needs at least one topic with its new number of partitions.")
    problems += [
        f"partitions of {topic!r}: {given[topic]!r} is not a whole number above 0."
        for topic, total in totals.items()
        if total is None or total < 1
    ]
    excluded: tuple[BrokerId, ...] = ()
    try:
        excluded = param_types.broker_ids(params.get("exclude_brokers") or [])
    except ValueError as error:
        problems.append(f"exclude_brokers={params['exclude_brokers']!r} {error}.")
    if problems:
        raise InvalidRequestError(problems)
    return PartitionCountsRequest(
        totals={topic: int(total or 0) for topic, total in sorted(totals.items())},
        exclude_brokers=excluded,
        ignore_racks=bool(params.get("ignore_racks")),
        seed=int(params.get("seed") or 0),
        dry_run=bool(params.get("dry_run")),
        approval=bool(params.get("approval")),
    )


@dataclass(frozen=True, slots=True)
class AddedPartitions:
    """New partitions with their replicas, preferred leader first.

    :param existing: topic → number of partitions it had when this was planned.
    :param assignments: the new ones; their numbers go on where the existing ones end.
    """

    plan_id: str
    cluster_id: str
    taken_at: datetime
    existing: Mapping[str, int]
    assignments: Mapping[TopicPartition, Replicas]

    @property
    def totals(self) -> dict[str, int]:
        """Number of partitions that each topic is to have."""
        added = [partition.topic for partition in self.assignments]
        return {topic: count + added.count(topic) for topic, count in self.existing.items()}

    @property
    def plan_hash(self) -> str:
        """SHA-256 over the cluster and every new partition: what an approval is bound to."""
        content = json.dumps([self.cluster_id, self.to_json()["assignments"]])
        return hashlib.sha256(content.encode()).hexdigest()

    def of_topic(self, topic: str) -> list[Replicas]:
        """Replicas of a topic's new partitions, in order of partition."""
        return [row for tp, row in sorted(self.assignments.items()) if tp.topic == topic]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types (``new_partitions.json``); :meth:`from_json` reads it."""
        return {
            "plan_id": self.plan_id,
            "cluster_id": self.cluster_id,
            "taken_at": self.taken_at.isoformat(),
            "existing": dict(self.existing),
            "assignments": [
                {"topic": tp.topic, "partition": tp.partition, "replicas": list(row)}
                for tp, row in sorted(self.assignments.items())
            ],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AddedPartitions:
        """The inverse of :meth:`to_json`."""
        rows: Sequence[Mapping[str, Any]] = data["assignments"]
        return cls(
            data["plan_id"],
            data["cluster_id"],
            datetime.fromisoformat(data["taken_at"]),
            dict(data["existing"]),
            {TopicPartition(r["topic"], r["partition"]): tuple(r["replicas"]) for r in rows},
        )
