"""Since when reassignments of any client are known: Kafka keeps no time, and no identity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import RowMapping, bindparam, delete, insert, select, update

from rehome.domain.clock import new_id
from rehome.domain.kafka import BrokerId, OngoingReassignment, TopicPartition
from rehome.ledger.base.database import Database
from rehome.ledger.base.reassignment_rows import SEEN_REASSIGNMENTS

COMPARED_AFTER = timedelta(seconds=5)
"""A reading is kept to be compared with until it is so old."""
_TABLE = SEEN_REASSIGNMENTS.c
_ONE = (
    (_TABLE.cluster_id == bindparam("of"))
    & (_TABLE.topic == bindparam("of_topic"))
    & (_TABLE.partition == bindparam("of_partition"))
)
_DELETE = delete(SEEN_REASSIGNMENTS).where(_ONE)
_READ_AGAIN = (
    update(SEEN_REASSIGNMENTS)
    .where(_ONE)
    .values(
        read_at=bindparam("now"),
        bytes_in_place=bindparam("in_place"),
        rate_bytes_per_s=bindparam("rate"),
    )
)


@dataclass(frozen=True, slots=True)
class SeenReassignment:
    """A reassignment in flight, as one reading shows it.

    :param topic_id: Kafka's; "" = the brokers know none, or do not tell.
    :param leader: of its partition; None = there is none, or it is not known.
    :param bytes_in_place: what its new replicas hold; None = not known.
    """

    entry: OngoingReassignment
    topic_id: str = ""
    leader: BrokerId | None = None
    bytes_in_place: int | None = None


@dataclass(frozen=True, slots=True)
class KnownReassignment:
    """What the ledger knows of a reassignment in flight.

    :param seen_id: its identity in the ledger; Kafka gives it none.
    :param first_seen_at: when a reading first showed it: it may have started earlier.
    :param read_at: of an earlier reading, with what its new replicas held then.
    :param rate_bytes_per_s: what they had received until then, since the reading before; None = not
        known.
    """

    seen_id: str
    entry: OngoingReassignment
    topic_id: str
    first_seen_at: datetime
    first_leader: BrokerId | None
    read_at: datetime
    bytes_in_place: int | None
    rate_bytes_per_s: float | None = None

    def rate_until(self, at: datetime, bytes_in_place: int | None) -> float | None:
        """What its new replicas have received per second from that reading to a later one; None =
        not known.
        """
        passed_s = (at - self.read_at).total_seconds()
        if self.bytes_in_place is None or bytes_in_place is None or passed_s <= 0:
            return None
        return max(0, bytes_in_place - self.bytes_in_place) / passed_s

    def shows(self, reading: SeenReassignment) -> bool:
        """Whether a reading shows the same one: another target, or topic, is another one."""
        topics = {self.topic_id, reading.topic_id} - {""}
        return self.entry == reading.entry and len(topics) < 2


class SeenReassignmentStore(Database):
    """Reassignments in flight, as readings have shown them."""

    def note_seen(
        self, cluster_id: str, at: datetime, readings: Mapping[TopicPartition, SeenReassignment]
    ) -> dict[TopicPartition, KnownReassignment]:
        """Record everything that is in flight on a cluster; what is not has ended, and is
        forgotten.

        :param at: when it was read. A reading older than the last one changes nothing.
        :returns: what is known of each, with the reading before this one; of one that is new, with
            this one.
        """
        with self.writing() as connection:
            records = _records_of(connection.execute(_of(cluster_id)).mappings())
            if any(at < each.read_at for each in records.values()):
                return {
                    p: each
                    for p, each in records.items()
                    if p in readings and each.shows(readings[p])
                }
            stay = {
                p: each for p, each in records.items() if p in readings and each.shows(readings[p])
            }
            over = [_key(cluster_id, p) for p in records if p not in stay]
            new = {p: _new(each, at) for p, each in readings.items() if p not in stay}
            again = [
                {
                    **_key(cluster_id, p),
                    "now": at,
                    "in_place": (bytes_in_place := readings[p].bytes_in_place),
                    "rate": each.rate_until(at, bytes_in_place),
                }
                for p, each in stay.items()
                if at - each.read_at >= COMPARED_AFTER
            ]
            if over:
                connection.execute(_DELETE, over)
            if again:
                connection.execute(_READ_AGAIN, again)
            if new:
                rows = [_row(cluster_id, p, each) for p, each in new.items()]
                connection.execute(insert(SEEN_REASSIGNMENTS), rows)
        return {**stay, **new}

    def seen_reassignments(self, cluster_id: str) -> dict[TopicPartition, KnownReassignment]:
        """What was in flight on a cluster when it was last read."""
        with self.reading() as connection:
            return _records_of(connection.execute(_of(cluster_id)).mappings())


def _of(cluster_id: str) -> Any:
    return select(SEEN_REASSIGNMENTS).where(_TABLE.cluster_id == cluster_id)


def _key(cluster_id: str, partition: TopicPartition) -> dict[str, Any]:
    return {
        "of": cluster_id,
        "of_topic": partition.topic,
        "of_partition": partition.partition,
    }


def _new(reading: SeenReassignment, at: datetime) -> KnownReassignment:
    return KnownReassignment(
        new_id(), reading.entry, reading.topic_id, at, reading.leader, at, reading.bytes_in_place
    )


def _row(cluster_id: str, partition: TopicPartition, record: KnownReassignment) -> dict[str, Any]:
    return {
        "cluster_id": cluster_id,
        "topic": partition.topic,
        "partition": partition.partition,
        "seen_id": record.seen_id,
        "topic_id": record.topic_id,
        "replicas": list(record.entry.replicas),
        "adding": list(record.entry.adding),
        "removing": list(record.entry.removing),
        "first_seen_at": record.first_seen_at,
        "first_leader": record.first_leader,
        "read_at": record.read_at,
        "bytes_in_place": record.bytes_in_place,
        "rate_bytes_per_s": record.rate_bytes_per_s,
    }


def _records_of(rows: Iterable[RowMapping]) -> dict[TopicPartition, KnownReassignment]:
    return {
        TopicPartition(row["topic"], row["partition"]): KnownReassignment(
            row["seen_id"],
            OngoingReassignment(
                tuple(row["replicas"]), tuple(row["adding"]), tuple(row["removing"])
            ),
            row["topic_id"],
            row["first_seen_at"],
            row["first_leader"],
            row["read_at"],
            row["bytes_in_place"],
            row["rate_bytes_per_s"],
        )
        for row in rows
    }
