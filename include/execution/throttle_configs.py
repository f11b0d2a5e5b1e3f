"""Throttle configurations read and changed: the journal first, then a reading as proof."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence

from include.cluster.errors import ClusterError
from include.cluster.model import BrokerError, ConfigValue
from include.cluster.port import ClusterPort, ConfigChange, ConfigOperation, ConfigResource
from include.errors import RehomeError
from include.execution.throttle_items import own_value, split
from include.ledger.records import ThrottleEntry, ThrottleState
from include.ledger.store import Ledger

VERIFY_TIMEOUT_S = 10.0
VERIFY_POLL_S = 0.1
SETTLE_S = 0.2
UNKNOWN_TOPIC_OR_PARTITION = 3
NO_ANSWER = (7, 8, 13)
"""REQUEST_TIMED_OUT, BROKER_NOT_AVAILABLE, NETWORK_EXCEPTION: said on this side of the wire."""

Configs = Mapping[ConfigResource, Mapping[str, ConfigValue]]


def read(
    cluster: ClusterPort, resources: Collection[ConfigResource], keys: Collection[str]
) -> dict[ConfigResource, Mapping[str, ConfigValue]]:
    """Configs of these resources; topics that do not exist are left out.

    :raises ClusterError: a resource could not be read.
    """
    found: dict[ConfigResource, Mapping[str, ConfigValue]] = {}
    for resource, configs in cluster.describe_configs(resources, keys).items():
        if not isinstance(configs, BrokerError):
            found[resource] = configs
        elif configs.code != UNKNOWN_TOPIC_OR_PARTITION:
            raise ClusterError(
                f"The throttle that stands on {named(resource)} cannot be read",
                error=configs,
                next_step="A throttle is only set where the one before it is known. Try again.",
            )
    return found


def read_settled(
    cluster: ClusterPort, resources: Collection[ConfigResource], keys: Collection[str]
) -> dict[ConfigResource, Mapping[str, ConfigValue]]:
    """As :func:`read`, until two readings agree.

    Any broker may answer, and one under load can be behind the controller for a moment: what
    stood there before must not be journalled from its memory.

    :raises RehomeError: the configurations keep changing.
    """
    deadline = time.monotonic() + VERIFY_TIMEOUT_S
    found = read(cluster, resources, keys)
    while time.monotonic() < deadline:
        time.sleep(SETTLE_S)
        again = read(cluster, resources, keys)
        if again == found:
            return found
        found = again
    raise RehomeError(
        "The throttles that stand on the cluster keep changing",
        next_step="See who changes them, and trigger again when they have ended.",
    )


def put(
    ledger: Ledger,
    cluster: ClusterPort,
    entries: Sequence[ThrottleEntry],
    changes: Sequence[ConfigChange],
) -> None:
    """Journal the entries, make the changes, and read them back.

    :raises ClusterError: a broker did not answer.
    :raises RehomeError: a change was refused, or does not read back as made.
    """
    if not entries:
        return
    ledger.journal_throttles(entries)
    refused = {
        resource: error
        for resource, error in cluster.alter_configs(changes).items()
        if error is not None
    }
    if refused:
        told = "; ".join(f"{named(resource)}: {error}" for resource, error in refused.items())
        left = "What was set is journalled, and clear_throttle takes it back."
        if all(error.code in NO_ANSWER for error in refused.values()):
            raise ClusterError(
                f"The throttle could not be set on {told}",
                state_left=left,
                next_step="Try again when the broker is back.",
            )
        raise RehomeError(
            f"The throttle was refused on {told}",
            state_left=left,
            next_step="Correct what the broker names, then trigger again.",
        )
    _wait_until_read_back(cluster, changes)
    for entry in entries:
        ledger.mark_throttle(entry, ThrottleState.APPLIED)


def _wait_until_read_back(cluster: ClusterPort, changes: Sequence[ConfigChange]) -> None:
    """Brokers follow the controller within milliseconds; the answer may come from any of them."""
    deadline = time.monotonic() + VERIFY_TIMEOUT_S
    resources = {change.resource for change in changes}
    keys = {change.key for change in changes}
    while True:
        found = read(cluster, resources, keys)
        missing = [change for change in changes if not _reads_back(change, found)]
        if not missing:
            return
        if time.monotonic() > deadline:
            raise RehomeError(
                f"The throttle on {named(missing[0].resource)} does not read back as set: "
                f"{missing[0].key} should hold {missing[0].value}",
                state_left="What was set is journalled, and clear_throttle takes it back.",
                next_step="See who else changes this configuration, then trigger again.",
            )
        time.sleep(VERIFY_POLL_S)


def _reads_back(change: ConfigChange, found: Configs) -> bool:
    if change.resource not in found:
        return True  # the topic has gone, and its throttle with it
    standing = own_value(change.resource, found[change.resource].get(change.key))
    if change.operation is ConfigOperation.SET:
        return standing == change.value
    there = set(split(change.value)) & set(split(standing))
    return there == set(split(change.value)) if _appends(change) else not there


def _appends(change: ConfigChange) -> bool:
    return change.operation is ConfigOperation.APPEND


def named(resource: ConfigResource) -> str:
    """A resource in words: "topic payments", "broker 3", "the brokers' default"."""
    return str(resource)
