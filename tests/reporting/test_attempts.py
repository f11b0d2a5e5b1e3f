"""What was last tried with a plan stands in the first line of its page and of its report."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from include.domain.run.causes.cause import Cause, CauseKind
from include.domain.run.states import PlanState
from include.ledger.stores.by_run.causes import EndedRun
from include.reporting.attempts import label_of, last_attempt
from include.reporting.report import render, status_facts
from include.reporting.status_facts import StatusSummary, Tone
from include.reporting.status_summary import summarize_status
from tests.reporting.reported_plans import (
    NO_ROOM,
    START,
    dry_run_only,
    moves,
    plan_of,
    record,
)

STALE = Cause(
    CauseKind.STALE,
    "orders-0 has other replicas than when the plan was made.",
    "Nothing was changed by this run.",
    "Plan anew.",
    START,
    "snapshot",
)
TRIED = EndedRun("reassign_partitions", "control__1", STALE, "plan-1")


def _status(state: PlanState, cause: Cause = STALE, why: str = "") -> StatusSummary:
    data = dry_run_only(*([NO_ROOM] if cause.kind is CauseKind.DRY_RUN else []))
    known = record(data.plan, state, why)
    attempt = replace(TRIED, cause=cause)
    return summarize_status(status_facts(replace(data, record=known, attempt=attempt)))


def test_a_plan_that_is_out_of_date_is_not_ready() -> None:
    assert summarize_status(status_facts(dry_run_only())).label == "Ready"
    found = _status(PlanState.PLANNED)
    assert (found.tone, found.label) == (Tone.BAD, "Out of date")
    assert found.headline.startswith(STALE.text)
    assert "Run control__1, task snapshot" in found.headline
    assert (found.state_left, found.next_step) == (STALE.left, "Plan anew.")


def test_a_report_says_it_first() -> None:
    page = render(replace(dry_run_only(), attempt=TRIED))
    assert "orders-0 has other replicas" in page
    assert "found nothing that speaks against" not in page


def test_a_paused_plan_says_why_its_last_run_did_not_go_on() -> None:
    found = _status(PlanState.PAUSED, why="the window has closed")
    assert found.label == "Paused"
    assert found.headline.startswith(STALE.text)
    assert "the window has closed" in found.headline


@pytest.mark.parametrize("kind", [CauseKind.RIGHTS, CauseKind.SILENT, CauseKind.DRY_RUN])
def test_a_plan_that_its_runs_end_has_failed_says_what_ended_the_run(kind: CauseKind) -> None:
    found = _status(PlanState.FAILED, replace(STALE, kind=kind), "the run ended before the plan")
    assert found.headline.startswith(STALE.text)
    assert found.next_step == "Plan anew."


def test_the_plans_own_words_stay_where_the_cause_only_repeats_them() -> None:
    own = replace(STALE, kind=CauseKind.PLAN_FAILED)
    assert "nothing moved" in _status(PlanState.FAILED, own, "nothing moved").headline


def test_of_many_findings_the_first_lines_are_shown() -> None:
    many = replace(STALE, kind=CauseKind.DRY_RUN, text="Refused:\n" + "\n".join("abcdefgh"))
    assert _status(PlanState.FAILED, many).headline.startswith("Refused: a b c And 5 more.")


def test_a_run_that_has_taken_the_plan_up_since_makes_an_earlier_one_history() -> None:
    plan = plan_of(*moves())
    waits = record(plan, PlanState.PAUSED, run_id="run-2", dag_id="reassign_partitions")
    assert last_attempt([TRIED], waits, None) == TRIED
    assert last_attempt([TRIED], waits, START + timedelta(seconds=1)) is None
    assert last_attempt([TRIED], waits, START - timedelta(seconds=1)) == TRIED
    own = replace(waits, run_id=TRIED.run_id)
    assert last_attempt([TRIED], own, START + timedelta(seconds=1)) == TRIED
    assert last_attempt([TRIED], replace(own, state=PlanState.RUNNING), None) is None
    assert last_attempt([], own, None) is None


def test_every_kind_has_a_label() -> None:
    assert {label_of(kind) for kind in CauseKind} >= {"Refused", "Failed", "Rejected"}
