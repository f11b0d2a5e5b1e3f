"""The page as an ASGI application that is made when it is first asked for.

Every process of Airflow imports plugins, each task's own, too; only the API server serves pages. It
takes seconds to make, in which other requests are answered: a thread makes it.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from threading import Lock
from typing import TYPE_CHECKING

from rehome.ui.headers import StrictHeaders

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)


def made_page() -> ASGIApp:
    """The application."""
    from rehome.ui.app import create_app

    return create_app()


class _Page:
    """Passes every request on to the application."""

    def __init__(self) -> None:
        self._making = Lock()
        self._made: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            made = self._made
            application = await asyncio.to_thread(self._make) if made is None else made
        except Exception as error:
            log.exception("The page could not be made")
            await _say(send, f"The page could not be made ({type(error).__name__}).")
        else:
            await application(scope, receive, send)

    def _make(self) -> ASGIApp:
        with self._making:
            if self._made is None:
                self._made = made_page()
                gc.freeze()  # as rehome.api.guard
            return self._made


async def _say(send: Send, what: str) -> None:
    text = f"{what} The log of Airflow's API server says why.".encode()
    kind = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 500, "headers": kind})
    await send({"type": "http.response.body", "body": text})


class LazyPage(StrictHeaders):
    """The page; every answer of it has strict headers."""

    def __init__(self) -> None:
        super().__init__(_Page())
