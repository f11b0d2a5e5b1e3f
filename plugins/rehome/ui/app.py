"""The page's application: every route behind one dependency, every answer with strict headers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import Depends, FastAPI, HTTPException, Request, Response, status
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from include.errors import PlanConflictError, RehomeError
from rehome.ui import access, routes
from rehome.ui.rendering import render

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox"
)
"""Of reports: one file with its style inside, and no script."""


def create_app() -> FastAPI:
    """The application that the plugin mounts."""
    app = FastAPI(
        title="Rehome",
        dependencies=[Depends(access.reader)],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.include_router(routes.router)
    app.middleware("http")(_strict_headers)
    app.exception_handler(StarletteHTTPException)(_http_error)
    app.exception_handler(RehomeError)(_rehome_error)
    return app


async def _strict_headers(
    request: Request, answer: Callable[[Request], Awaitable[Response]]
) -> Response:
    response = await answer(request)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, (HTTPException, StarletteHTTPException))
    return _page(request, error.status_code, str(error.detail))


async def _rehome_error(request: Request, error: Exception) -> Response:
    unknown = isinstance(error, PlanConflictError)
    code = status.HTTP_404_NOT_FOUND if unknown else status.HTTP_503_SERVICE_UNAVAILABLE
    return _page(request, code, str(error))


_HEADS = {
    401: "Log in to Airflow first",
    403: "Not allowed",
    404: "Not found",
    503: "The ledger cannot be read",
}


def _page(request: Request, code: int, detail: str) -> Response:
    head = _HEADS.get(code, "This did not work")
    root = request.scope.get("root_path", "")
    html = render("error.html", head=head, detail=detail, root=root, token="", fragment=False)
    return HTMLResponse(html, code)
