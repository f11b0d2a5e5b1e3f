"""Consumer groups and the offsets they have committed.

Each broker lists the groups that it coordinates, and is then asked for their offsets: no broker has
to be asked first who coordinates which group.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any

from kafka.protocol.admin import ListGroupsRequest
from kafka.protocol.consumer import OffsetFetchRequest

from rehome.cluster.clients.clients import UNANSWERED, Clients, batches
from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import verdict
from rehome.cluster.interface.rights import Call, naming_right
from rehome.domain.kafka import (
    BrokerError,
    BrokerId,
    ConsumerGroup,
    Partial,
    TopicPartition,
)

# Several groups in one request (Kafka 3.0); from version 10 on topics have ids instead of names.
OFFSET_FETCH_VERSIONS = {"min_version": 8, "max_version": 9}
GROUPS_PER_REQUEST = 500
SHARE = "share"


def consumer_groups(clients: Clients, brokers: Iterable[BrokerId]) -> Partial[list[ConsumerGroup]]:
    """Every group that these brokers coordinate, with what it has committed, in order of name."""
    request = list_groups_request()
    answers, missing = clients.ask(
        Call.LIST_GROUPS, lambda: clients.reads.ask_each(dict.fromkeys(brokers, request))
    )
    listed: list[ConsumerGroup] = []
    for broker, answer in answers.items():
        error = verdict(answer.error_code)
        if error is not None:
            missing[broker] = error
        else:
            listed += read_groups(broker, answer)
    offsets = _offsets(clients, [group for group in listed if group.error is None])
    groups = [replace(group, **offsets.get(group.name, {})) for group in listed]
    return Partial(sorted(groups, key=lambda group: group.name), missing)


def _offsets(clients: Clients, groups: Iterable[ConsumerGroup]) -> dict[str, dict[str, Any]]:
    """Per group its ``committed`` and ``error``; all coordinators are asked at once."""
    names_by_broker: dict[BrokerId, list[str]] = defaultdict(list)
    for group in groups:
        names_by_broker[group.coordinator].append(group.name)
    offsets_by_group: dict[str, dict[str, Any]] = {}
    rounds = (batches(names, GROUPS_PER_REQUEST) for names in names_by_broker.values())
    for one_each in zip_longest(*rounds):
        batches_by_broker = {
            b: batch for b, batch in zip(names_by_broker, one_each, strict=True) if batch
        }
        requests = {
            broker: offset_fetch_request(batch) for broker, batch in batches_by_broker.items()
        }
        answers, missing = clients.ask(Call.OFFSET_FETCH, partial(clients.reads.ask_each, requests))
        for broker, batch in batches_by_broker.items():
            error = missing.get(broker, UNANSWERED)
            offsets_by_group |= {name: {"committed": {}, "error": error} for name in batch}
        for answer in answers.values():
            offsets_by_group |= read_offsets(answer)
    return offsets_by_group


def list_groups_request() -> Any:
    """ListGroups: every group that the broker asked coordinates, in any state.

    Without Cluster Describe only the groups that this principal may describe, and no error.
    """
    return ListGroupsRequest(states_filter=[], types_filter=[])


def read_groups(coordinator: BrokerId, response: Any) -> list[ConsumerGroup]:
    """The groups of one coordinator, without offsets. Of share groups there are none to fetch.

    State and type are None on brokers that do not report them (before 2.6 and 3.7).
    """
    return [
        ConsumerGroup(
            name=group.group_id,
            coordinator=coordinator,
            state=getattr(group, "group_state", None) or None,
            committed={},
            error=_error_of_type(getattr(group, "group_type", None)),
        )
        for group in response.groups
    ]


def _error_of_type(group_type: str | None) -> BrokerError | None:
    if group_type != SHARE:
        return None
    return ErrorCode.UNSUPPORTED_VERSION.error("a share group commits no offsets")


def offset_fetch_request(groups: Collection[str]) -> Any:
    """OffsetFetch of everything that these groups have committed, as it stands now."""
    group_type = OffsetFetchRequest.OffsetFetchRequestGroup
    return OffsetFetchRequest(
        groups=[group_type(group_id=name, topics=None) for name in groups],
        require_stable=False,
        **OFFSET_FETCH_VERSIONS,
    )


def read_offsets(response: Any) -> dict[str, dict[str, Any]]:
    """Per group its ``committed`` offsets, and as ``error`` why the coordinator does not return
    them.

    One partition's error makes a group's: what it has committed there is not known.
    """
    offsets_by_group: dict[str, dict[str, Any]] = {}
    for group in response.groups:
        parts = [(topic.name, part) for topic in group.topics for part in topic.partitions]
        code = group.error_code or next((p.error_code for _, p in parts if p.error_code), 0)
        committed = {
            TopicPartition(name, part.partition_index): part.committed_offset
            for name, part in parts
            if not part.error_code and part.committed_offset >= 0
        }
        error = naming_right(verdict(code), Call.OFFSET_FETCH, group.group_id)
        offsets_by_group[group.group_id] = {"committed": committed, "error": error}
    return offsets_by_group
