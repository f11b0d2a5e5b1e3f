"""The scope of a request, read from its parameters alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.actions import Action
from rehome.domain.array_types import Ints, Mask
from rehome.domain.kafka import ANY_LOG_DIR, TopicPartition
from rehome.domain.request.request import ReassignmentRequest

_OF_EVERYTHING = (
    Action.DRAIN,
    Action.REPLACE,
    Action.FIX_OFFLINE_REPLICAS,
    Action.DEMOTE,
    Action.ELECT_PREFERRED,
    Action.EVACUATE_LOG_DIRS,
)


def scope_of(
    snapshot: Snapshot, request: ReassignmentRequest, topics: Sequence[str], keys: Ints
) -> Mask:
    """(P,) partitions that the request may move.

    Internal topics are in scope if their full name is given; without names, in a drain, a
    replacement, a demotion, elections, and repairs of offline replicas.

    :param topics: (T,) names; ``keys``: (P,) index of the partition's topic, and its number in the
        lower 32 bits.
    """
    table = snapshot.topics
    known = dict(
        zip(table.column("topic").to_pylist(), table.column("internal").to_pylist(), strict=True)
    )
    internal = np.array([bool(known.get(topic)) for topic in topics], bool)
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
    found: Mask = np.zeros(len(keys), bool)
    number = keys & 0xFFFFFFFF
    for text in texts:
        whole, partitions = text, ""
        if not text.startswith("re:"):
            whole, _, partitions = text.partition(":")
        topics = _topics_named(names, internal, whole)[keys >> 32]
        if partitions:
            first, _, last = partitions.partition("-")
            topics &= (number >= int(first)) & (number <= int(last or first))
        found |= topics
    return found


def _topics_named(names: pa.Array, internal: Mask, name: str) -> Mask:
    """(T,) topics of a name or pattern."""
    if name.startswith("re:"):
        matched = pc.match_substring_regex(names, f"^(?:{name[3:]})$")
        return np.array(matched.to_pylist(), bool) & ~internal
    if not set(name) & set("*?["):
        return np.array([topic == name for topic in names.to_pylist()], bool)
    return np.array([fnmatchcase(topic, name) for topic in names.to_pylist()], bool) & ~internal


def requested_entries(
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
