"""The page's application: every route behind one dependency, every request within bounds."""

from __future__ import annotations

from fastapi import Depends, FastAPI, HTTPException, Request, Response, status
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException

from rehome.errors import PlanConflictError, RehomeError
from rehome.ui import access, routes
from rehome.ui.page_bounds import PageBounds, error_page


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
    app.add_middleware(PageBounds)
    app.exception_handler(StarletteHTTPException)(_http_error)
    app.exception_handler(RequestValidationError)(_invalid)
    app.exception_handler(RehomeError)(_rehome_error)
    app.exception_handler(Exception)(_unexpected_error)
    return app


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, (HTTPException, StarletteHTTPException))
    answer = error_page(request.scope, error.status_code, str(error.detail))
    answer.headers.update(error.headers or {})
    return answer


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    names = sorted({str(each["loc"][-1]) for each in error.errors()})
    detail = f"The address, or the form, has a value that cannot be: {', '.join(names)}."
    return error_page(request.scope, status.HTTP_422_UNPROCESSABLE_CONTENT, detail)


async def _rehome_error(request: Request, error: Exception) -> Response:
    unknown = isinstance(error, PlanConflictError)
    code = status.HTTP_404_NOT_FOUND if unknown else status.HTTP_503_SERVICE_UNAVAILABLE
    return error_page(request.scope, code, str(error))


async def _unexpected_error(request: Request, error: Exception) -> Response:
    """Starlette logs the error with its traceback."""
    detail = (
        f"The page ran into an error of its own ({type(error).__name__}). The log of Airflow's "
        "API server has the rest."
    )
    return error_page(request.scope, status.HTTP_500_INTERNAL_SERVER_ERROR, detail)
