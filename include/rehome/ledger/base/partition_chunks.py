"""Rows of many partitions, read or changed by few statements."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from sqlalchemy import ColumnElement, Table, and_, bindparam, tuple_

from rehome.domain.kafka import TopicPartition

_CHUNK = 200
"""Partitions per statement: up to four parameters each, below every database's limit."""


def at_partitions(table: Table) -> ColumnElement[bool]:
    """That a row of a table is of one of a chunk's partitions: its parameters are those of
    :func:`chunks`.

    Topics and numbers are named once more alone for SQLite's sake, whose indexes serve single
    columns only: by pairs it reads all rows of a plan.
    """
    topic, partition = table.c.topic, table.c.partition
    return and_(
        topic.in_(bindparam("topics", expanding=True)),
        partition.in_(bindparam("numbers", expanding=True)),
        tuple_(topic, partition).in_(bindparam("places", expanding=True)),
    )


def chunks(partitions: Collection[TopicPartition]) -> Iterator[dict[str, Any]]:
    """Partitions in order, as many at a time as one statement takes: so they are of few topics."""
    ordered = sorted(partitions)
    for at in range(0, len(ordered), _CHUNK):
        places = [(each.topic, each.partition) for each in ordered[at : at + _CHUNK]]
        topics, numbers = map(sorted, map(set, zip(*places, strict=True)))
        yield {"places": places, "topics": topics, "numbers": numbers}
