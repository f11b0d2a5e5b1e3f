"""A throttle that code sets and takes back by itself: what it changed is in its own hands.

No ledger knows of it, so no sweep takes it back. What is returned when it is set has all that is
needed for that, as JSON too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource, Configs
from rehome.domain.kafka import BrokerError, BrokerId
from rehome.errors import RehomeError
from rehome.execution.access.progress_timeout import ProgressTimeout, pause
from rehome.execution.direct.wanted_copies import NO_RATE_LIMIT, WantedCopy
from rehome.execution.throttle.configs import (
    VERIFY_POLL_S,
    VERIFY_TIMEOUT_S,
    ThrottleError,
    read,
)
from rehome.execution.throttle.keys import (
    EVERY_REPLICA,
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIR_RATE,
    own_value,
    split,
)


@dataclass(frozen=True, slots=True)
class ThrottleChange:
    """One configuration that was changed.

    :param before: what was set on the resource itself; None = nothing was.
    :param ours: a rate, or the items that were added to a list.
    """

    resource: ConfigResource
    key: str
    before: str | None
    ours: str

    @property
    def is_list(self) -> bool:
        """Whether it is a list of replicas."""
        return self.key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)


@dataclass(frozen=True, slots=True)
class DirectThrottle:
    """What was set. Keep it: it is what takes it back.

    :param rate_bytes_per_s: what was asked for, per broker and direction.
    :param kept: resource and key → a lower rate that was there, and stays.
    """

    rate_bytes_per_s: int
    changes: tuple[ThrottleChange, ...]
    kept: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """As plain types: to be returned by a task, for a later one."""
        changes = [
            {**asdict(c), "resource": [c.resource.type_value, c.resource.name]}
            for c in self.changes
        ]
        return {
            "rate_bytes_per_s": self.rate_bytes_per_s,
            "changes": changes,
            "kept": {**self.kept},
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> DirectThrottle:
        """What :meth:`to_json` wrote."""
        changes = (
            ThrottleChange(ConfigResource(*c["resource"]), c["key"], c["before"], c["ours"])
            for c in value["changes"]
        )
        return cls(value["rate_bytes_per_s"], tuple(changes), value["kept"])


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What became of a throttle.

    :param restored: as it was before; ``changed_by_others``: another client has changed it since,
        and it stays so.
    """

    restored: tuple[str, ...]
    changed_by_others: tuple[str, ...]


def set_direct_throttle(
    cluster: ClusterPort,
    copies: Collection[WantedCopy],
    rate_bytes_per_s: int,
    log_dir_brokers: Collection[BrokerId] = (),
) -> DirectThrottle:
    """Throttle copies: leaders and followers, each broker by a rate of its own; read back.

    A lower rate that is there holds, and stays.

    :param copies: what is to be copied between brokers.
    :param log_dir_brokers: brokers whose copies between log dirs are throttled, too.
    :raises DirectThrottleError: a change was refused. What was made is taken back, or named.
    :raises ThrottleError: a change does not read back as made, likewise.
    :raises ClusterError: a broker did not answer, likewise.
    """
    alive = cluster.describe_cluster().brokers
    values = _wanted_values(copies, rate_bytes_per_s, log_dir_brokers, alive)
    keys = {key for _, key in values}
    present = read(cluster, {resource for resource, _ in values}, keys)
    changes, kept = [], {}
    for (resource, key), ours in values.items():
        value = present.get(resource, {}).get(key)
        before = own_value(resource, value)
        if isinstance(ours, int):
            holds = NO_RATE_LIMIT if value is None or value.value is None else int(value.value)
            if holds <= ours:
                kept[f"{resource} {key}"] = holds
            else:
                changes.append(ThrottleChange(resource, key, before, str(ours)))
        elif before != EVERY_REPLICA and (new := [i for i in ours if i not in split(before)]):
            changes.append(ThrottleChange(resource, key, before, ",".join(new)))
    throttle = DirectThrottle(rate_bytes_per_s, tuple(changes), kept)
    try:
        _alter(cluster, list(map(_setting, changes)))
    except RehomeError as error:
        error.state_left = _left_after_failure(cluster, throttle)
        raise
    return throttle


def _left_after_failure(cluster: ClusterPort, throttle: DirectThrottle) -> str:
    try:
        clear_direct_throttle(cluster, throttle)
    except RehomeError:
        places = ", ".join(map(_place, throttle.changes))
        return f"Some of it may be left, and could not be taken back: {places}"
    return "What was set of it is taken back."


def clear_direct_throttle(cluster: ClusterPort, throttle: DirectThrottle) -> TakenBack:
    """Take a throttle back, and read that it is gone. May be repeated.

    Items of others in the same lists stay. A rate that another client has changed since stays.

    :raises DirectThrottleError: a change was refused; what else can be taken back is. A broker that
        is away is among what refuses: call it again when it is back.
    :raises ClusterError: what is set now could not be read: nothing was taken back.
    """
    changes = throttle.changes
    present = _read_changed(cluster, changes)
    others = [change for change in changes if _by_others(change, present)]
    ours = [change for change in changes if change not in others]
    _alter(cluster, [step for change in ours if (step := _undoing(change, present)) is not None])
    # A list that is left without items is no list: to brokers both are the same.
    lists = [change for change in ours if change.is_list]
    present = _read_changed(cluster, lists)
    empty = [c for c in lists if _own(c, present) is not None and not split(_own(c, present))]
    _alter(cluster, [ConfigChange(c.resource, c.key, ConfigOperation.DELETE) for c in empty])
    return TakenBack(tuple(map(_place, ours)), tuple(map(_place, others)))


