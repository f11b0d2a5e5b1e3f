"""Which reassignments a person is asked about, and whether they are still the same. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rehome.domain.kafka import OngoingReassignment, Replicas, TopicPartition
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.run.foreign.foreign_request import ForeignAction
from rehome.domain.run.observation import Observation
from rehome.execution.foreign.in_flight import Flight


@dataclass(frozen=True, slots=True)
class NamedReassignment:
    """One reassignment of another client, as it was seen.

    :param topic_id: "" = not known.
    :param order: its replicas before it began, preferred leader first; None = their order is not
        known: a cancel leaves them as the controller does.
    :param size_bytes: of the leader's replica; 0 = not known.
    """

    partition: TopicPartition
    topic_id: str
    entry: OngoingReassignment
    order: Replicas | None = None
    size_bytes: int = 0

    @property
    def move(self) -> Move:
        """What it changes, from the replicas before."""
        left = tuple(b for b in self.entry.replicas if b not in self.entry.adding)
        return Move(
            self.partition,
            self.order or left,
            self.entry.target,
            self.size_bytes,
            MoveReason.REQUESTED,
            causes=(MoveCause(CauseCode.FOREIGN),),
            topic_id=self.topic_id,
        )


@dataclass(frozen=True, slots=True)
class NamedReassignments:
    """What a person approves: an action on these, and nothing else.

    :param clean_throttles: of a cancel: whether others' throttles that nothing in flight uses are
        taken away.
    :param rate_bytes_per_s: of an adoption; None = it is none.
    """

    cluster_id: str
    action: ForeignAction
    reassignments: tuple[NamedReassignment, ...]
    clean_throttles: bool = False
    rate_bytes_per_s: int | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of all of it: what an approval is bound to."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    @property
    def by_partition(self) -> dict[TopicPartition, NamedReassignment]:
        """The same by partition."""
        return {each.partition: each for each in self.reassignments}

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types; :meth:`from_json` reads it."""
        return {
            "cluster_id": self.cluster_id,
            "action": self.action.value,
            "clean_throttles": self.clean_throttles,
            "rate_bytes_per_s": self.rate_bytes_per_s,
            "reassignments": [
                {
                    "topic": each.partition.topic,
                    "partition": each.partition.partition,
                    "topic_id": each.topic_id,
                    "replicas": list(each.entry.replicas),
                    "adding": list(each.entry.adding),
                    "removing": list(each.entry.removing),
                    "order": None if each.order is None else list(each.order),
                    "size_bytes": each.size_bytes,
                }
                for each in self.reassignments
            ],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> NamedReassignments:
        """The inverse of :meth:`to_json`."""
        return cls(
            content["cluster_id"],
            ForeignAction(content["action"]),
            tuple(
                NamedReassignment(
                    TopicPartition(row["topic"], row["partition"]),
                    row["topic_id"],
                    OngoingReassignment(
                        tuple(row["replicas"]), tuple(row["adding"]), tuple(row["removing"])
                    ),
                    None if row["order"] is None else tuple(row["order"]),
                    row["size_bytes"],
                )
                for row in content["reassignments"]
            ),
            content["clean_throttles"],
            content["rate_bytes_per_s"],
        )


def name_reassignments(
    flights: Collection[Flight], orders: Mapping[TopicPartition, Replicas]
) -> tuple[NamedReassignment, ...]:
    """Those of other clients among what is in flight.

    :param orders: replicas of before, preferred leader first, as far as they are known. What does
        not hold the same replicas is not taken.
    """
    return tuple(
        NamedReassignment(
            each.partition,
            each.topic_id,
            each.entry,
            order
            if (order := orders.get(each.partition)) and set(order) == {*each.originals}
            else None,
            _size(each),
        )
        for each in flights
        if each.plan_id is None
    )


def _size(flight: Flight) -> int:
    if flight.bytes_in_place is None or flight.bytes_left is None or not flight.entry.adding:
        return 0
    return (flight.bytes_in_place + flight.bytes_left) // len(flight.entry.adding)


def set_meanwhile(
    selection: NamedReassignments, observation: Observation, ours: Collection[TopicPartition]
) -> Iterator[str]:
    """What is in flight now on these partitions, and is not what was named; as sentences. One that
    has ended is not among them.

    :param ours: partitions that a plan of this ledger has in flight.
    """
    for each in selection.reassignments:
        partition, entry = each.partition, observation.ongoing.get(each.partition)
        if entry is None:
            continue
        topic_id = observation.topic_ids.get(partition.topic, "")
        if each.topic_id and topic_id and topic_id != each.topic_id:
            yield f"{partition} is of another topic of this name."
        elif partition in ours:
            yield f"{partition} is being reassigned by a plan of Rehome."
        elif entry != each.entry:
            yield (
                f"{partition} adds {list(entry.adding)} and removes {list(entry.removing)}, and "
                f"not {list(each.entry.adding)} and {list(each.entry.removing)}."
            )
