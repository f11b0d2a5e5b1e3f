"""What copies have received at the polls of the last minute: a row for each poll."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, insert, select

from rehome.domain.kafka import ReplicaId
from rehome.domain.run.progress import PACE_WINDOW, Gain, PollGains
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import COPY_GAINS

_NEW = insert(COPY_GAINS)
_FORGET = delete(COPY_GAINS).where(
    COPY_GAINS.c.plan_id == bindparam("of"), COPY_GAINS.c.at < bindparam("before")
)
_AFTER = (
    select(COPY_GAINS.c.at, COPY_GAINS.c.gains)
    .where(COPY_GAINS.c.plan_id == bindparam("of"), COPY_GAINS.c.at > bindparam("after"))
    .order_by(COPY_GAINS.c.at)
)
_Row = tuple[int, int, int | None, int | None]
"""Partition, broker, the broker that it is read from, bytes."""


class GainStore(Database):
    """What each copy of a plan has received, from poll to poll."""

    def gains(self, plan_id: str, after: datetime) -> list[PollGains]:
        """Of polls after this moment, oldest first; those of more than a minute ago are gone."""
        with self.reading() as connection:
            rows = connection.execute(_AFTER, {"of": plan_id, "after": after}).all()
        return [PollGains(at, tuple(_gains(by_topic))) for at, by_topic in rows]


def put_gains(connection: Connection, plan_id: str, at: datetime, gains: Collection[Gain]) -> None:
    """Record those of a poll, within its transaction."""
    by_topic: dict[str, list[_Row]] = {}
    for (topic, partition, broker), read_from, size in gains:
        by_topic.setdefault(topic, []).append((partition, broker, read_from, size))
    connection.execute(_FORGET, {"of": plan_id, "before": at - PACE_WINDOW})
    connection.execute(_NEW, {"plan_id": plan_id, "at": at, "gains": by_topic})


def _gains(by_topic: Mapping[str, Collection[_Row]]) -> Iterator[Gain]:
    for topic, rows in by_topic.items():
        for partition, broker, read_from, size in rows:
            yield Gain(ReplicaId(topic, partition, broker), read_from, size)
