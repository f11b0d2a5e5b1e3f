"""A plan as files for Kafka's own tools, for clusters that others configure. Pure.

Reassignments for kafka-reassign-partitions, in batches that are carried out one after the other;
the way back of each; and the throttle as commands of kafka-configs, for the operator's own tool.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigResource, DescribedConfigs, ResourceType
from rehome.domain.kafka import BrokerError, BrokerId
from rehome.domain.plan.kafka_json import reassignment_json, rollback_json
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.text import bytes_text, count_text
from rehome.execution.throttle.keys import (
    EVERY_REPLICA,
    LIST_LIMIT,
    LISTS,
    RATE_KEYS,
    THROTTLE_KEYS,
    list_items,
    own_value,
    rate_keys,
    split,
)

_ENTITIES = {ResourceType.TOPIC: "topics", ResourceType.BROKER: "brokers"}
README, ELECTION = "README.txt", "elect-preferred.json"


@dataclass(frozen=True, slots=True)
class Exported:
    """A plan's files.

    :param texts: name → text.
    :param batches: names of the reassignments, in the order in which they are carried out.
    """

    texts: Mapping[str, str]
    batches: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """For export.json: which files there are."""
        return {"batches": list(self.batches), "files": sorted(self.texts)}


def current_throttles(plan: Plan, cluster: ClusterPort) -> DescribedConfigs:
    """The present configuration of the brokers and topics that the plan's throttle would change."""
    topics = {ConfigResource.topic(topic) for topic, _ in list_items(plan.moves)}
    brokers = map(ConfigResource.broker, _brokers_of(plan.moves))
    resources = [*sorted(topics), *brokers]
    return cluster.describe_configs(resources, THROTTLE_KEYS) if resources else {}


def export(
    plan: Plan,
    request: ReassignmentRequest,
    rate_bytes_per_s: int,
    max_partitions: int,
    present: DescribedConfigs,
) -> Exported:
    """The files of a plan.

    A batch starts all at once: so it holds no more partitions than may be in flight. Where no
    throttle limits the copies, it holds no more moves per broker and direction either than a run
    makes at once.

    :param rate_bytes_per_s: of the throttle commands, per broker and direction.
    :param present: from :func:`current_throttles`: what the commands leave, and put back.
    """
    per_broker = request.max_moves_per_broker if request.unthrottled else None
    batches = list(in_batches(plan.moves, max_partitions, per_broker))
    texts: dict[str, str] = {}
    names = []
    for number, moves in enumerate(batches, start=1):
        name = f"reassignment-{number:04d}.json"
        names.append(name)
        texts[name] = _text(reassignment_json(moves))
        texts[f"rollback-{number:04d}.json"] = _text(rollback_json(moves))
    if plan.moves:
        texts[ELECTION] = _text(_election(plan.moves))
    if not request.unthrottled:
        texts["throttle-set.sh"], texts["throttle-clear.sh"] = _throttle(
            plan, rate_bytes_per_s, present
        )
    texts[README] = _readme(plan, request, rate_bytes_per_s, names)
    return Exported(texts, tuple(names))


def in_batches(
    moves: Iterable[Move], max_partitions: int, per_broker: int | None
) -> Iterator[list[Move]]:
    """The plan's moves in its order, in batches that each may be in flight as a whole.

    :param per_broker: the most moves of a batch for each broker and direction; None = any. A move
        that has more alone is a batch of its own.
    """
    batch: list[Move] = []
    used: Counter[tuple[str, BrokerId]] = Counter()
    for move in moves:
        takes = _places_taken(move)
        full = per_broker is not None and any(
            used[slot] + count > per_broker for slot, count in takes.items()
        )
        if batch and (full or len(batch) >= max_partitions):
            yield batch
            batch, used = [], Counter()
        batch.append(move)
        used.update(takes)
    if batch:
        yield batch


def _places_taken(move: Move) -> Counter[tuple[str, BrokerId]]:
    """Places that a move takes: its leader sends each copy, each new replica takes one in."""
    if not move.adding:
        return Counter()
    taken = Counter({("out", move.current[0]): 1})
    taken.update(("in", broker) for broker in move.adding)
    return taken


def _election(moves: Iterable[Move]) -> dict[str, Any]:
    """What kafka-leader-election reads: a reassignment alone leaves leadership where it is."""
    partitions = (move.partition for move in moves)
    return {"partitions": [{"topic": p.topic, "partition": p.partition} for p in partitions]}


def _brokers_of(moves: Iterable[Move]) -> list[BrokerId]:
    return sorted({broker for move in moves for broker in (*move.current, *move.target)})


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=1) + "\n"


