"""Whether everything in flight is throttled still: what each poll checks. Nothing is changed.

Any client may remove a list or a rate. Kafka's own tool does: ``--cancel`` of a topic's partitions
deletes its lists and every broker's own rates, also where other partitions of it are on their
way, and ``--execute`` with a throttle replaces the lists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigResource, Configs
from rehome.domain.kafka import BrokerError, BrokerId, ConfigValue, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.ledger_view import LedgerView, MoveStep
from rehome.domain.run.observation import Observation
from rehome.execution.observation.log_dir_copies import copied_across
from rehome.execution.observation.move_status import on_its_way
from rehome.execution.throttle.keys import (
    EVERY_REPLICA,
    LISTS,
    RATE_KEYS,
    THROTTLE_KEYS,
    list_items,
    own_value,
    rate_keys,
    split,
)
from rehome.execution.throttle.ownership.marks import DEFAULT, Marks, read_marks
from rehome.execution.throttle.rate_scope import (
    OwnByKey,
    choose_rates,
    own_by_key,
    set_up_by_broker,
)
from rehome.ledger.base.records import SetBy, ThrottleEntry
from rehome.ledger.store import Ledger


@dataclass(frozen=True)
class Coverage:
    """What a poll has found.

    :param unthrottled: partitions in flight of which a list or a rate is not as it has to be, or
        was changed by another client since the ledger was written.
    :param unread: resources whose throttle could not be read, and why.
    """

    unthrottled: tuple[TopicPartition, ...] = ()
    unread: Mapping[ConfigResource, BrokerError] = field(default_factory=dict)


def look_at_throttles(
    plan: Plan, view: LedgerView, observation: Observation, ledger: Ledger, cluster: ClusterPort
) -> Coverage:
    """Read the lists of the topics, and the rates of the brokers, that something in flight needs.

    That is one request about topics and the brokers' default, and one to each broker involved.
    """
    moves = in_flight(plan, view, observation)
    keys = rate_keys(moves)
    if view.rate_bytes_per_s is None or not keys:
        return Coverage()
    topics = {ConfigResource.topic(topic) for topic, _ in list_items(moves)}
    brokers = {b for move in moves for b in _brokers_of(move)} & observation.live_brokers
    resources = [*sorted(topics), DEFAULT, *map(ConfigResource.broker, sorted(brokers))]
    configs_by_resource, unread = _read(cluster, resources)
    entries = ledger.throttles(plan.plan_id, open_only=True, keys=RATE_KEYS)
    where = {DEFAULT, *map(ConfigResource.broker, brokers)}
    rates = {
        resource: configs for resource, configs in configs_by_resource.items() if resource in where
    }
    rate = view.rate_bytes_per_s
    own = own_by_key({each.key: each.rate_bytes_per_s for each in view.own_rates})
    unruled = _unruled_resources(rates, keys, rate, own, entries)
    if unruled and (marks := _marks(ledger, cluster)) is not None:
        # Another Rehome may have set what is there: no other client has changed it then.
        rates[DEFAULT] = marks.default
        unruled = _unruled_resources(rates, keys, rate, own, entries, marks)
    lacking = _lacking(configs_by_resource, moves)
    concerned = [
        move.partition
        for move in moves
        if move.partition in lacking or DEFAULT in unruled or unruled & _involved_resources(move)
    ]
    return Coverage(tuple(concerned), unread)


def in_flight(plan: Plan, view: LedgerView, observation: Observation) -> list[Move]:
    """Moves of the plan that the controller lists, or that copy between log dirs."""
    sent = (plan.by_partition[p] for p in sorted(view.sent) if p in plan.by_partition)
    return [move for move in sent if _copies(move, observation, view.steps.get(move.partition))]


def _copies(move: Move, observation: Observation, step: MoveStep | None) -> bool:
    if on_its_way(move, observation.ongoing.get(move.partition), observation, step):
        return True
    return bool(copied_across(move, observation))


def _brokers_of(move: Move) -> set[BrokerId]:
    return {*move.current, *move.target}


def _involved_resources(move: Move) -> set[ConfigResource]:
    return set(map(ConfigResource.broker, _brokers_of(move)))


def _read(
    cluster: ClusterPort, resources: Collection[ConfigResource]
) -> tuple[Configs, dict[ConfigResource, BrokerError]]:
    """Configs of these resources, less topics that are gone; and what could not be read."""
    configs_by_resource: dict[ConfigResource, Mapping[str, ConfigValue]] = {}
    unread: dict[ConfigResource, BrokerError] = {}
    try:
        answers = cluster.describe_configs(resources, THROTTLE_KEYS)
    except ClusterError as error:
        why = error.error or ErrorCode.UNKNOWN_SERVER_ERROR.error(error.what)
        return configs_by_resource, dict.fromkeys(resources, why)
    for resource, configs in answers.items():
        if not isinstance(configs, BrokerError):
            configs_by_resource[resource] = configs
        elif configs.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            unread[resource] = configs
    return configs_by_resource, unread


def _marks(ledger: Ledger, cluster: ClusterPort) -> Marks | None:
    try:
        marks = read_marks(cluster, ledger.ledger_id)
    except ClusterError:
        return None
    return None if isinstance(marks, BrokerError) else marks


def _lacking(configs_by_resource: Configs, moves: Iterable[Move]) -> set[TopicPartition]:
    """Partitions of which an item is not on its list."""
    lists = {
        (resource.name, key): frozenset(split(own_value(resource, configs.get(key))))
        for resource, configs in configs_by_resource.items()
        for key in LISTS
    }
    lacking = set()
    for move in moves:
        for where, items in list_items([move]).items():
            there = lists.get(where)
            if there is not None and EVERY_REPLICA not in there and not there.issuperset(items):
                lacking.add(move.partition)
    return lacking


def _unruled_resources(
    configs: Configs,
    keys: Collection[str],
    rate_bytes_per_s: int,
    own: OwnByKey,
    entries: Collection[ThrottleEntry],
    marks: Marks | None = None,
) -> set[ConfigResource]:
    """Where a rate has to be set again, or another client's has taken its place and was not
    recorded.
    """
    if DEFAULT not in configs:
        return set()
    entry_by_place = {(entry.resource, entry.key): entry for entry in entries}
    by_broker = set_up_by_broker(entries)
    choices = choose_rates(
        configs,
        keys,
        rate_bytes_per_s,
        by_broker=by_broker,
        entries=entry_by_place,
        marks=marks,
        own=own,
    )
    unruled = set()
    for choice in choices:
        entry = entry_by_place.get((choice.resource, choice.key))
        overruled = choice.overruled and entry is not None and entry.set_by is SetBy.REHOME
        behind = choice.rate is not None and choice.current != choice.rate
        if overruled or behind:  # gone, or an older rate of ours: it did not answer when it was set
            unruled.add(choice.resource)
    return unruled
