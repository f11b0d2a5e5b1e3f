"""The input of the gate on a plan, and facts derived from it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.actions import Action
from rehome.domain.array_types import Ints, Mask
from rehome.domain.kafka import ANY_LOG_DIR, BrokerId, TopicPartition
from rehome.domain.plan.move_table import moves_table
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.quality.facts.disks import Disks
from rehome.quality.facts.limits import AllowedBrokers, internal_topics, kept_free, set_numbers
from rehome.quality.facts.move_columns import Moved
from rehome.quality.facts.partitions import Partitions

_ENTRY = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "replicas": pa.list_(pa.int32()),
        "log_dirs": pa.list_(pa.string()),
    }
)
_MOST_BYTES = 2**31 - 1
"""Arrow reads a JSON object in one block, whose size is such a number."""
_FILE = pa.schema({"version": pa.int64(), "partitions": pa.list_(pa.struct(_ENTRY))})

_OF_EVERYTHING = (
    Action.DRAIN,
    Action.REPLACE,
    Action.FIX_OFFLINE_REPLICAS,
    Action.DEMOTE,
    Action.ELECT_PREFERRED,
    Action.EVACUATE_LOG_DIRS,
)


@dataclass(frozen=True)
class ListedPartitions:
    """What one of Kafka's files says, read from its text: not what the planner meant to write.

    :param entries: ``topic``, ``partition``, ``replicas`` and ``log_dirs``, in the file's order;
        null where an entry does not have it.
    :param version: 0 = the file has none.
    """

    version: int
    entries: pa.Table

    @classmethod
    def of(cls, content: Mapping[str, Any] | str) -> ListedPartitions:
        """Read a file by its text, in columns.

        :raises ValueError: it is not one JSON object of such a file, or is too large.
        """
        data = (content if isinstance(content, str) else json.dumps(content)).encode()
        if len(data) >= _MOST_BYTES:
            raise ValueError(
                f"A reassignment file of {len(data)} bytes cannot be checked, {_MOST_BYTES - 1} at "
                "most: plan fewer topics at a time."
            )
        read = pyarrow.json.read_json(
            pa.BufferReader(data),
            pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            pyarrow.json.ParseOptions(_FILE, newlines_in_values=True),
        )
        if len(read) != 1:
            raise ValueError(f"A reassignment file holds {len(read)} objects, not one.")
        (row,) = read.column("partitions").chunks
        if row.null_count:
            raise ValueError("A reassignment file names no partitions.")
        listed = pa.RecordBatch.from_struct_array(row.flatten())
        entries = pa.Table.from_batches([listed]).select(_ENTRY.names)
        return cls(read.column("version")[0].as_py() or 0, entries)

    def counts(self) -> pa.Table:
        """Each partition that is listed, once; ``times_listed``: how often."""
        return (
            self.entries.group_by(["topic", "partition"], use_threads=False)
            .aggregate([([], "count_all")])
            .rename_columns(["topic", "partition", "times_listed"])
            .sort_by([("topic", "ascending"), ("partition", "ascending")])
        )

    def beside(self, moves: pa.Table) -> pa.Table:
        """The entry of each move's partition, the last one; nulls where it has none."""
        at = rows_of(self.entries, moves)
        return self.entries.take(pa.array(at, mask=at < 0))


def rows_of(table: pa.Table, partitions: pa.Table) -> Ints:
    """Per partition the number of its last row in a table; -1 where it has none.

    :param table, partitions: with columns ``topic`` and ``partition``.
    """
    topics = table.column("topic").unique()
    there, keys = (
        pc.index_in(rows.column("topic"), topics).fill_null(len(topics)).to_numpy().astype(np.int64)
        * (1 << 32)
        + rows.column("partition").fill_null(-1).to_numpy().astype(np.int64)
        for rows in (table, partitions)
    )
    if not len(there):
        return np.full(len(keys), -1, np.int64)
    order = np.argsort(there, kind="stable")
    at = order[np.maximum(np.searchsorted(there[order], keys, side="right") - 1, 0)]
    return np.where(there[at] == keys, at, -1)


