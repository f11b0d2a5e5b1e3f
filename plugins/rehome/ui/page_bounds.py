"""Requests to the page, before FastAPI sees them: what is out of bounds, and forms of strangers.

FastAPI reads and parses a form on the event loop before it asks who has sent it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import HTTPException
from fastapi.responses import HTMLResponse, JSONResponse, Response

from rehome.api import bounded, identity
from rehome.ui.rendering import render

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LONGEST_PATH = 1500
"""Characters; the ids of a DAG and of its run have 250 at most, and may each be one of several."""
LONGEST_QUERY = 8000
LARGEST_FORM_BYTES = 200_000
MOST_FIELDS = 2000
"""Of a form: each of them takes the event loop some microseconds to read."""
READING = ("GET", "HEAD", "OPTIONS")
FORM = "application/x-www-form-urlencoded"

_HEADS = {
    401: "Log in to Airflow first",
    403: "Not allowed",
    404: "Not found",
    405: "Not possible here",
    429: "Too many at once",
    503: "The ledger cannot be read",
}


def wants_json(scope: Scope) -> bool:
    """Whether a program asks, by its header Accept: it gets as data what people get as a page."""
    accepts = (value for name, value in scope["headers"] if name == b"accept")
    return b"application/json" in next(accepts, b"")


def error_page(scope: Scope, code: int, detail: str) -> Response:
    """What is wrong, as a page, or as data for programs."""
    head = _HEADS.get(code, "This did not work")
    if wants_json(scope):
        return JSONResponse({"rehome": head, "detail": detail}, code)
    root = scope.get("root_path", "")
    html = render("error.html", head=head, detail=detail, root=root, token="", fragment=False)
    return HTMLResponse(html, code)


class PageBounds:
    """ASGI middleware of the page's application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on as it came."""
        try:
            _see_to_address(scope)
            if scope["method"] not in READING:
                await identity.user_of(scope)
                receive = bounded.again(await _form(scope, receive), receive)
        except HTTPException as error:
            answer = error_page(scope, error.status_code, str(error.detail))
            if bounded.to_be_closed(scope, error.status_code):
                answer.headers["connection"] = "close"
            await answer(scope, receive, send)
        except bounded.ClientGoneError:
            return
        else:
            await self._app(scope, receive, send)


def _see_to_address(scope: Scope) -> None:
    query = scope["query_string"]
    if len(scope["path"]) > LONGEST_PATH or len(query) > LONGEST_QUERY:
        raise HTTPException(414, "The address is too long.")
    if "\0" in scope["path"] or b"\0" in query or b"%00" in query:
        raise HTTPException(404, "There is no such address.")


async def _form(scope: Scope, receive: Receive) -> bytes:
    """The body, as far as it is a form of the page.

    :raises HTTPException: 408, 413, 415 …: it is none.
    """
    try:
        body = await bounded.body_of(scope, receive, LARGEST_FORM_BYTES)
    except bounded.BodyTooLargeError:
        raise HTTPException(413, f"The form is larger than {LARGEST_FORM_BYTES:,} bytes.") from None
    except bounded.BodyTooSlowError:
        raise HTTPException(408, "The form did not arrive in time.") from None
    kind = dict(scope["headers"]).get(b"content-type", b"").decode("latin-1").partition(";")[0]
    if body and kind.strip().lower() != FORM:
        raise HTTPException(415, f"The page takes forms ({FORM}), and nothing else.")
    if body.count(b"&") >= MOST_FIELDS:
        raise HTTPException(413, f"The form has more than {MOST_FIELDS:,} fields.")
    if b"%00" in body or b"\0" in body:
        raise HTTPException(422, "The form has a character that no text has (NUL).")
    return body
