"""Taking throttles down: only what is ours, back to what stood there before, byte for byte.

Works from the ledger alone, in any process. What cannot be cleared now is owed, and paid later.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

from include.cluster.errors import ClusterError
from include.cluster.model import BrokerError, BrokerId, ConfigValue
from include.cluster.port import (
    ClusterPort,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ResourceType,
)
from include.execution.model import PlanState
from include.execution.throttle_configs import (
    UNKNOWN_TOPIC_OR_PARTITION,
    VERIFY_POLL_S,
    VERIFY_TIMEOUT_S,
)
from include.execution.throttle_items import (
    CHANGED_SINCE,
    first_step,
    next_step,
    own_value,
    put_back,
)
from include.ledger.records import ThrottleEntry, ThrottleState
from include.ledger.store import Ledger


@dataclass(frozen=True)
class Cleared:
    """What was cleared, and what is still owed (each entry's ``detail`` says why)."""

    cleared: tuple[ThrottleEntry, ...] = ()
    owed: tuple[ThrottleEntry, ...] = ()


def clear_throttle(plan_id: str, ledger: Ledger, cluster: ClusterPort) -> Cleared:
    """Take down every throttle of a plan, and prove it by reading. Idempotent.

    Never raises for what the cluster does or says: what it prevents is owed.
    """
    return _clear(ledger.throttles(plan_id, open_only=True), ledger, cluster)


def sweep(ledger: Ledger, cluster: ClusterPort, cluster_id: str | None = None) -> Cleared:
    """Pay what plans that do not run any more still owe on this cluster.

    To be called under the cluster's lease: a plan that is resumed meanwhile sets up anew what
    is taken back here.

    :param cluster_id: of the cluster, where that is known; else it is asked.
    :raises ClusterError: the cluster cannot be reached at all.
    """
    if cluster_id is None:
        cluster_id = cluster.describe_cluster().cluster_id
    journalled = ledger.throttles(cluster_id=cluster_id, open_only=True)
    # States after entries: a plan that starts in between has entries that must not be read.
    states = {plan_id: ledger.plan(plan_id).state for plan_id in {e.plan_id for e in journalled}}
    entries = [e for e in journalled if states[e.plan_id] is not PlanState.RUNNING]
    return _clear(entries, ledger, cluster)


def _clear(entries: Collection[ThrottleEntry], ledger: Ledger, cluster: ClusterPort) -> Cleared:
    if not entries:
        return Cleared()
    clearing = _Clearing(entries, ledger, cluster)
    try:
        clearing.run()
    except ClusterError as error:
        clearing.owe_all(error.what)
    return Cleared(tuple(clearing.cleared), tuple(clearing.owed))


class _Clearing:
    """Reads, changes and reads again until nothing of ours is left."""

    def __init__(
        self, entries: Collection[ThrottleEntry], ledger: Ledger, cluster: ClusterPort
    ) -> None:
        self._left = list(entries)
        self._ledger = ledger
        self._cluster = cluster
        self._deadline = time.monotonic() + VERIFY_TIMEOUT_S
        self._made: dict[tuple[ConfigResource, str], ConfigOperation] = {}
        self.cleared: list[ThrottleEntry] = []
        self.owed: list[ThrottleEntry] = []

    def run(self) -> None:
        live = set(self._cluster.describe_cluster().brokers)
        dead = [e for e in self._left if _broker(e.resource) not in (None, *live)]
        if dead:
            self._at_controllers(dead)
        self._round(first=True)
        while self._left and time.monotonic() < self._deadline:
            time.sleep(VERIFY_POLL_S)
            self._round(first=False)
        self.owe_all("does not read back as restored")

    def _at_controllers(self, entries: Collection[ThrottleEntry]) -> None:
        """Of brokers that are dead: their controllers take the change, where they can be reached.

        What stands there cannot be read. It is ours, by the last reading; where that has shown
        somebody else's change, the entry waits for the broker.
        """
        ours = [entry for entry in entries if entry.detail != CHANGED_SINCE]
        verdicts = self._cluster.alter_configs([put_back(entry) for entry in ours])
        for entry in entries:
            if entry in ours and verdicts[entry.resource] is None:
                self._done(entry, "taken back at the controllers: its broker is not alive")
            else:
                what = f"{entry.resource} is not alive"
                self._owe(entry, CHANGED_SINCE if entry.detail == CHANGED_SINCE else what)

    def _round(self, *, first: bool) -> None:
        resources = {entry.resource for entry in self._left}
        keys = {entry.key for entry in self._left}
        found = self._cluster.describe_configs(sorted(resources), keys) if resources else {}
        changes = []
        for entry in list(self._left):
            change = self._step(entry, found[entry.resource], first)
            if change is not None:
                changes.append(change)
        verdicts = self._cluster.alter_configs(changes) if changes else {}
        for entry in list(self._left):
            error = verdicts.get(entry.resource)
            if error is not None and error.code != UNKNOWN_TOPIC_OR_PARTITION:
                self._owe(entry, str(error))

    def _step(
        self, entry: ThrottleEntry, found: dict[str, ConfigValue] | BrokerError, first: bool
    ) -> ConfigChange | None:
        if isinstance(found, BrokerError):
            if found.code == UNKNOWN_TOPIC_OR_PARTITION:
                self._done(entry, "the topic is gone, and its throttle with it")
            else:
                self._owe(entry, str(found))
            return None
        standing = own_value(entry.resource, found.get(entry.key))
        step = first_step(entry, standing) if first else next_step(entry, standing)
        if isinstance(step, ConfigChange):
            self._made[entry.resource, entry.key] = step.operation
            return step
        if not self._is_behind(entry, standing):
            self._done(entry, step.detail)
        return None

    def _is_behind(self, entry: ThrottleEntry, standing: str | None) -> bool:
        """A SUBTRACT leaves an empty value where no key was: no key at all is an old reading.

        Or somebody has deleted the key since; after a while that is what is believed.
        """
        subtracted = self._made.get((entry.resource, entry.key)) is ConfigOperation.SUBTRACT
        late = time.monotonic() > self._deadline - VERIFY_TIMEOUT_S / 2
        return subtracted and standing is None and not late

    def _done(self, entry: ThrottleEntry, detail: str) -> None:
        self._left.remove(entry)
        self._ledger.mark_throttle(entry, ThrottleState.CLEARED, detail)
        self.cleared.append(entry)

    def _owe(self, entry: ThrottleEntry, detail: str) -> None:
        self._left.remove(entry)
        self._ledger.mark_throttle(entry, ThrottleState.OWED, detail)
        self.owed.append(entry)

    def owe_all(self, detail: str) -> None:
        """Whatever is left could not be cleared, for this reason."""
        for entry in list(self._left):
            self._owe(entry, detail)


def _broker(resource: ConfigResource) -> BrokerId | None:
    if resource.type is ResourceType.BROKER and resource.name:
        return int(resource.name)
    return None
