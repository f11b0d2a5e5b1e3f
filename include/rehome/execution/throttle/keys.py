"""What to throttle, and how to put earlier values back. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource, ResourceType
from rehome.domain.kafka import BrokerId, ConfigValue
from rehome.domain.plan.move import Move
from rehome.execution.observation.move_status import relocating
from rehome.ledger.base.records import SetBy, ThrottleEntry

LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
CORDONED = "cordoned.log.dirs"
"""No throttle, but journalled and put back as a rate is (``cordon``)."""
LISTS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
RATE_KEYS = (LEADER_RATE, FOLLOWER_RATE, LOG_DIR_RATE)
THROTTLE_KEYS = (*LISTS, *RATE_KEYS)
_RATE_NAMES = {
    LEADER_RATE: "leader rate",
    FOLLOWER_RATE: "follower rate",
    LOG_DIR_RATE: "log dir rate",
}
EVERY_REPLICA = "*"
CHANGED_SINCE = "another client has changed it since"
"""Text for an entry that is ``SetBy.OTHERS``."""
EMPTY_BEFORE = "it was empty, and is not set now: to brokers that is the same"
LIST_LIMIT = 32_767
"""Longest value of a topic config, in characters (Short.MAX_VALUE in the controller)."""

_OWN = {
    ResourceType.TOPIC: "DYNAMIC_TOPIC_CONFIG",
    ResourceType.BROKER: "DYNAMIC_BROKER_CONFIG",
}


def list_items(moves: Iterable[Move]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Items ``partition:broker`` per topic and list, for moves that copy between brokers.

    Leaders' side: every replica that may come to lead while there is something to copy. Followers'
    side: only the replicas that are added; traffic of those in sync would count against the rate.
    """
    items: dict[tuple[str, str], list[str]] = {}
    for move in moves:
        if not move.adding:
            continue
        topic, partition = move.partition
        leading, adding = (LEADER_REPLICAS, _may_lead(move)), (FOLLOWER_REPLICAS, move.adding)
        for key, brokers in (leading, adding):
            items.setdefault((topic, key), []).extend(f"{partition}:{b}" for b in brokers)
    return {where: tuple(dict.fromkeys(entries)) for where, entries in items.items()}


def _may_lead(move: Move) -> tuple[BrokerId, ...]:
    """Where several replicas are added, one that is in sync may lead while the next is copied."""
    return move.current if len(move.adding) == 1 else (*move.current, *move.adding)


def rate_keys(moves: Collection[Move]) -> tuple[str, ...]:
    """The rates that these moves need."""
    keys: list[str] = []
    if any(move.adding for move in moves):
        keys += [LEADER_RATE, FOLLOWER_RATE]
    if any(move.target_log_dirs and (relocating(move) or move.adding) for move in moves):
        keys.append(LOG_DIR_RATE)
    return tuple(keys)


def rate_name(key: str) -> str:
    """A rate in words: "follower rate"."""
    return _RATE_NAMES[key]


def own_value(resource: ConfigResource, value: ConfigValue | None) -> str | None:
    """What is set on the resource itself; None where a value is only inherited."""
    if value is None:
        return None
    return value.value if value.source == source_of(resource) else None


def source_of(resource: ConfigResource) -> str:
    """Kafka's ConfigSource of what is set on the resource itself."""
    if resource == ConfigResource.cluster_default():
        return "DYNAMIC_DEFAULT_BROKER_CONFIG"
    return _OWN[resource.type]


def split(value: str | None) -> list[str]:
    """Items of a list config, in order."""
    return [item.strip() for item in (value or "").split(",") if item.strip()]


def without(value: str | None, items: Collection[str]) -> str | None:
    """A list config less these items; None where nothing is left of it, or nothing was."""
    return ",".join(item for item in split(value) if item not in items) or None


@dataclass(frozen=True, slots=True)
class Restored:
    """Nothing of ours is left.

    :param set_by: whose value is there: the one from before, or one that another client has
        changed since; ``detail`` says what that is.
    """

    set_by: SetBy = SetBy.REHOME
    detail: str = ""


def next_step(entry: ThrottleEntry, now: str | None) -> ConfigChange | Restored:
    """The change that brings a list back to what it was without ours, given what it is now.

    A list without items is taken away, also where the plan has found one. To brokers it is the same
    as none, and nobody can tell who wants it: a SUBTRACT, of ours or of another Rehome, makes one,
    even of a list that others have deleted.

    :param now: the resource's own value, None = not set.
    """
    return _next_for_list(entry, now)


def first_step(entry: ThrottleEntry, now: str | None) -> ConfigChange | Restored:
    """As :func:`next_step`, before anything has been taken back: then it is, in any case.

    A reading proves nothing yet. The broker that answered may be behind the controller, and
    the process that journalled the entry may have died with its request still on the way.
    """
    if now != EVERY_REPLICA:
        return _subtract(entry, entry.ours)
    return put_back(entry) if now == entry.prior_value else next_step(entry, now)


def _next_for_list(entry: ThrottleEntry, now: str | None) -> ConfigChange | Restored:
    items = split(now)
    ours = tuple(item for item in entry.ours if item in items)
    if ours:
        return _subtract(entry, ours)
    if now is not None and not items:
        return ConfigChange(entry.resource, entry.key, ConfigOperation.DELETE)
    if now == entry.prior_value:
        return Restored()
    if items != split(entry.prior_value):
        return restored_as_changed(entry, now)
    return put_back(entry) if items else Restored(detail=EMPTY_BEFORE)


def restored_as_changed(entry: ThrottleEntry, now: str | None) -> Restored:
    """Another client has changed it since: it stays."""
    return Restored(SetBy.OTHERS, f"{CHANGED_SINCE}: {entry.prior_value!r} is now {now!r}")


def never_asked(entry: ThrottleEntry, now: str | None) -> Restored:
    """Of a list of which nothing was asked yet: what is there is others', also where it reads like
    ours.
    """
    same = split(now) == split(entry.prior_value)
    return Restored() if same else restored_as_changed(entry, now)


def _subtract(entry: ThrottleEntry, items: Iterable[str]) -> ConfigChange:
    return ConfigChange(entry.resource, entry.key, ConfigOperation.SUBTRACT, ",".join(items))


def put_back(entry: ThrottleEntry) -> ConfigChange:
    """The change that gives a key its earlier value, whatever the present one is."""
    return put(entry, entry.prior_value)


def put(entry: ThrottleEntry, value: str | None) -> ConfigChange:
    """The change that gives a key this value; None = it is not set any more."""
    if value is None:
        return ConfigChange(entry.resource, entry.key, ConfigOperation.DELETE)
    return ConfigChange(entry.resource, entry.key, ConfigOperation.SET, value)
