"""Refuses a run whose parameters cannot work together, before there is a run.

Airflow checks each parameter by its own JSON schema when a run is triggered. What depends on
several of them, names that there are not, and times, it cannot check. This middleware of the API
server does, for the form and for the REST API alike, and answers with every problem. What does not
come through the API server (``airflow dags trigger``, a DAG that triggers another) is refused by
the first task of the run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from include.errors import InvalidRequestError, first_problems

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_TRIGGER = re.compile(r"/api/v2/dags/([^/]+)/dagRuns/?")
LARGEST_BODY_BYTES = 16_000_000
"""More is passed on unread: the first task checks it."""


def problems_of(dag_id: str, conf: Mapping[str, Any]) -> tuple[str, ...]:
    """What is wrong with the parameters of a run of one of Rehome's DAGs; () = nothing."""
    check = _CHECKS.get(_base(dag_id))
    if check is None:
        return ()
    try:
        check(conf, dag_id)
    except InvalidRequestError as error:
        return error.problems
    return ()


def _reassignment(conf: Mapping[str, Any], dag_id: str) -> None:
    from include.domain.request.parse_request import parse_request
    from rehome.fleet.clusters import asked, connection_of_dag
    from rehome.params import FORM_DEFAULTS, IN_WINDOWS

    now = datetime.now(UTC)
    own = IN_WINDOWS if _base(dag_id) == "rebalance_in_window" else {}
    given = {**FORM_DEFAULTS, **own, "kafka_config_id": connection_of_dag(dag_id), **conf}
    parse_request(asked(given, now).params, now=now)


def _partitions(conf: Mapping[str, Any], _dag_id: str) -> None:
    from include.domain.request.partition_counts import parse_partition_counts

    parse_partition_counts(conf)


def _control(conf: Mapping[str, Any], _dag_id: str) -> None:
    from include.domain.run.control_parameters import parse_control

    parse_control(conf)


def _fleet(conf: Mapping[str, Any], _dag_id: str) -> None:
    from include.clusters.due import parse_fleet

    parse_fleet(conf)


_CHECKS: Mapping[str, Callable[[Mapping[str, Any], str], None]] = {
    "reassign_partitions": _reassignment,
    "rebalance_in_window": _reassignment,
    "add_partitions": _partitions,
    "control_reassignment": _control,
    "plan_fleet": _fleet,
}


class TriggerCheck:
    """ASGI middleware: checks requests that trigger a run, and lets all others pass."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on as it came."""
        dag_id = _triggered(scope)
        if _base(dag_id) not in _CHECKS:
            await self._app(scope, receive, send)
            return
        messages, body = await _read(receive)
        conf = _conf(body)
        problems = () if conf is None else problems_of(dag_id, conf)
        if problems:
            await _refuse(send, problems)
        else:
            await self._app(scope, _again(messages, receive), send)


def _base(dag_id: str) -> str:
    if not dag_id:  # every other request of Airflow: it loads nothing of Rehome
        return ""
    from rehome.fleet.clusters import base_of

    return base_of(dag_id)


def _triggered(scope: Scope) -> str:
    """The DAG that a request is about to trigger; "" = it triggers none."""
    if scope["type"] != "http" or scope["method"] != "POST":
        return ""
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    found = _TRIGGER.fullmatch(path)
    return unquote(found[1]) if found else ""


async def _read(receive: Receive) -> tuple[list[Message], bytes]:
    """What has arrived of a request, up to the size that is looked at."""
    messages: list[Message] = []
    body = b""
    more = True
    while more and len(body) <= LARGEST_BODY_BYTES:
        message = await receive()
        messages.append(message)
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return messages, b"" if more else body


def _conf(body: bytes) -> Mapping[str, Any] | None:
    """The parameters that a request names; None = it is no such request, and Airflow refuses it."""
    try:
        conf = json.loads(body).get("conf") or {}
    except (ValueError, AttributeError):
        return None
    return conf if isinstance(conf, dict) else None


def _again(messages: list[Message], receive: Receive) -> Receive:
    left = iter(messages)

    async def replay() -> Message:
        return next(left, None) or await receive()

    return replay


async def _refuse(send: Send, problems: tuple[str, ...]) -> None:
    detail = f"This run would be refused. {first_problems(problems)}"
    body = json.dumps({"detail": detail}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})
