"""Requests for plans, each a thing with a state, whether a plan came of it or not. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rehome.account.attempts import is_refusal
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.ledger.stores.by_run.causes import EndedRun


class RequestState(enum.StrEnum):
    """What has become of a request."""

    PLANNING = "planning"
    """Its run is on its way to a plan."""
    STARTING = "starting"
    """Its run is about to carry out a plan that is there, or to resume it."""
    REFUSED = "refused"
    """Something has to change before such a request can go through."""
    FAILED = "failed"
    """Its run ended by a fault, or by something that a later run may not meet."""
    REJECTED = "rejected"
    """A person has said no."""


@dataclass(frozen=True, slots=True)
class RequestLine:
    """A run that has no plan of its own. Aware UTC times.

    :param at: of a run that has ended, when its cause was recorded; else when it was asked for.
    :param by: who has asked for it; "" = not known.
    :param plan_id: that it is about; None = of none.
    :param cause: what has ended or refused it; None = it goes on.
    """

    dag_id: str
    run_id: str
    state: RequestState
    at: datetime
    by: str = ""
    plan_id: str | None = None
    cause: Cause | None = None

    def facts(self) -> dict[str, Any]:
        """For programs."""
        return {
            "dag_id": self.dag_id,
            "run_id": self.run_id,
            "state": self.state.value,
            "at": self.at.isoformat(),
            "by": self.by or None,
            "plan_id": self.plan_id,
            "cause": self.cause.to_json() if self.cause is not None else None,
        }


def state_of(kind: CauseKind) -> RequestState:
    """What has become of a request whose run has ended by a cause of this kind."""
    if kind.by_person:
        return RequestState.REJECTED
    return RequestState.REFUSED if is_refusal(kind) else RequestState.FAILED


def line_of(ended: EndedRun) -> RequestLine:
    """A request whose run something has ended or refused."""
    return RequestLine(
        *(ended.dag_id, ended.run_id, state_of(ended.cause.kind), ended.cause.at),
        plan_id=ended.plan_id,
        cause=ended.cause,
    )


def in_order(going_on: Iterable[RequestLine], ended: Iterable[EndedRun]) -> list[RequestLine]:
    """Those that go on first; then those that have ended, the last one first.

    :param ended: of a run that goes on again, the earlier cause is history.
    """
    first = sorted(going_on, key=lambda line: line.at, reverse=True)
    again = {(line.dag_id, line.run_id) for line in first}
    rest = [line_of(each) for each in ended if (each.dag_id, each.run_id) not in again]
    return [*first, *sorted(rest, key=lambda line: line.at, reverse=True)]
