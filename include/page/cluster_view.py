"""A cluster as its newest snapshot shows it: brokers by rack, and what is not well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from include.cluster.snapshot.model import Snapshot
from include.domain.kafka import BrokerId, TopicPartition

NAMED = 20
"""Partitions and topics that are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class BrokerState:
    """One broker. Bytes; None where it is not known.

    :param rack: its path in the rack tree; empty = none.
    :param problem: why it did not answer; "" = it did.
    :param leaders: partitions that it leads now; ``out_of_sync``: replicas of it out of the ISR.
    :param total_bytes, usable_bytes: of its log dirs that are not offline.
    """

    broker: BrokerId
    rack: tuple[str, ...]
    live: bool
    problem: str
    replicas: int
    leaders: int
    out_of_sync: int
    size_bytes: int | None
    total_bytes: int | None
    usable_bytes: int | None
    offline_log_dirs: int
    cordoned_log_dirs: int

    @property
    def used(self) -> float | None:
        """Part of its disks that is in use, by whatever; None = not known."""
        if not self.total_bytes or self.usable_bytes is None:
            return None
        return 1 - self.usable_bytes / self.total_bytes


@dataclass(frozen=True, slots=True)
class Named:
    """Some of many.

    :param count: how many there are; ``first``: the first of them.
    """

    count: int
    first: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster at the time of a snapshot.

    :param racks: rack → its brokers, in the order of the tree; one rack without a name where
        brokers have none.
    :param under_replicated: partitions with a replica out of the ISR.
    :param offline: partitions without a leader.
    :param reassigning: partitions that were being reassigned, by any client.
    :param throttled: topics with lists of throttled replicas.
    """

    cluster_id: str
    taken_at: datetime
    racks: tuple[tuple[str, tuple[BrokerState, ...]], ...]
    topics: int
    partitions: int
    under_replicated: Named
    offline: Named
    reassigning: Named
    throttled: Named
    hidden_topics: int

    @property
    def brokers(self) -> tuple[BrokerState, ...]:
        """Every broker, rack by rack."""
        return tuple(broker for _, brokers in self.racks for broker in brokers)


def cluster_view(snapshot: Snapshot) -> ClusterView:
    """What a snapshot shows."""
    replicas = snapshot.replicas
    by_rack: dict[tuple[str, ...], list[BrokerState]] = {}
    for broker in _brokers(snapshot):
        by_rack.setdefault(broker.rack, []).append(broker)
    racks = tuple(("/".join(("", *rack)), tuple(by_rack[rack])) for rack in sorted(by_rack))
    flying = pc.or_(replicas["adding"], replicas["removing"])
    leads = replicas.group_by(["topic", "partition"]).aggregate([("is_leader", "max")])
    lists = ("leader_throttled_replicas", "follower_throttled_replicas")
    throttled = pc.or_(*(pc.fill_null(pc.not_equal(snapshot.topics[n], ""), False) for n in lists))
    return ClusterView(
        cluster_id=snapshot.cluster_id,
        taken_at=snapshot.taken_at,
        racks=racks,
        topics=int(pc.sum(snapshot.topics["visible"]).as_py() or 0),
        partitions=leads.num_rows,
        under_replicated=_partitions(replicas.filter(pc.invert(replicas["in_isr"]))),
        offline=_partitions(leads.filter(pc.invert(leads["is_leader_max"]))),
        reassigning=_partitions(replicas.filter(flying)),
        throttled=_named(snapshot.topics.filter(throttled)["topic"].to_pylist()),
        hidden_topics=len(snapshot.hidden_topics),
    )


def _brokers(snapshot: Snapshot) -> list[BrokerState]:
    replicas, dirs = snapshot.replicas, snapshot.log_dirs
    held = replicas.group_by("broker").aggregate(
        [("broker", "count"), ("is_leader", "sum"), ("in_isr", "sum"), ("size_bytes", "sum")]
    )
    of_broker = {row["broker"]: row for row in held.to_pylist()}
    online = dirs.filter(pc.invert(dirs["offline"]))
    room = online.group_by("broker").aggregate([("total_bytes", "sum"), ("usable_bytes", "sum")])
    room_of = {row["broker"]: row for row in room.to_pylist()}
    off = dirs.group_by("broker").aggregate([("offline", "sum"), ("cordoned", "sum")])
    off_of = {row["broker"]: row for row in off.to_pylist()}
    found = []
    for row in sorted(snapshot.brokers.to_pylist(), key=lambda row: row["broker"]):
        holds, has = of_broker.get(row["broker"], {}), room_of.get(row["broker"], {})
        lacks = off_of.get(row["broker"], {})
        count = holds.get("broker_count", 0)
        answered = row["live"] and row["answered"]
        found.append(
            BrokerState(
                row["broker"],
                tuple(row["rack_path"]),
                row["live"],
                "" if answered else row["error"] or "it did not answer",
                count,
                holds.get("is_leader_sum") or 0,
                count - (holds.get("in_isr_sum") or 0),
                holds.get("size_bytes_sum") or (0 if answered else None),
                has.get("total_bytes_sum"),
                has.get("usable_bytes_sum"),
                lacks.get("offline_sum") or 0,
                lacks.get("cordoned_sum") or 0,
            )
        )
    return found


def _partitions(rows: pa.Table) -> Named:
    keys = rows.group_by(["topic", "partition"]).aggregate([])
    found = sorted(
        map(tuple, zip(*(keys[n].to_pylist() for n in ("topic", "partition")), strict=True))
    )
    return _named([str(TopicPartition(*key)) for key in found])


def _named(names: Sequence[str]) -> Named:
    return Named(len(names), tuple(names[:NAMED]))
