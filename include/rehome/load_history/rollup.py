"""A rollup: what partitions did in a span of time, small enough to keep, made to be added up.

Rollups of spans that follow each other merge into that of both, so that a day grows by one
interval at a time and a week is seven days added up: no history is ever sorted again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rehome.domain.array_types import Floats, Ints
from rehome.load_history.bytes_written import Interval
from rehome.load_history.histogram import Histogram
from rehome.load_history.key_codes import (
    distinct,
    found_at,
    keys_of,
    partition_numbers,
    recode,
    topic_codes,
)
from rehome.load_history.log_readings import Readings

ROLLUP = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("topic_id", pa.string(), nullable=False),
        *(
            pa.field(name, pa.float64(), nullable=False)
            for name in (
                *("in_s", "bytes_in", "max_bytes_in_per_s", "messages"),
                *("measured_bytes", "measured_messages", "least_bytes", "added_per_record"),
                *("out_s", "bytes_out", "max_bytes_out_per_s"),
                *("growth_s", "grown_bytes"),
            )
        ),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("leader_changes", pa.int32(), nullable=False),
        pa.field("truncations", pa.int32(), nullable=False),
        pa.field("unread", pa.int32(), nullable=False),
        *(
            pa.field(name, pa.list_(kind), nullable=False)
            for direction in ("in", "out")
            for name, kind in (
                (f"{direction}_bins", pa.int16()),
                (f"{direction}_bin_s", pa.float64()),
            )
        ),
    ]
)
_KEYS = {"topic", "partition", "topic_id"}
_NUMBERS = [f.name for f in ROLLUP if f.name not in _KEYS and not pa.types.is_list(f.type)]
_LATEST = {"size_bytes"}
_GREATEST = {"max_bytes_in_per_s", "max_bytes_out_per_s", "added_per_record"}
_INSTEAD = {"least_bytes": "measured_bytes"}
"""What rollups say that were written before there was such a column; else it is zero there."""
_DIRECTIONS = ("in", "out")
_METADATA = b"rehome"


@dataclass(frozen=True)
class Span:
    """When a rollup's snapshots were taken. Times are ISO 8601, UTC.

    :param snapshots: how many went into it.
    :param first: when the first interval began; ``through`` when the last one ended.
    :param gaps: spans without a snapshot, longer than an interval may be: ``[from, to]`` each.
    :param unread: why groups' offsets are not known in the last snapshot.
    """

    snapshots: int = 0
    first: str = ""
    through: str = ""
    gaps: tuple[tuple[str, str], ...] = ()
    unread: tuple[str, ...] = ()

    def then(self, later: Span) -> Span:
        """Both spans in one."""
        return Span(
            snapshots=self.snapshots + later.snapshots,
            first=self.first or later.first,
            through=later.through or self.through,
            gaps=(*self.gaps, *later.gaps),
            unread=later.unread,
        )


@dataclass(frozen=True)
class Rollup:
    """P partitions, ascending by topic and partition, over a span.

    :param topics: sorted names, with their ``topic_ids``.
    :param keys: (P,) see :func:`rehome.load_history.key_codes.keys_of`.
    :param numbers: column of :data:`ROLLUP` → (P,) values.
    :param rates: direction (in, out) → how long each partition ran at which rate.
    """

    topics: tuple[str, ...] = ()
    topic_ids: tuple[str, ...] = ()
    keys: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    numbers: dict[str, Floats] = field(
        default_factory=lambda: {name: np.zeros(0) for name in _NUMBERS}
    )
    rates: dict[str, Histogram] = field(
        default_factory=lambda: {name: Histogram.empty() for name in _DIRECTIONS}
    )
    span: Span = field(default_factory=Span)

    def record_bytes(self, now: Readings) -> Floats:
        """(P of ``now``,) mean size of a record where it was measured, or the most that one has
        added to a compacted log; else NaN.
        """
        at = found_at(recode(now.keys, now.topics, self.topics), self.keys)
        written, messages = self.numbers["measured_bytes"], self.numbers["measured_messages"]
        added = self.numbers["added_per_record"]
        mean = np.where(added > 0, added, np.nan)
        np.divide(written, messages, out=mean, where=messages > 0)
        ids = _ids(self)
        is_same_topic = np.array(
            [ids.get(t) == i for t, i in zip(now.topics, now.topic_ids, strict=True)]
        )
        if not len(mean) or not len(now.keys):
            return np.full(len(now.keys), np.nan)
        return np.where((at >= 0) & is_same_topic[topic_codes(now.keys)], mean[at], np.nan)

    def merge(self, later: Rollup) -> Rollup:
        """Both spans in one; ``later`` follows.

        A topic that was created anew in between begins anew: what the one of the same name did
        before is not its history.
        """
        topics = tuple(sorted({*self.topics, *later.topics}))
        before = _ids(self)
        ids = before | _ids(later)
        old, new = (recode(r.keys, r.topics, topics) for r in (self, later))
        gone = np.array([before.get(t, ids[t]) != ids[t] for t in topics], bool)
        if len(old):
            old = np.where(gone[topic_codes(old)], -1, old)
        keys = distinct(np.concatenate([old[old >= 0], new]))
        at_old, at_new = np.where(old >= 0, found_at(old, keys), -1), found_at(new, keys)
        return Rollup(
            topics=topics,
            topic_ids=tuple(ids[topic] for topic in topics),
            keys=keys,
            numbers={
                name: _join(name, len(keys), self.numbers[name], at_old, values, at_new)
                for name, values in later.numbers.items()
            },
            rates={
                name: self.rates[name].move_rows(at_old).merge(later.rates[name].move_rows(at_new))
                for name in _DIRECTIONS
            },
            span=self.span.then(later.span),
        )

    def table(self) -> pa.Table:
        """As :data:`ROLLUP`, with the span in the schema's metadata."""
        names = np.array(self.topics, object)
        ids = np.array(self.topic_ids, object)
        codes = topic_codes(self.keys)
        columns: dict[str, Any] = {
            "topic": names[codes] if len(codes) else [],
            "partition": partition_numbers(self.keys),
            "topic_id": ids[codes] if len(codes) else [],
            **self.numbers,
        }
        for name, rates in self.rates.items():
            lengths, bins, seconds = rates.to_lists(len(self.keys))
            ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
            columns[f"{name}_bins"] = pa.ListArray.from_arrays(ends, pa.array(bins, pa.int16()))
            columns[f"{name}_bin_s"] = pa.ListArray.from_arrays(ends, pa.array(seconds))
        arrays = [
            column if isinstance(column, pa.Array) else pa.array(column).cast(kind.type)
            for kind, column in ((f, columns[f.name]) for f in ROLLUP)
        ]
        content = json.dumps(self.span.__dict__)
        return pa.Table.from_arrays(arrays, schema=ROLLUP.with_metadata({_METADATA: content}))

    @classmethod
    def from_table(cls, table: pa.Table) -> Rollup:
        """The inverse of :meth:`table`. The rows may be some of those that it wrote."""
        names = table.column("topic").to_pylist()
        ids = dict(zip(names, table.column("topic_id").to_pylist(), strict=True))
        topics = tuple(sorted(ids))
        place = {topic: code for code, topic in enumerate(topics)}
        keys = keys_of(
            np.array([place[name] for name in names], np.int64),
            table.column("partition").to_numpy().astype(np.int64),
        )
        if (keys[1:] < keys[:-1]).any():
            order = np.argsort(keys, kind="stable")
            keys, table = keys[order], table.take(order)
        return cls(
            topics=topics,
            topic_ids=tuple(ids[topic] for topic in topics),
            keys=keys,
            numbers={name: _number(table, name) for name in _NUMBERS},
            rates={name: _histogram(table, name) for name in _DIRECTIONS},
            span=span_in(table.schema.metadata or {}),
        )


