"""A cluster is its id: what acts through a connection asks here first whether it leads there."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from rehome import alerting
from rehome.alerts.kinds import AlertKind
from rehome.clusters.clusters_file import NO_FILE, ClustersFileError
from rehome.fleet import clusters, policies
from rehome.run.authority import refusals

if TYPE_CHECKING:
    from rehome.clusters.binding import Misled
    from rehome.ledger.store import Ledger
    from rehome.run.context import RunContext

log = logging.getLogger(__name__)


def require(context: RunContext, cluster_id: str) -> None:
    """See that the task's connection leads to the cluster that it, and its entry, are bound to.
    What is used for the first time is bound.

    :param cluster_id: where it leads, as the task has just read.
    :raises MisledError: it does not; people have been alerted, and the audit has the refusal.
    :raises ClustersFileError: the clusters file cannot be used.
    """
    from rehome.clusters.binding import MisledError
    from rehome.clusters.binding_alert import of_connection

    clusters.file()
    mismatch = _look(context, cluster_id)
    alerting.raise_alerts(context.ledger, *of_connection(context.connection, mismatch))
    if mismatch is not None:
        refusals.tell_misled(context, mismatch)
        raise MisledError(mismatch)


def record_binding(context: RunContext, cluster_id: str) -> Misled | None:
    """Record where the task's connection leads, and tell people if nothing acts through it; None =
    it fits, as far as that is known while the clusters file cannot be used.
    """
    from rehome.clusters.binding_alert import of_connection

    mismatch = _look(context, cluster_id)
    if mismatch is None:
        alerting.raise_alerts(context.ledger, *of_connection(context.connection, None))
    else:
        tell(context, mismatch)
    return mismatch


def tell(context: RunContext, mismatch: Misled) -> None:
    """Alert people that nothing acts through a connection. The audit is told once, for as long as
    that lasts.
    """
    from rehome.clusters.binding_alert import of_connection

    log.error("Nothing acts through it: %s. %s", mismatch.text, mismatch.next_step)
    raised = {each.subject for each in context.ledger.open_alerts(AlertKind.WRONG_CLUSTER)}
    if mismatch.connection not in raised:
        refusals.tell_misled(context, mismatch)
    alerting.raise_alerts(context.ledger, *of_connection(mismatch.connection, mismatch))


def _look(context: RunContext, cluster_id: str) -> Misled | None:
    """Record where the task's connection leads; why nothing acts through it."""
    from rehome.clusters.binding import entry_name, misled_through

    ledger, connection, read_by = context.ledger, context.connection, _reader(context)
    ledger.record_connection(connection, cluster_id, read_by)
    policies.note(ledger, connection)
    if clusters.is_windowless(connection):
        ledger.record_windowless(connection)
    try:
        file = clusters.file()
    except ClustersFileError:  # whatever needs it says so
        file = NO_FILE
    mismatch = misled_through(connection, cluster_id, file, ledger.bindings())
    entry = entry_name(connection, file)
    if mismatch is None and entry:
        ledger.bind_entry(entry, cluster_id, read_by)
    return mismatch


def known_misled(ledger: Ledger, connection: str, cluster_id: str) -> Misled | None:
    """The same by what was read before, and without any change: for what opens no connection.

    :raises ClustersFileError: the clusters file cannot be used.
    """
    from rehome.clusters.binding import misled_through

    return misled_through(connection, cluster_id, clusters.file(), ledger.bindings())


def all_known_misled(ledger: Ledger) -> list[Misled]:
    """Connections through which nothing acts, by where each was last seen to lead, as far as that
    is known while the clusters file cannot be used.
    """
    from rehome.clusters.binding import all_misled

    try:
        file = clusters.file()
    except ClustersFileError:
        file = NO_FILE
    return all_misled(file, ledger.bindings())


def wrong_connections(ledger: Ledger, cluster_id: str) -> dict[str, dict[str, Any]]:
    """Those that lead to a cluster, or are bound to it: name → facts of a finding about it."""
    return {
        each.connection: {
            "leads_to": each.cluster_id,
            "bound_id": each.bound_id,
            "entry": each.entry,
            "entries": list(each.entries),
        }
        for each in all_known_misled(ledger)
        if cluster_id in (each.cluster_id, each.bound_id)
    }


def settle(ledger: Ledger) -> None:
    """Close the alerts of connections that fit by now: the file was changed, or a person has bound
    them anew.

    :raises ClustersFileError: the clusters file cannot be used.
    """
    from rehome.clusters.binding import all_misled

    raised = ledger.open_alerts(AlertKind.WRONG_CLUSTER)
    if not raised:
        return
    still = {each.connection for each in all_misled(clusters.file(), ledger.bindings())}
    over = [(each.kind, each.subject) for each in raised if each.subject not in still]
    alerting.raise_alerts(ledger, [], over)


def _reader(context: RunContext) -> str:
    """What has read where a connection leads, for people."""
    run, task = context.dag_run, context.task
    parts = (getattr(run, "dag_id", ""), getattr(run, "run_id", ""), getattr(task, "task_id", ""))
    return "/".join(str(part) for part in parts if part)
