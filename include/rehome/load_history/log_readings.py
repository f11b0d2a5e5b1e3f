"""What a snapshot says of each partition's log: how far it reaches, how large it is, who reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rehome.domain.array_types import Ints, Mask
from rehome.load_history.key_codes import codes_of, distinct, found_at, integers, keys_of, pick

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "topics": ("topic", "topic_id", "visible", "cleanup_policy"),
    "replicas": (
        *("topic", "partition", "broker", "is_leader", "adding", "removing"),
        *("size_bytes", "log_end_offset", "log_start_offset"),
    ),
    "groups": ("group", "coordinator", "error"),
    "group_offsets": ("group", "topic", "partition", "committed_offset"),
}
"""What is read of each table of a snapshot."""


@dataclass(frozen=True)
class Readings:
    """P partitions, ascending by topic and partition, as their leaders know them. -1 = unknown.

    :param topics: sorted names; ``topic_ids`` and ``compacted`` are aligned with them.
    :param compacted: whether the cleaner may remove records from the middle of the log.
    :param keys: (P,) see :func:`rehome.load_history.key_codes.keys_of`.
    :param leader: (P,) broker id.
    :param followers: (P,) replicas that copy from the leader and are there to stay.
    :param size_bytes: (P,) of the leader's replica, what was moved to a remote tier left out.
    :param log_start: (P,) first offset of what ``size_bytes`` measures.
    :param log_end: (P,) next offset to be written.
    :param groups: sorted names of consumer groups.
    :param group_of: (C,) a commit's group; ``group_keys`` its partition, ``committed`` the offset.
    :param unread: why some groups' offsets are not known, a sentence each; empty = all are.
    """

    taken_at: datetime
    topics: tuple[str, ...]
    topic_ids: tuple[str, ...]
    compacted: Mask
    keys: Ints
    leader: Ints
    followers: Ints
    size_bytes: Ints
    log_start: Ints
    log_end: Ints
    groups: tuple[str, ...]
    group_of: Ints
    group_keys: Ints
    committed: Ints
    unread: tuple[str, ...]


def readings_of(taken_at: datetime, tables: Mapping[str, pa.Table]) -> Readings:
    """The readings in the tables of a snapshot, of which :data:`COLUMNS` are needed."""
    topics = tables["topics"].filter(tables["topics"].column("visible")).sort_by("topic")
    names = tuple(topics.column("topic").to_pylist())
    policies = topics.column("cleanup_policy").fill_null("delete").to_pylist()
    replicas = tables["replicas"]
    stays = pc.invert(replicas.column("adding")).to_numpy(zero_copy_only=False)
    row_keys = keys_of(
        codes_of(replicas.column("topic"), names), integers(replicas.column("partition"))
    )
    keys = distinct(row_keys)
    owner = found_at(row_keys, keys)
    leads = replicas.column("is_leader").to_numpy(zero_copy_only=False)
    staying = stays & ~replicas.column("removing").to_numpy(zero_copy_only=False)
    led = np.flatnonzero(leads)
    at = found_at(keys, row_keys[led])
    groups = tables["groups"]
    offsets = tables["group_offsets"]
    group_names = tuple(sorted(set(offsets.column("group").to_pylist())))
    group_topics = codes_of(offsets.column("topic"), names)
    is_visible = group_topics >= 0
    return Readings(
        taken_at=taken_at,
        topics=names,
        topic_ids=tuple(str(topic_id) for topic_id in topics.column("topic_id").to_pylist()),
        compacted=np.array(["compact" in policy for policy in policies], bool),
        keys=keys,
        leader=pick(integers(replicas.column("broker"))[led], at),
        followers=np.maximum(np.bincount(owner[staying], minlength=len(keys)) - 1, 0),
        size_bytes=pick(integers(replicas.column("size_bytes"))[led], at),
        log_start=pick(integers(replicas.column("log_start_offset"))[led], at),
        log_end=pick(integers(replicas.column("log_end_offset"))[led], at),
        groups=group_names,
        group_of=codes_of(offsets.column("group"), group_names)[is_visible],
        group_keys=keys_of(group_topics, integers(offsets.column("partition")))[is_visible],
        committed=integers(offsets.column("committed_offset"))[is_visible],
        unread=_unread(groups),
    )


def _unread(groups: pa.Table) -> tuple[str, ...]:
    rows = groups.filter(pc.is_valid(groups.column("error"))).to_pylist()
    return tuple(
        f"group {row['group']}: {row['error']}"
        if row["group"] is not None
        else f"groups of coordinator {row['coordinator']}: {row['error']}"
        for row in rows
    )
