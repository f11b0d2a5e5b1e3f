"""More partitions for topics (KIP-179's alterPartitionCounts), and new topics: what is asked, what
is added.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rehome.domain.kafka import BrokerId, Replicas, TopicPartition
from rehome.domain.request.fields import types
from rehome.domain.request.fields.shared import (
    WHAT,
    AskApproval,
    BrokerSets,
    Caps,
    Cluster,
    Dryness,
)
from rehome.domain.request.limits import BrokerCaps, BrokerSet
from rehome.domain.request.param_maps import NewTopic
from rehome.domain.request.validation import read_params
from rehome.domain.text import brokers_text
from rehome.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class PartitionCountsRequest:
    """A validated request.

    :param totals: topic → number of partitions that it is to have.
    :param new_topics: topic that is to be created → its partitions, replicas and configs.
    :param exclude_brokers: ids that get no new replica.
    :param ignore_racks: place as if no broker had a rack.
    :param caps, broker_sets: limits that are kept; None = the setting's, else none.
    :param force_simple_assignment: by Kafka's own striping, which knows no racks (KIP-879).
    :param seed: breaks ties; same snapshot, request and seed give the same placement.
    :param assignments: topic → replicas of each of its new partitions, in order of partition,
        where a person has chosen them.
    :param destinations: the only brokers that get new replicas; empty = any.
    """

    totals: Mapping[str, int]
    new_topics: Mapping[str, NewTopic] = field(default_factory=dict)
    exclude_brokers: tuple[BrokerId, ...] = ()
    ignore_racks: bool = False
    force_simple_assignment: bool = False
    seed: int = 0
    dry_run: bool = False
    approval: bool = False
    caps: BrokerCaps | None = None
    broker_sets: tuple[BrokerSet, ...] | None = None
    assignments: Mapping[str, tuple[Replicas, ...]] = field(default_factory=dict)
    destinations: tuple[BrokerId, ...] = ()


class PartitionCountsParams(BaseModel):
    """What a run of `add_partitions` takes, and how forms show it."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    kafka_config_id: Cluster = "kafka_default"
    partitions: Annotated[
        types.PartitionCounts,
        WHAT,
        Field(
            default_factory=dict,
            title="Partitions",
            description="How many partitions each topic is to have, old and new ones together.",
            examples=[{"orders": 12, "payments": 24}],
        ),
    ]
    new_topics: Annotated[
        types.NewTopics,
        WHAT,
        Field(
            default_factory=dict,
            title="New topics",
            description="Topics to create: partitions, replication_factor and configs of each.",
            examples=[
                {
                    "orders": {
                        "partitions": 12,
                        "replication_factor": 3,
                        "configs": {"min.insync.replicas": "2"},
                    }
                }
            ],
        ),
    ]
    assignments: Annotated[
        types.GivenReplicas,
        WHAT,
        Field(
            default_factory=dict,
            title="Replicas of the new partitions",
            description="Where the new partitions of a topic go, if you choose that yourself: a "
            "list of broker ids for each, in the order of the new partitions, the preferred leader "
            "first. Topics without lists are placed.",
            examples=[{"orders": [[1, 2, 3], [2, 3, 4]]}],
        ),
    ]
    destinations: Annotated[
        types.BrokerIds,
        WHAT,
        Field(
            title="Destinations",
            description="Ids of the only brokers that get new replicas; none means any.",
            examples=["5", "5, 6"],
        ),
    ] = ()
    exclude_brokers: Annotated[
        types.BrokerIds,
        WHAT,
        Field(
            title="Brokers that get nothing",
            description="Ids of brokers that get none of the new replicas.",
            examples=["3", "3, 4"],
        ),
    ] = ()
    ignore_racks: Annotated[
        types.YesOrNo,
        WHAT,
        Field(title="Ignore racks", description="Place as if no broker had a rack."),
    ] = False
    caps: Caps = None
    broker_sets: BrokerSets = None
    force_simple_assignment: Annotated[
        types.YesOrNo,
        WHAT,
        Field(
            title="Kafka's own placement",
            description="Place as Kafka does without racks, instead of by the rings of the rack "
            "tree (KIP-879's forceSimpleAssignment).",
        ),
    ] = False
    seed: Annotated[
        int,
        types.whole_number(0),
        WHAT,
        Field(
            title="Seed",
            description="Breaks ties: the same cluster, request and seed give the same placement.",
            examples=[0, 7],
        ),
    ] = 0
    dry_run: Dryness = False
    approval: AskApproval = False


def parse_partition_counts(params: Mapping[str, Any]) -> PartitionCountsRequest:
    """The raw parameters of a run as a request. Whether topics exist is for :func:`place` to say.

    :raises InvalidRequestError: lists every problem.
    """
    read = read_params(PartitionCountsParams, params)
    problems = list(read.problems)
    new_counts = read.values.partitions or read.values.new_topics
    if not new_counts and not {"partitions", "new_topics"} & read.failed:
        problems.append(
            "partitions needs at least one topic with its new number of partitions, or new_topics "
            "one to create."
        )
    problems += [
        f"{topic} is named in partitions and in new_topics."
        for topic in sorted(read.values.partitions.keys() & read.values.new_topics.keys())
    ]
    topics = read.values.partitions.keys() | read.values.new_topics.keys()
    if not {"partitions", "new_topics"} & read.failed:
        problems += [
            f"assignments name {topic}, and neither partitions nor new_topics does."
            for topic in sorted(read.values.assignments.keys() - topics)
        ]
    both = sorted(set(read.values.destinations) & set(read.values.exclude_brokers))
    if both:
        problems.append(f"{brokers_text(both).capitalize()}: in destinations and exclude_brokers.")
    if problems:
        raise InvalidRequestError(problems)
    return PartitionCountsRequest(
        totals=read.values.partitions,
        new_topics=read.values.new_topics,
        force_simple_assignment=read.values.force_simple_assignment,
        exclude_brokers=read.values.exclude_brokers,
        ignore_racks=read.values.ignore_racks,
        seed=read.values.seed,
        dry_run=read.values.dry_run,
        approval=read.values.approval,
        caps=read.values.caps,
        broker_sets=read.values.broker_sets,
        assignments=read.values.assignments,
        destinations=read.values.destinations,
    )


@dataclass(frozen=True, slots=True)
class AddedPartitions:
    """New partitions with their replicas, preferred leader first.

    :param existing: topic → number of partitions it had when this was planned.
    :param assignments: the new ones; their numbers go on where the existing ones end.
    :param new_topics: topic that is to be created → its configs.
    """

    plan_id: str
    cluster_id: str
    taken_at: datetime
    existing: Mapping[str, int]
    assignments: Mapping[TopicPartition, Replicas]
    new_topics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def totals(self) -> dict[str, int]:
        """Number of partitions that each topic is to have."""
        added = [partition.topic for partition in self.assignments]
        return {topic: count + added.count(topic) for topic, count in self.existing.items()}

    @property
    def plan_hash(self) -> str:
        """SHA-256 over the cluster and every new partition: what an approval is bound to."""
        plain = self.to_json()
        content = [self.cluster_id, plain["assignments"]]
        if self.new_topics:  # without any it is as an earlier Rehome has had it approved
            content.append(plain["new_topics"])
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

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
            "new_topics": {
                topic: dict(sorted(configs.items()))
                for topic, configs in sorted(self.new_topics.items())
            },
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
            data.get("new_topics", {}),
        )
