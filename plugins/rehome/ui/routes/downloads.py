"""Files: of plans, the table as CSV, Data Docs, style sheets and scripts."""

from __future__ import annotations

import csv
import io
import mimetypes
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, Response, StreamingResponse

from rehome import installation
from rehome.ledger.base.paging import MoveFilter
from rehome.page.files import SERVED, PlanFiles, files_of
from rehome.run.context import run_digest
from rehome.ui import access
from rehome.ui.access import UserDep
from rehome.ui.flow_pictures import FLOWS, flow_svg
from rehome.ui.headers import REPORT_POLICY
from rehome.ui.routes.plan import move_filter
from rehome.ui.routes.shared import plans, view_for

_DATA_DOCS = "data_docs"
_DATA_DOCS_PAGE = re.compile(r"(?:[\w.:+-]+/)*[\w.:+-]+\.html")


router = APIRouter()
LONGEST_NAME = 100
"""Of a file below static; file systems know no names of more than 255 bytes."""
STATIC = Path(__file__).parents[1] / "static"


@router.get("/plans/{plan_id}/partitions.csv")
def partitions_csv(request: Request, user: UserDep, plan_id: str) -> StreamingResponse:
    """The table of partitions as it is filtered and sorted, whole."""
    view = view_for(plan_id, user)
    headers = {"Content-Disposition": f'attachment; filename="{view.record.plan_id}.csv"'}
    return StreamingResponse(
        _csv(view.record.plan_id, move_filter(request)), media_type="text/csv", headers=headers
    )


def _csv(plan_id: str, filters: MoveFilter) -> Iterator[str]:
    head = ["topic", "partition", "current", "target", "bytes", "reason", "state", "detail"]
    yield _csv_row([*head, "bytes_behind", "messages_behind"])
    offset, together = 0, 5000
    while lines := plans.ledger.move_page(plan_id, filters, offset, together).lines:
        for line in lines:
            move = line.move
            yield _csv_row(
                [
                    *move.partition,
                    " ".join(map(str, move.current)),
                    " ".join(map(str, move.target)),
                    move.bytes_to_copy,
                    move.reason,
                    line.state,
                    line.detail,
                    line.bytes_behind,
                    line.messages_behind,
                ]
            )
        offset += together


def _csv_row(values: list[Any]) -> str:
    """One line. A text that a spreadsheet would take for a formula is quoted by a leading quote."""
    text = io.StringIO()
    csv.writer(text).writerow(
        [f"'{v}" if isinstance(v, str) and v[:1] in ("=", "+", "-", "@") else v for v in values]
    )
    return text.getvalue()


@router.get("/files/{plan_id}/{name}")
def file(request: Request, user: UserDep, plan_id: str, name: str) -> Response:
    """One of a plan's files, wherever the warehouse is."""
    view = view_for(plan_id, user)
    if name not in SERVED:
        raise HTTPException(404, f"There is no file {name!r} of a plan to be fetched")
    files = files_of(plans.ledger, view.record)
    text = files.text(name)
    if text is None:
        raise HTTPException(404, files.problem or f"{files.uri}/{name} does not exist (yet).")
    media = mimetypes.guess_type(name)[0] or "text/plain"
    headers = {"Content-Security-Policy": REPORT_POLICY} if media == "text/html" else {}
    return Response(text, media_type=f"{media}; charset=utf-8", headers=headers)


@router.get("/files/{plan_id}/export/{name}")
def export_file(user: UserDep, plan_id: str, name: str) -> Response:
    """One of the files for Kafka's own tools."""
    files = files_of(plans.ledger, view_for(plan_id, user).record)
    text = files.exported_text(name)
    if text is None:
        none = f"There is no file {name!r} among those that were exported"
        raise HTTPException(404, files.problem or none)
    return Response(text, media_type="text/plain; charset=utf-8")


@router.get("/flows/{dag_id}.svg")
def flow(dag_id: str) -> Response:
    """The picture of a DAG's steps."""
    if dag_id not in FLOWS:
        raise HTTPException(404, f"There is no picture of {dag_id!r}")
    headers = {"Cache-Control": "private, max-age=3600"}
    return Response(flow_svg(dag_id), media_type="image/svg+xml", headers=headers)


@router.get("/static/{name:path}")
def static(name: str) -> FileResponse:
    """Style sheets and scripts."""
    path = (STATIC / name).resolve() if len(name) <= LONGEST_NAME else STATIC
    if not path.is_relative_to(STATIC) or not path.is_file():
        raise HTTPException(404, f"There is no file {name!r}")
    media = mimetypes.guess_type(path.name)[0] or "text/plain"
    return FileResponse(path, media_type=media, headers={"Cache-Control": "private, max-age=3600"})


@router.get("/data-docs/{dag_id}/{run_id}/{name:path}")
def data_docs(user: UserDep, dag_id: str, run_id: str, name: str) -> Response:
    """A page of a run's Data Docs, whether the gates let its plan pass or not. The pages have no
    script, and nothing of another host; a policy sees to it.
    """
    plan_dir = _directory(user, dag_id, run_id)
    if not _DATA_DOCS_PAGE.fullmatch(name) or ".." in name.split("/"):
        raise HTTPException(404, f"There is no page {name!r} of Data Docs")
    files = PlanFiles(plan_dir)
    text = files.text(f"{_DATA_DOCS}/{name}")
    if text is None:
        why = f"{files.uri}/{_DATA_DOCS}/{name} does not exist: the log of the task plan says why."
        raise HTTPException(404, files.problem or why)
    return HTMLResponse(text, headers={"Content-Security-Policy": REPORT_POLICY})


def _directory(user: UserDep, dag_id: str, run_id: str) -> str:
    """Where the plan of a run is, recorded or refused.

    :raises HTTPException: 404: there is none, or it is not for this user.
    """
    if not access.may_read(user, dag_id):
        raise HTTPException(404, f"No plan of a run of {dag_id} is known")
    digest = run_digest(dag_id, run_id)
    plan_id = plans.ledger.plan_of_run(dag_id, run_id)
    if plan_id is not None:
        return plans.view(plan_id)[0].record.plan_dir
    directory = installation.warehouse().plan_that_ends(digest)
    if directory is None:
        raise HTTPException(404, f"No plan of the run {run_id} of {dag_id} is known")
    return directory.uri
