"""Cordoning the log dirs of brokers that are being drained (KIP-1066), journalled like throttles.

Kafka places no new replica on a broker all of whose log dirs are cordoned, unless a request names
the broker in an assignment. Needs metadata.version 4.3.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import BrokerId
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import Cordon, ReassignmentRequest
from rehome.errors import RehomeError
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.throttle.configs import (
    put,
    raise_unread,
    read_with_marks,
    settle_what_can_be,
)
from rehome.execution.throttle.keys import CORDONED, own_value, source_of
from rehome.execution.throttle.ownership.marks import Joining, is_mark
from rehome.ledger.base.records import ThrottleEntry, ThrottleState
from rehome.ledger.store import Ledger

EVERY_LOG_DIR = "*"
DESCRIBE_LOG_DIRS = 35
"""Number of DescribeLogDirs in Kafka's protocol."""
SHOWS_CORDONS_SINCE = 5
"""Its version of Kafka 4.3. Older brokers take the setting as they take any that they do not know:
no validation refuses it, and it does nothing."""
CORDONS_NOT_KNOWN = "brokers before Kafka 4.3 do not know that"


def cordon(
    plan: Plan, request: ReassignmentRequest, ledger: Ledger, cluster: OwnCluster
) -> tuple[BrokerId, ...]:
    """Cordon every log dir of the request's live brokers; those that were not cordoned before.

    A broker that another plan has cordoned stays so until the last one of them ends.
    With ``Cordon.UNDO`` clearing the plan's throttles puts back the earlier value; with
    ``Cordon.KEEP`` it stays. A retry changes nothing.

    :raises RehomeError: a broker refuses it, or it does not read back as set.
    """
    if request.cordon is Cordon.NO:
        return ()
    live = cluster.describe_cluster().brokers.keys()
    resources = [ConfigResource.broker(broker) for broker in request.emptied if broker in live]
    if not resources:
        return ()
    journalled = {
        entry.resource: entry
        for entry in ledger.throttles(
            cluster_id=plan.cluster_id, open_only=True, resources=resources, keys=[CORDONED]
        )
    }
    reading = (settle_what_can_be, ledger.ledger_id, cluster)
    configs_by_resource, unread, marks = read_with_marks(*reading, resources, [CORDONED])
    raise_unread(unread)
    entries = []
    changes: list[ConfigChange] = []
    for resource, configs in configs_by_resource.items():
        current = own_value(resource, configs.get(CORDONED))
        claims, journal_entry = marks.at(resource, CORDONED), journalled.get(resource)
        temporary = journal_entry is not None or current in claims.values
        if current == EVERY_LOG_DIR and not temporary:
            continue  # another client's, or kept by this plan
        before = (
            claims.before(journal_entry.prior_value if journal_entry else None)
            if temporary
            else current
        )
        if request.cordon is Cordon.KEEP:
            changes += claims.keep(EVERY_LOG_DIR)
        else:
            joining = Joining(plan.plan_id, EVERY_LOG_DIR, EVERY_LOG_DIR, before)
            changes += claims.join(joining)
        changes.append(cordon_change(resource))
        source = "NOT_SET" if before is None else source_of(resource)
        where = (plan.plan_id, plan.cluster_id, resource, CORDONED)
        entries.append(ThrottleEntry(*where, (EVERY_LOG_DIR,), before, source))
    live_brokers = [broker for broker in request.emptied if broker in live]
    _refuse(cluster, live_brokers, [change for change in changes if not is_mark(change.key)])
    put(ledger, cluster, entries, changes, inherits=True)
    if request.cordon is Cordon.KEEP:
        detail = "stays until an operator takes it back, as was asked for"
        ledger.mark_throttles(
            [replace(e, state=ThrottleState.KEPT, detail=detail) for e in entries]
        )
    return tuple(int(entry.resource.name) for entry in entries)


def cordon_change(resource: ConfigResource) -> ConfigChange:
    """What cordons every log dir of a broker."""
    return ConfigChange(resource, CORDONED, ConfigOperation.SET, EVERY_LOG_DIR)


def unable_to_cordon(cluster: ClusterPort, brokers: Collection[BrokerId]) -> list[BrokerId]:
    """Those of these brokers that do not know cordons."""
    able = cluster.supported_versions(brokers).value
    return sorted(
        broker
        for broker, versions in able.items()
        if versions.requests.get(DESCRIBE_LOG_DIRS, 0) < SHOWS_CORDONS_SINCE
    )


def _refuse(
    cluster: OwnCluster, brokers: Collection[BrokerId], changes: list[ConfigChange]
) -> None:
    if not changes:
        return
    verdicts = cluster.alter_configs(changes, validate_only=True)
    problems = [f"{resource}: {error}" for resource, error in verdicts.items() if error]
    problems += [f"broker {b}: {CORDONS_NOT_KNOWN}" for b in unable_to_cordon(cluster, brokers)]
    text = "; ".join(problems)
    if text:
        raise RehomeError(
            f"The log dirs cannot be cordoned. {text}",
            state_left="Nothing was cordoned. The plan's throttles are set, and will be cleared.",
            next_step="Trigger a new run with cordon=no, or correct what the broker names first.",
        )