def _throttle(plan: Plan, rate_bytes_per_s: int, present: DescribedConfigs) -> tuple[str, str]:
    """Commands that set the throttle, and that put the present values back."""
    sets, clears = [_HEAD], [_HEAD]
    rates = {key: str(rate_bytes_per_s) for key in rate_keys(plan.moves)}
    for broker in _brokers_of(plan.moves) if rates else ():
        set_it, clear_it = _commands(ConfigResource.broker(broker), rates, present)
        sets.append(set_it)
        clears.append(clear_it)
    by_topic: dict[str, dict[str, str]] = {}
    for (topic, key), items in list_items(plan.moves).items():
        by_topic.setdefault(topic, {})[key] = ",".join(items)
    for topic, lists in by_topic.items():
        set_it, clear_it = _commands(ConfigResource.topic(topic), lists, present)
        sets.append(set_it)
        clears.append(clear_it)
    return "\n".join(sets) + "\n", "\n".join(clears) + "\n"


def _commands(
    resource: ConfigResource, settings: Mapping[str, str], present: DescribedConfigs
) -> tuple[str, str]:
    """One command that sets the keys of a resource, and one that puts back what was there."""
    configs = present.get(resource)
    if configs is None or isinstance(configs, BrokerError):
        why = configs.name if isinstance(configs, BrokerError) else "it was not read"
        note = (
            f"# The value on {_where(resource)} is not known ({why}): read it before you change it."
        )
        return (
            f"{note}\n{_alter(resource, settings)}",
            f"{note}\n{_alter(resource, {}, [*settings])}",
        )
    notes: list[str] = []
    sets: dict[str, str] = {}
    back: dict[str, str] = {}
    gone: list[str] = []
    for key, ours in settings.items():
        there = own_value(resource, configs.get(key))
        value = _beside(key, ours, there)
        if value is None:
            stays = _RATE_STAYS if key in RATE_KEYS else _LIST_STAYS
            notes.append(f"# {_where(resource)}: {key} {(there or '')[:60]} {stays}")
            continue
        sets[key] = value
        if there is None:
            gone.append(key)
        else:
            back[key] = there
    return (
        "\n".join([*notes, *([_alter(resource, sets)] if sets else [])]),
        "\n".join([*notes, *([_alter(resource, back, gone)] if sets else [])]),
    )


_RATE_STAYS = "is set by another client, and stays."
_LIST_STAYS = (
    "stays: every replica is on it, or Kafka takes no longer list. Use --throttle of "
    "kafka-reassign-partitions with each batch."
)
_HEAD = """#!/bin/sh
# BOOTSTRAP: addresses of brokers. CONFIG: a file with the client's settings.
set -eu"""


def _beside(key: str, ours: str, there: str | None) -> str | None:
    """The value to set where another client has set one; None = that stays."""
    if key in RATE_KEYS:
        return ours if there is None else None
    items = split(there)
    value = ",".join(dict.fromkeys([*items, *split(ours)]))
    return None if EVERY_REPLICA in items or len(value) > LIST_LIMIT else value


def _alter(resource: ConfigResource, sets: Mapping[str, str], gone: Sequence[str] = ()) -> str:
    parts = [
        'kafka-configs.sh --bootstrap-server "$BOOTSTRAP" --command-config "$CONFIG" --alter',
        f"--entity-type {_ENTITIES[resource.type]} --entity-name {resource.name}",
    ]
    if sets:
        pairs = ",".join(
            f"{key}=[{value}]" if key in LISTS else f"{key}={value}" for key, value in sets.items()
        )
        parts.append(f"--add-config '{pairs}'")
    if gone:
        parts.append(f"--delete-config {','.join(gone)}")
    return " ".join(parts)


def _where(resource: ConfigResource) -> str:
    return f"{resource.type.name.lower()} {resource.name}"


def _readme(
    plan: Plan, request: ReassignmentRequest, rate_bytes_per_s: int, names: Sequence[str]
) -> str:
    """What to do with the files, in order."""
    tool = "kafka-reassign-partitions.sh --bootstrap-server ADDRESSES --command-config FILE"
    elect = "kafka-leader-election.sh --bootstrap-server ADDRESSES --admin.config FILE"
    pace = f"The throttle is {bytes_text(rate_bytes_per_s)}/s per broker and direction.\n"
    before, after = "Run throttle-set.sh first. ", "Run throttle-clear.sh last.\n"
    if request.unthrottled:
        pace = (
            "WITHOUT A THROTTLE: each batch has as many moves as may run at once "
            f"({request.max_moves_per_broker} for each broker and direction), and nothing else "
            "limits the copies.\n"
        )
        before = after = ""
    moves = count_text(len(plan.moves), "partition")
    return f"""Plan {plan.plan_id} of cluster {plan.cluster_id}
{moves} in {count_text(len(names), "batch", "batches")}, reassignment-0001.json first.
{pace}
{before}Then, for each batch in order:
  {tool} --reassignment-json-file BATCH --execute
  {tool} --reassignment-json-file BATCH --verify --preserve-throttles
Repeat --verify until every reassignment of the batch is complete. Start the next batch then.
{after}
Reassignments do not make preferred leaders lead. At the end, elect them:
  {elect} --election-type PREFERRED --path-to-json-file {ELECTION}

To take a batch back: --execute with its rollback-NNNN.json. Take the last batch back first.
The cluster must be as it was when the plan was made: Kafka's tool does not compare. Trigger another
export when anything was moved meanwhile.
"""
