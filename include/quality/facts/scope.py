"""The scope of a request, read from its parameters alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from include.cluster.snapshot.model import Snapshot
from include.domain.kafka import TopicPartition
from include.domain.plan.plan import ANY_LOG_DIR
from include.domain.request.request import Action, ReassignmentRequest

_OF_EVERYTHING = (
    Action.DRAIN,
    Action.REPLACE,
    Action.FIX_OFFLINE_REPLICAS,
    Action.DEMOTE,
    Action.ELECT_PREFERRED,
    Action.EVACUATE_LOG_DIRS,
)


def topics_in_scope(snapshot: Snapshot, request: ReassignmentRequest) -> frozenset[str]:
    """Topics that the request may move.

    Internal topics are in scope if their full name is given; without names, in a drain, a
    replacement, a demotion, elections, and repairs of offline replicas.
    """
    table = snapshot.topics
    internal = dict(
        zip(table.column("topic").to_pylist(), table.column("internal").to_pylist(), strict=True)
    )
    if request.topics:
        chosen = _matched(internal, request.topics)
    elif request.action in _OF_EVERYTHING:
        chosen = set(internal)
    else:
        chosen = {topic for topic, is_internal in internal.items() if not is_internal}
    return frozenset(chosen - _matched(internal, request.exclude_topics))


def _matched(internal: Mapping[str, bool], names: Iterable[str]) -> set[str]:
    """Topics of these names, and those that are not internal and match a pattern among them."""
    wanted = tuple(names)
    return {
        topic
        for topic, is_internal in internal.items()
        if topic in wanted or (not is_internal and any(fnmatchcase(topic, name) for name in wanted))
    }


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
