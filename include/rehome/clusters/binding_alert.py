"""Alerts of connections that lead to another cluster than they are bound to. Pure."""

from __future__ import annotations

from rehome.alerts.alert import Alert
from rehome.alerts.kinds import AlertKey, AlertKind
from rehome.clusters.binding import Misled


def of_connection(connection: str, found: Misled | None) -> tuple[list[Alert], list[AlertKey]]:
    """The alert of a connection, or what is over by now.

    :param found: None = it leads to what it is bound to.
    """
    if found is None:
        return [], [(AlertKind.WRONG_CLUSTER, connection)]
    alert = Alert(
        AlertKind.WRONG_CLUSTER,
        connection,
        f"{found.text}. Nothing starts through connection "
        f"{connection}; throttles are taken back all the same.",
        found.next_step,
        cluster_id=found.cluster_id,
        connection=connection,
        occurrence=f"{found.why} {found.cluster_id} {found.bound_id}",
        facts={"why": found.why.value, "bound_id": found.bound_id, "entry": found.entry},
    )
    return [alert], []
