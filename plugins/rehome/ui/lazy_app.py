"""The page as an ASGI application that is made when it is first asked for.

Every process of Airflow imports plugins, each task's own, too; only the API server serves pages.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import Receive, Scope, Send

URL_PREFIX = "/rehome"
"""Where the page is mounted."""


@cache
def _application() -> FastAPI:
    from rehome.ui.app import create_app

    return create_app()


class LazyPage:
    """Passes every request on to the application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        await _application()(scope, receive, send)
