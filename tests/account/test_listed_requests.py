"""Requests without a plan: their states, and in which order they are listed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rehome.account.requests import RequestLine, RequestState, in_order, line_of
from rehome.account.words.attempt_words import REQUEST_WORDS
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.ledger.store import Ledger
from rehome.ledger.stores.by_run.causes import EndedRun

T0 = datetime(2030, 1, 1, tzinfo=UTC)
CAUSE = Cause(CauseKind.GATE, "Broker 3 is away.", "", "Bring it back.", T0, "snapshot")
ENDED = EndedRun("reassign_partitions", "run-1", CAUSE)


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (CauseKind.GATE, RequestState.REFUSED),
        (CauseKind.REQUEST, RequestState.REFUSED),
        (CauseKind.NO_JAVA, RequestState.FAILED),
        (CauseKind.REJECTED, RequestState.REJECTED),
    ],
)
def test_what_has_become_of_a_request_follows_from_the_kind_of_its_cause(
    kind: CauseKind, state: RequestState
) -> None:
    line = line_of(replace(ENDED, cause=replace(CAUSE, kind=kind)))
    assert line.state is state
    facts = line.facts()
    assert (facts["state"], facts["cause"]["kind"], facts["plan_id"]) == (state, kind, None)
    assert REQUEST_WORDS[state]


def test_requests_that_go_on_come_first_and_a_run_that_goes_on_again_is_listed_once() -> None:
    at = T0 + timedelta(seconds=5)
    again = RequestLine("reassign_partitions", "run-1", RequestState.PLANNING, T0, "ann")
    other = replace(ENDED, run_id="run-2", cause=replace(CAUSE, at=at))
    third = replace(ENDED, run_id="run-3")
    found = in_order([again], [third, ENDED, other])
    assert [line.run_id for line in found] == ["run-1", "run-2", "run-3"]
    assert found[0] == again


def test_the_newest_runs_that_have_ended_are_read(ledger: Ledger) -> None:
    for number in range(4):
        at = T0 + timedelta(minutes=number)
        ledger.record_cause(replace(ENDED, run_id=f"run-{number}", cause=replace(CAUSE, at=at)))
    newest = ledger.ended_runs(2, T0 - timedelta(days=1))
    assert [each.run_id for each in newest] == ["run-3", "run-2"]
    assert [each.run_id for each in ledger.ended_runs(9, T0 + timedelta(minutes=2))] == ["run-3"]