@dataclass(frozen=True)
class Checked:
    """A plan, its request and snapshot, and the files that will be written.

    :param reassignment, rollback: content of Kafka's files, or their text.
    :param digests: name of each of these files → SHA-256 of its bytes.
    :param min_free: part of each log dir that must stay free at every moment.
    """

    snapshot: Snapshot
    plan: Plan
    request: ReassignmentRequest
    reassignment: Mapping[str, Any] | str
    rollback: Mapping[str, Any] | str
    min_free: float
    digests: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def sent(self) -> ListedPartitions:
        """What reassignment.json says."""
        return ListedPartitions.of(self.reassignment)

    @cached_property
    def taken_back(self) -> ListedPartitions:
        """What rollback.json says."""
        return ListedPartitions.of(self.rollback)

    @cached_property
    def moved(self) -> Moved:
        """The plan's moves joined with the snapshot."""
        return Moved(moves_table(self.plan.moves), Partitions.of(self.snapshot))

    @cached_property
    def disks(self) -> Disks:
        """The brokers' log dirs."""
        return Disks.of(self.snapshot, partial(kept_free, self.request, self.min_free))

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
    def in_scope(self) -> Mask:
        """(P,) partitions that the request may move."""
        partitions = self.moved.partitions
        return _scope_of(self.snapshot, self.request, partitions.topics, partitions.keys)

    @cached_property
    def allowed_brokers(self) -> AllowedBrokers:
        """Which brokers may hold which partitions, by their broker sets, and by where a rebalance
        brings them.
        """
        partitions, internal = self.moved.partitions, internal_topics(self.snapshot)
        of_topic = set_numbers(self.request, partitions.topics, internal)
        by_sets = AllowedBrokers.of(self.request, self.brokers, of_topic[partitions.keys >> 32])
        if not self.brings:
            return by_sets
        return by_sets.brought_to(np.isin(self.brokers, self.request.destinations), self.in_scope)

    @property
    def brings(self) -> bool:
        """Whether all that is in scope is to end on the destinations."""
        return self.request.action is Action.REBALANCE and bool(self.request.destinations)

    @cached_property
    def shut(self) -> frozenset[BrokerId]:
        """Brokers that may get no new replica: by their log dirs, or by the request."""
        destinations = set(self.request.destinations)
        elsewhere = {b for b in self.brokers.tolist() if destinations and b not in destinations}
        return frozenset({*self.disks.closed, *self.request.exclude_brokers, *elsewhere})

    @cached_property
    def replicas_in_the_end(self) -> dict[BrokerId, int]:
        """Replicas of each listed broker after the plan."""
        moved = self.moved
        counts = Counter(moved.partitions.replicas.values.tolist())
        counts.update(moved.adding.values.tolist())
        counts.subtract(moved.removing.values.tolist())
        return {broker: counts[broker] for broker in self.brokers.tolist()}

    @cached_property
    def requested(self) -> dict[TopicPartition, tuple[list[BrokerId], list[str]]]:
        """Replicas and log dirs per partition of the operator's own file."""
        return _requested_entries(self.request)

    @cached_property
    def planned(self) -> list[TopicPartition]:
        """The partition of each row of the moves."""
        table = self.moved.table
        columns = (table.column(name).to_pylist() for name in ("topic", "partition"))
        return [TopicPartition(*names) for names in zip(*columns, strict=True)]


def _scope_of(
    snapshot: Snapshot, request: ReassignmentRequest, topics: Sequence[str], keys: Ints
) -> Mask:
    """(P,) partitions that the request may move.

    Internal topics are in scope if their full name is given; without names, in a drain, a
    replacement, a demotion, elections, and repairs of offline replicas.

    :param topics: (T,) names; ``keys``: (P,) index of the partition's topic, and its number in the
        lower 32 bits.
    """
    table = snapshot.topics
    internal_by_topic = dict(
        zip(table.column("topic").to_pylist(), table.column("internal").to_pylist(), strict=True)
    )
    internal = np.array([bool(internal_by_topic.get(topic)) for topic in topics], bool)
    names = pa.array(topics, pa.string())
    if request.topics:
        chosen = _partitions_matching(names, internal, request.topics, keys)
    elif request.action in _OF_EVERYTHING:
        chosen = np.ones(len(keys), bool)
    else:
        chosen = ~internal[keys >> 32]
    return chosen & ~_partitions_matching(names, internal, request.exclude_topics, keys)


def _partitions_matching(names: pa.Array, internal: Mask, texts: Iterable[str], keys: Ints) -> Mask:
    """(P,) partitions of topics of these names, and of those that are not internal and match a
    pattern among them.
    """
    matches: Mask = np.zeros(len(keys), bool)
    number = keys & 0xFFFFFFFF
    for text in texts:
        whole, partitions = text, ""
        if not text.startswith("re:"):
            whole, _, partitions = text.partition(":")
        topics = _topics_named(names, internal, whole)[keys >> 32]
        if partitions:
            first, _, last = partitions.partition("-")
            topics &= (number >= int(first)) & (number <= int(last or first))
        matches |= topics
    return matches


def _topics_named(names: pa.Array, internal: Mask, name: str) -> Mask:
    """(T,) topics of a name or pattern."""
    if name.startswith("re:"):
        matched = pc.match_substring_regex(names, f"^(?:{name[3:]})$")
        return np.array(matched.to_pylist(), bool) & ~internal
    if not set(name) & set("*?["):
        return np.array([topic == name for topic in names.to_pylist()], bool)
    return np.array([fnmatchcase(topic, name) for topic in names.to_pylist()], bool) & ~internal


def _requested_entries(
    request: ReassignmentRequest,
) -> dict[TopicPartition, tuple[list[int], list[str]]]:
    """Replicas and log dirs of each partition in the operator's own file."""
    entries = (request.reassignment or {}).get("partitions", ())
    return {
        TopicPartition(entry["topic"], entry["partition"]): (entry["replicas"], _log_dirs(entry))
        for entry in entries
    }


def _log_dirs(entry: Mapping[str, Any]) -> list[str]:
    return list(entry.get("log_dirs") or [ANY_LOG_DIR] * len(entry["replicas"]))
