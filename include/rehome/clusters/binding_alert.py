"""Alerts of connections that lead to another cluster than they are bound to. Pure."""

from __future__ import annotations

from rehome.alerts.alert import Alert
from rehome.alerts.kinds import AlertKey, AlertKind
from rehome.clusters.binding import Misled


def of_connection(connection: str, mismatch: Misled | None) -> tuple[list[Alert], list[AlertKey]]:
    """The alert of a connection, or what is over by now.

    :param mismatch: None = it leads to what it is bound to.
    """
    if mismatch is None:
        return [], [(AlertKind.WRONG_CLUSTER, connection)]
    alert = Alert(
        AlertKind.WRONG_CLUSTER,
        connection,
        f"{mismatch.text}. Nothing starts through connection "
        f"{connection}; throttles are taken back all the same.",
        mismatch.next_step,
        cluster_id=mismatch.cluster_id,
        connection=connection,
        occurrence=f"{mismatch.why} {mismatch.cluster_id} {mismatch.bound_id}",
        facts={"why": mismatch.why.value, "bound_id": mismatch.bound_id, "entry": mismatch.entry},
    )
    return [alert], []
