"""The policy of a cluster: of every connection that leads to it, read within Airflow."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from rehome.errors import RehomeError
from rehome.execution.access.cluster_policy import PaceAndApproval, strictest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rehome.execution.access.connection_policy import ConnectionPolicy
    from rehome.hooks.cluster import KafkaClusterHook
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger

log = logging.getLogger(__name__)


def policy_of_cluster(
    ledger: Ledger,
    cluster_id: str | None,
    connection: str,
    plan: PlanRecord | None = None,
    *,
    as_last_read: bool = False,
    read: dict[str, ConnectionPolicy | None] | None = None,
) -> ConnectionPolicy:
    """What may be done on a cluster through a connection: its own policy, and of approval and pace
    the strictest of all connections that lead to the cluster, as last seen, and of the one that a
    plan was made through, as it was then.

    A policy of another connection that cannot be read counts as the strictest. A connection that
    Airflow does not have any more counts no longer, and the audit says so.

    :param cluster_id: None = not known: nothing was read through the connection yet.
    :param plan: that is acted for; None = none.
    :param as_last_read: take other policies from the ledger: for the page, which only shows them.
    :param read: policies of other connections that the task has read, by connection; what is read
        now is kept there, for each reading is a request to Airflow's API.
    :raises InvalidRequestError: the connection's own policy cannot be read.
    """
    own = cluster_hook(connection).policy
    last_policies = {} if cluster_id is None else dict(ledger.last_policies(cluster_id))
    if plan is not None and plan.policy is None and plan.planned_through:
        last_policies.setdefault(
            plan.planned_through, None
        )  # of before policies were kept with plans
    others = [
        *_others(
            ledger,
            last_policies,
            cluster_id,
            connection,
            as_last_read,
            {} if read is None else read,
        )
    ]
    if plan is not None and plan.policy is not None:
        others.append(PaceAndApproval.from_record(plan.policy))
    return strictest(own, others)


def cluster_hook(connection: str) -> KafkaClusterHook:
    """The hook, imported late: Kafka's clients are heavy, and every DAG imports this module."""
    from rehome.hooks.cluster import KafkaClusterHook

    return KafkaClusterHook(connection)


def recorded_policy(connection: str) -> dict[str, Any]:
    """What a connection says of approval and pace now, to be kept with a plan.

    :raises InvalidRequestError: its policy cannot be read.
    """
    return PaceAndApproval.of(cluster_hook(connection).policy).to_json()


def note(ledger: Ledger, connection: str) -> None:
    """Keep what a connection says of approval and pace, so that it is known where it cannot be read
    any more. What cannot be read now stays as it was known.
    """
    try:
        ledger.record_policy(connection, recorded_policy(connection))
    except RehomeError as error:  # whatever acts by it says so
        log.debug("The policy of connection %s is not kept: %s", connection, error)


def _others(
    ledger: Ledger,
    last_policies: Mapping[str, Mapping[str, Any] | None],
    cluster_id: str | None,
    connection: str,
    as_last_read: bool,
    read: dict[str, ConnectionPolicy | None],
) -> Iterator[PaceAndApproval]:
    for name, last in last_policies.items():
        if name == connection:
            continue
        if as_last_read:
            if last is not None:
                yield PaceAndApproval.last_read(name, last)
            continue
        if name not in read:
            read[name] = _read(name)
        if (policy := read[name]) is not None:
            yield PaceAndApproval.of(policy)
        elif cluster_hook(name).exists:
            yield PaceAndApproval.unreadable(name, last)
        else:
            log.warning(
                "Connection %s, which led to cluster %s, is gone: its policy counts no more.",
                name,
                cluster_id,
            )
            ledger.forget_connection(name)


def _read(connection: str) -> ConnectionPolicy | None:
    """The policy of another connection; None = it cannot be read, whatever the reason."""
    try:
        return cluster_hook(connection).policy
    except Exception as error:  # noqa: BLE001 - it must not stop what goes through another one
        log.warning("The policy of connection %s cannot be read: %s", connection, error)
        return None
