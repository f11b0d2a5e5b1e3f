"""What a page that is open is sent: the first screen as events, and the chart."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import fields
from functools import partial

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from rehome.api.places import NoRoomError, Places
from rehome.errors import RehomeError
from rehome.ui.access import UserDep
from rehome.ui.page_bounds import error_page
from rehome.ui.rendering import render
from rehome.ui.routes.shared import live_values, plans, readable, root_of, view_for

router = APIRouter()
log = logging.getLogger(__name__)
LIVE_S = 240.0
"""Seconds until a stream ends: the browser then connects again, and rights are checked again."""
LOOK_S = 1.0
NO_PLACE_RETRY_S = 10
"""When who has no place may ask again."""
SILENCE_S = 15.0
"""A stream without news says so, or what lies between might end it."""
STREAMS = Places(per_user=8, in_all=64)
"""Streams that are open in one process of the API server; each looks into the ledger every second.
"""
FOR_EVERYBODY = {"brokers": "plan_brokers.html", "changes": "plan_changes.html"}
"""Events of the stream, each a part of the first screen. The event `plan` comes last: it makes what
follows it refresh, and it has the buttons that its viewer may press.
"""


class LiveStream(StreamingResponse):
    """A stream of events that has one of its user's places, from its first byte until it ends or
    its client is gone. Where none is left, it is not begun: 429.
    """

    def __init__(self, user_id: str, events: AsyncIterator[str]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._user_id = user_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            with STREAMS.take(self._user_id):
                await super().__call__(scope, receive, send)
        except NoRoomError as error:
            refusal = error_page(scope, 429, str(error))
            refusal.headers["Retry-After"] = str(NO_PLACE_RETRY_S)
            await refusal(scope, receive, send)


@router.get("/plans/{plan_id}/live")
async def live(request: Request, user: UserDep, plan_id: str) -> StreamingResponse:
    """The first screen anew whenever something has changed, as server-sent events."""
    await run_in_threadpool(view_for, plan_id, user)  # before the stream begins: 404, 503

    async def events() -> AsyncIterator[str]:
        last_number, said = -1, time.monotonic()
        ends = said + LIVE_S
        while time.monotonic() < ends and not await request.is_disconnected():
            try:
                number, news = await run_in_threadpool(
                    _news, plan_id, user, root_of(request), last_number
                )
            except RehomeError as error:
                # The browser connects anew, and is answered by what is wrong then.
                log.warning("The stream of plan %s ends: %s", plan_id, error)
                return
            if news:
                yield news
                last_number, said = number, time.monotonic()
            elif time.monotonic() - said > SILENCE_S:
                yield ": nothing new\n\n"
                said = time.monotonic()
            await asyncio.sleep(LOOK_S)

    return LiveStream(user.get_id(), events())


def _news(plan_id: str, user: UserDep, root: str, last_number: int) -> tuple[int, str]:
    """The parts of the first screen as events, where they are newer than what was seen."""
    view, number = plans.view(plan_id)
    if number == last_number:
        return last_number, ""
    values = {"root": root, **live_values(readable(view, user), user)}
    parts = {
        name: plans.once(view, template, partial(render, template, view=view))
        for name, template in FOR_EVERYBODY.items()
    }
    parts["plan"] = render("plan_live.html", **values)
    return number, "".join(_event(name, html) for name, html in parts.items())


def _event(name: str, data: str) -> str:
    lines = "".join(f"data: {line}\n" for line in data.splitlines())
    return f"event: {name}\n{lines}\n"


@router.get("/plans/{plan_id}/throughput")
def throughput(user: UserDep, plan_id: str) -> Response:
    """Columns of the chart, and each change of the throttle with its cause."""
    view = view_for(plan_id, user)
    follower = plans.follower(view.record.plan_id)

    def make_json() -> str:
        columns = follower.throughput(view.account.rates)
        column_values = {item.name: getattr(columns, item.name) for item in fields(columns)}
        changes = [
            {"at": change.at.timestamp(), "reason": change.reason, "cause": change.cause}
            for change in view.account.rates
        ]
        return json.dumps({**column_values, "changes": changes})

    content = plans.once(view, "throughput", make_json)
    return Response(content, media_type="application/json")
