"""What connections are bound to: a person binds one to the cluster that it leads to by now."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import Response

from rehome.clusters.binding import entries_for
from rehome.clusters.clusters_file import ClustersFileError
from rehome.errors import PlanConflictError
from rehome.fleet import bound, clusters
from rehome.ui.access import ControllerDep
from rehome.ui.routes.shared import plans, root_of

router = APIRouter()


@router.post("/rebind")
def rebind(
    request: Request,
    user: ControllerDep,
    connection: Annotated[str, Form()],
    cluster_id: Annotated[str, Form()],
) -> Response:
    """Bind a connection, and its entry in the clusters file, to where it leads, in the user's name.

    :param cluster_id: that the page has shown: if it leads elsewhere by now, nothing is bound.
    """
    ledger = plans.ledger
    misled = (each for each in bound.all_known_misled(ledger) if each.connection == connection)
    mismatch = next(misled, None)
    if mismatch is None or not mismatch.rebinds or mismatch.cluster_id != cluster_id:
        raise HTTPException(409, "The page does not offer this any more. Reload it.")
    try:
        same = entries_for(cluster_id, clusters.file(), ledger.bindings())
    except ClustersFileError as error:
        raise HTTPException(409, str(error)) from None
    if mismatch.entry and set(same) - {mismatch.entry}:
        names = ", ".join(sorted({mismatch.entry, *same}))
        text = f"Entries {names} of the clusters file would be for one cluster, {cluster_id}. "
        raise HTTPException(409, text + "Take the other one out of the file first.")
    try:
        address = None if request.client is None else request.client.host
        who: dict[str, Any] = {"user_id": user.get_id(), "address": address}
        ledger.rebind(connection, mismatch.entry or None, cluster_id, user.get_name(), **who)
    except PlanConflictError as error:
        raise HTTPException(409, str(error)) from None
    bound.settle(ledger)
    return Response(headers={"HX-Redirect": f"{root_of(request)}/clusters"})
