"""Requests to Rehome's DAGs that change something: rights first, then bounds, then a run's
parameters; at last what was done is recorded.

This middleware stands inside of Airflow's own (tokens of cookies are refreshed, answers are
compressed around it) and outside of its routes: FastAPI reads and parses a body before it asks who
has sent it, on the event loop that serves everybody.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from rehome.api import bounded, decisions
from rehome.api.airflow_routes import ApiRequest, parse_api_request
from rehome.api.places import NoRoomError, Places
from rehome.domain.clock import monotonic_s
from rehome.errors import PickledAsRaised, first_problems
from rehome.ledger.base.audit_entry import Decided
from rehome.trigger_check import is_ours, problems_of, refusal_without_pool

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger(__name__)

BODIES = Places(per_user=8, in_all=32)
"""Requests whose bodies are read or checked: each may hold a megabyte."""
LARGE_BODY_BYTES = 50_000
RESTS = 4
"""So many times as long as a large body took to be checked, no other one is: in all, large bodies
have a fifth of one processor, and of the interpreter, which everybody's answers need.
"""
_CHECKS = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rehome-check")
"""One thread: two would only take the interpreter from each other, and from the event loop."""


class _Refused(PickledAsRaised, Exception):
    """An answer instead of Airflow's.

    :param headers: in addition to those of its content.
    """

    def __init__(self, status: int, detail: str, **headers: str) -> None:
        self.status, self.detail, self.headers = status, detail, headers
        super().__init__(detail)


class ApiGuard:
    """ASGI middleware: see above. All other requests pass untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._large = asyncio.Lock()
        gc.freeze()  # Airflow is whole now: looking for garbage in it would hold the event loop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on as it came."""
        what = parse_api_request(scope)
        if what is None:
            await self._app(scope, receive, send)
        elif is_ours(what.dag_id):
            await self._guard(what, scope, receive, send)
        elif what.route.of_any or not what.dag_id:
            await decisions.follow_and_record(self._app, what, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _guard(self, what: ApiRequest, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            user = await _require_user(what, scope)
            if scope["method"] == "DELETE":
                body = b""
            else:
                with BODIES.take(user.get_id()):
                    body = await self._check_body(what, scope, receive)
        except NoRoomError as error:
            await _answer(scope, send, _Refused(429, str(error), **{"retry-after": "5"}))
        except _Refused as refusal:
            await _answer(scope, send, refusal)
        except bounded.ClientGoneError:
            return
        else:
            again = receive if scope["method"] == "DELETE" else bounded.again(body, receive)
            await decisions.follow_and_record(self._app, what, scope, again, send, user, body)

    async def _check_body(self, what: ApiRequest, scope: Scope, receive: Receive) -> bytes:
        """The body, when it is allowed.

        :raises _Refused: it is not; says why, and what to do.
        """
        body = await _whole(scope, receive)
        loop = asyncio.get_running_loop()
        if len(body) <= LARGE_BODY_BYTES:
            problems = await loop.run_in_executor(_CHECKS, _problems, what, body)
        else:
            async with self._large:
                began = monotonic_s()
                problems = await loop.run_in_executor(_CHECKS, _problems, what, body)
                await asyncio.sleep(RESTS * (monotonic_s() - began))
        if problems:
            raise _Refused(*problems)
        return body


async def _whole(scope: Scope, receive: Receive) -> bytes:
    try:
        return await bounded.body_of(scope, receive)
    except bounded.BodyTooLargeError:
        raise _Refused(413, _TOO_LARGE) from None
    except bounded.BodyTooSlowError:
        limit = f"{bounded.LONGEST_BODY_S:g} seconds"
        raise _Refused(408, f"The body did not arrive within {limit}. Nothing was done.") from None


async def _require_user(what: ApiRequest, scope: Scope) -> BaseUser:
    """Who asks; before this, nothing of the request's body is read.

    :raises _Refused: 401, 403: as Airflow itself answers.
    """
    from fastapi import HTTPException

    from rehome.api import identity

    try:
        user = await identity.user_of(scope)
        route = what.route
        await identity.see_to_right(scope, user, what.dag_id, route.right, route.entity)
    except HTTPException as error:
        raise _Refused(error.status_code, str(error.detail), **(error.headers or {})) from None
    except Exception as error:
        log.exception("Who asks could not be found out")
        what_failed = f"Airflow could not say who you are ({type(error).__name__})."
        raise _Refused(503, f"{what_failed} Nothing was done. Try again later.") from None
    return user


_TOO_LARGE = (
    f"The body is larger than {bounded.LARGEST_BODY_BYTES // 1_000_000} MB. Nothing was done. "
    "Split a larger reassignment file into several runs, one after the other; or trigger it on "
    "a machine of Airflow: airflow dags trigger reassign_partitions --conf JSON"
)


def _problems(what: ApiRequest, body: bytes) -> tuple[int, str] | None:
    """Status and text of a refusal; None = Airflow may have the request."""
    try:
        content = bounded.json_of(body)
    except bounded.JsonOutOfBoundsError as error:
        return 400, f"The body {error} Nothing was done."
    except ValueError:
        return None  # no JSON: Airflow refuses it
    if what.route.decided is not Decided.TRIGGERED:
        return None
    try:
        problems = _of_trigger(what.dag_id, content)
        without_pool = "" if problems else refusal_without_pool(what.dag_id)
    except Exception as error:
        log.exception("The parameters of a run of %s could not be checked", what.dag_id)
        return 503, (
            f"Rehome could not check the parameters ({type(error).__name__}), so no run was "
            "triggered. The log of Airflow's API server says why."
        )
    if without_pool:
        return 409, without_pool
    if not problems:
        return None
    return 400, f"This run would be refused. {first_problems(problems)}"


def _of_trigger(dag_id: str, content: Any) -> tuple[str, ...]:
    conf = (content.get("conf") or {}) if isinstance(content, dict) else None
    # Anything else is no such request, and Airflow refuses it.
    return problems_of(dag_id, conf) if isinstance(conf, dict) else ()


async def _answer(scope: Scope, send: Send, refusal: _Refused) -> None:
    body = json.dumps({"detail": refusal.detail}).encode()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **refusal.headers,
    }
    if bounded.to_be_closed(scope, refusal.status):
        headers["connection"] = "close"
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