def span_in(metadata: Mapping[bytes, bytes]) -> Span:
    """The span in the metadata of a rollup's schema."""
    content = json.loads(metadata.get(_METADATA, b"{}"))
    return replace(
        Span(**content),
        gaps=tuple((start, end) for start, end in content.get("gaps", ())),
        unread=tuple(content.get("unread", ())),
    )


def rollup_of(interval: Interval, now: Readings, first: str) -> Rollup:
    """One interval as a rollup.

    :param first: when it began.
    """
    seconds = interval.seconds
    known_in, known_out = ~np.isnan(interval.bytes_in), ~np.isnan(interval.bytes_out)
    grown = ~np.isnan(interval.grown_bytes)
    rate_in, rate_out = interval.bytes_in / seconds, interval.bytes_out / seconds
    messages = np.nan_to_num(interval.messages)
    return Rollup(
        topics=now.topics,
        topic_ids=now.topic_ids,
        keys=now.keys,
        numbers={
            "in_s": known_in * seconds,
            "bytes_in": np.nan_to_num(interval.bytes_in),
            "max_bytes_in_per_s": np.nan_to_num(rate_in),
            "messages": messages,
            "measured_bytes": np.where(interval.measured, np.nan_to_num(interval.bytes_in), 0.0),
            "measured_messages": np.where(interval.measured, messages, 0.0),
            "least_bytes": np.nan_to_num(interval.least_bytes),
            "added_per_record": np.nan_to_num(interval.record_bytes),
            "out_s": known_out * seconds,
            "bytes_out": np.nan_to_num(interval.bytes_out),
            "max_bytes_out_per_s": np.nan_to_num(rate_out),
            "growth_s": grown * seconds,
            "grown_bytes": np.nan_to_num(interval.grown_bytes),
            "size_bytes": np.maximum(now.size_bytes, 0).astype(float),
            "leader_changes": interval.leader_changed.astype(float),
            "truncations": interval.truncated.astype(float),
            "unread": interval.unread.astype(float),
        },
        rates={"in": Histogram.of(rate_in, seconds), "out": Histogram.of(rate_out, seconds)},
        span=Span(1, first, now.taken_at.isoformat(), unread=now.unread),
    )


def _ids(rollup: Rollup) -> dict[str, str]:
    return dict(zip(rollup.topics, rollup.topic_ids, strict=True))


def _join(name: str, rows: int, old: Floats, at_old: Ints, new: Floats, at_new: Ints) -> Floats:
    """Both columns in one, by what the column is: a sum, a maximum, or the latest value."""
    joined = np.zeros(rows)
    kept = at_old >= 0
    joined[at_old[kept]] = old[kept]
    if name in _LATEST:
        joined[at_new] = new
    elif name in _GREATEST:
        joined[at_new] = np.maximum(joined[at_new], new)
    else:
        joined[at_new] += new
    return joined


def _number(table: pa.Table, name: str) -> Floats:
    if name not in table.column_names:
        if name not in _INSTEAD:
            return np.zeros(len(table))
        name = _INSTEAD[name]
    numbers: Floats = table.column(name).to_numpy().astype(float)
    return numbers


def _histogram(table: pa.Table, name: str) -> Histogram:
    bins, seconds = (table.column(f"{name}_{part}").combine_chunks() for part in ("bins", "bin_s"))
    if isinstance(bins, pa.ChunkedArray):  # an empty column stays chunked
        return Histogram.empty()
    return Histogram.from_lists(
        bins.value_lengths().to_numpy().astype(np.int64),
        bins.flatten().to_numpy().astype(np.int64),
        seconds.flatten().to_numpy(),
    )