def _wanted_values(
    copies: Collection[WantedCopy],
    rate_bytes_per_s: int,
    log_dir_brokers: Collection[BrokerId],
    alive: Collection[BrokerId],
) -> dict[tuple[ConfigResource, str], int | list[str]]:
    """Resource and key → the rate, or the items of the list.

    A source that is dead sends nothing, and takes no rate. A dead broker that is to get a replica
    is not left out: when it is back it would copy without a throttle.
    """
    values: dict[tuple[ConfigResource, str], int | list[str]] = {}
    for copy in copies:
        topic = ConfigResource.topic(copy.partition.topic)
        for key, rate, brokers in (
            (LEADER_REPLICAS, LEADER_RATE, copy.sources),
            (FOLLOWER_REPLICAS, FOLLOWER_RATE, copy.adding),
        ):
            items = values.setdefault((topic, key), [])
            assert isinstance(items, list)
            items += [f"{copy.partition.partition}:{broker}" for broker in brokers]
            rated = [b for b in brokers if b in alive or key == FOLLOWER_REPLICAS]
            values |= {(ConfigResource.broker(b), rate): rate_bytes_per_s for b in rated}
    values |= {(ConfigResource.broker(b), LOG_DIR_RATE): rate_bytes_per_s for b in log_dir_brokers}
    return values


def _setting(change: ThrottleChange) -> ConfigChange:
    operation = ConfigOperation.APPEND if change.is_list else ConfigOperation.SET
    return ConfigChange(change.resource, change.key, operation, change.ours)


def _undoing(change: ThrottleChange, present: Configs) -> ConfigChange | None:
    """None = nothing of it is there any more."""
    now = _own(change, present)
    if change.is_list:
        left = [item for item in split(change.ours) if item in split(now)]
        if not left:
            return None
        return ConfigChange(change.resource, change.key, ConfigOperation.SUBTRACT, ",".join(left))
    if now != change.ours:
        return None
    if change.before is None:
        return ConfigChange(change.resource, change.key, ConfigOperation.DELETE)
    return ConfigChange(change.resource, change.key, ConfigOperation.SET, change.before)


def _by_others(change: ThrottleChange, present: Configs) -> bool:
    """Whether a rate is neither ours nor the one from before, or a list names every replica now."""
    now = _own(change, present)
    if change.is_list:
        return now == EVERY_REPLICA
    return now not in (change.ours, change.before)


def _own(change: ThrottleChange, present: Configs) -> str | None:
    return own_value(change.resource, present.get(change.resource, {}).get(change.key))


def _place(change: ThrottleChange) -> str:
    return f"{change.resource} {change.key}"


def _read_changed(cluster: ClusterPort, changes: Collection[ThrottleChange]) -> Configs:
    """Of topics that are gone there is nothing."""
    if not changes:
        return {}
    return read(cluster, {c.resource for c in changes}, {c.key for c in changes})


def _alter(cluster: ClusterPort, changes: Sequence[ConfigChange]) -> None:
    """Make changes and see that each reads back: any broker may answer, and one may lag behind."""
    if not changes:
        return
    verdicts = cluster.alter_configs(changes)
    refusals = {resource: error for resource, error in verdicts.items() if error is not None}
    if refusals:
        text = "; ".join(f"{resource}: {error}" for resource, error in refusals.items())
        raise DirectThrottleError(f"A change of the throttle was refused on {text}", refusals)
    timeout, left = ProgressTimeout(VERIFY_TIMEOUT_S), list(changes)
    while left:
        present = read(cluster, {c.resource for c in left}, {c.key for c in left})
        still = [change for change in left if not _reads_back(change, present)]
        timeout.note_answer(progress=len(still) < len(left))
        left = still
        if left and timeout.exhausted:
            raise ThrottleError(
                f"{left[0].resource} {left[0].key} does not read back as set",
                next_step="See who else changes it, and try again.",
            )
        if left:
            pause(VERIFY_POLL_S)


def _reads_back(change: ConfigChange, present: Configs) -> bool:
    if change.resource not in present:
        return True  # the topic has gone, and its throttle with it
    now = own_value(change.resource, present[change.resource].get(change.key))
    if change.operation is ConfigOperation.SET:
        return now == change.value
    if change.operation is ConfigOperation.DELETE:
        return now is None
    there = [item in split(now) for item in split(change.value)]
    return all(there) if change.operation is ConfigOperation.APPEND else not any(there)


class DirectThrottleError(ClusterError):
    """Brokers refused changes of a throttle.

    :param refused: resource → the broker's code and message.
    """

    def __init__(self, what: str, refused: Mapping[ConfigResource, BrokerError]) -> None:
        self.refused = dict(refused)
        super().__init__(
            what,
            error=None,
            next_step="Correct what the broker names, then call the same method again: it "
            "makes the changes that are left.",
        )
