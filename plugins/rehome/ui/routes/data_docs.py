"""What Great Expectations found in a run's plan, in its own format: Data Docs."""

from __future__ import annotations

import re

from fastapi import APIRouter, HTTPException
from fastapi.responses import HTMLResponse, Response

from rehome import installation
from rehome.page.files import PlanFiles
from rehome.run.context import run_digest
from rehome.ui import access
from rehome.ui.access import UserDep
from rehome.ui.headers import REPORT_POLICY
from rehome.ui.routes.shared import plans

router = APIRouter()
FOLDER = "data_docs"
_PAGE = re.compile(r"(?:[\w.:+-]+/)*[\w.:+-]+\.html")


@router.get("/data-docs/{dag_id}/{run_id}/{name:path}")
def data_docs(user: UserDep, dag_id: str, run_id: str, name: str) -> Response:
    """A page of a run's Data Docs, whether the gates let its plan pass or not. The pages have no
    script, and nothing of another host; a policy sees to it.
    """
    plan_dir = _directory(user, dag_id, run_id)
    if not _PAGE.fullmatch(name) or ".." in name.split("/"):
        raise HTTPException(404, f"There is no page {name!r} of Data Docs")
    files = PlanFiles(plan_dir)
    text = files.text(f"{FOLDER}/{name}")
    if text is None:
        why = f"{files.uri}/{FOLDER}/{name} does not exist: the log of the task plan says why."
        raise HTTPException(404, files.problem or why)
    return HTMLResponse(text, headers={"Content-Security-Policy": REPORT_POLICY})


def _directory(user: UserDep, dag_id: str, run_id: str) -> str:
    """Where the plan of a run is, recorded or refused.

    :raises HTTPException: 404: there is none, or it is not for this user.
    """
    if not access.may_read(user, dag_id):
        raise HTTPException(404, f"No plan of a run of {dag_id} is known")
    digest = run_digest(dag_id, run_id)
    found = plans.ledger.plan_of_run(dag_id, run_id)
    if found is not None:
        return plans.view(found)[0].record.plan_dir
    directory = installation.warehouse().plan_that_ends(digest)
    if directory is None:
        raise HTTPException(404, f"No plan of the run {run_id} of {dag_id} is known")
    return directory.uri
