"""Requests that a user may see: on their way to a plan, refused, or failed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

from rehome.account.requests import RequestLine, RequestState, in_order
from rehome.ledger.store import Ledger
from rehome.ui import access, dag_runs

LISTED, LISTED_FOR = 50, timedelta(days=7)
"""The newest that have ended, and for how long they are listed."""
SHOWN = 10


def list_requests(ledger: Ledger, user: BaseUser) -> list[RequestLine]:
    """Those that go on first, then those that have ended, newest first."""
    may_read = cache(lambda dag_id: access.may_read(user, dag_id))
    going_on = [line for line in dag_runs.unfinished_runs() if _has_no_plan(ledger, line)]
    ended = ledger.ended_runs(LISTED, datetime.now(UTC) - LISTED_FOR)
    return [line for line in in_order(going_on, ended) if may_read(line.dag_id)]


def without_plan(ledger: Ledger, user: BaseUser) -> list[RequestLine]:
    """Those of them that no plan's own page shows: the first so many."""
    found = [
        line
        for line in list_requests(ledger, user)
        if line.state in (RequestState.PLANNING, RequestState.STARTING)
        or (line.plan_id is None and _has_no_plan(ledger, line))
    ]
    return found[:SHOWN]


def _has_no_plan(ledger: Ledger, line: RequestLine) -> bool:
    run = line.dag_id, line.run_id
    return ledger.plan_of_run(*run) is None and ledger.taken_up_by(*run) is None
