"""What was last tried with a plan stands in the first line of its page and of its report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rehome.account.account import PlanAccount, account_of
from rehome.account.evidence import PlanEvidence
from rehome.account.standing import Tone
from rehome.account.words.standing_words import StatusText, status_of
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.domain.run.states import PlanState
from rehome.ledger.stores.by_run.causes import EndedRun
from rehome.reporting.report import render
from tests.reporting.reported_plans import (
    NO_ROOM,
    START,
    dry_run_only,
    moves,
    plan_of,
    record,
    with_evidence,
)

STALE = Cause(
    CauseKind.STALE,
    "orders-0 has other replicas than when the plan was made.",
    "Nothing was changed by this run.",
    "Plan anew.",
    START,
    "snapshot",
)
WAITS = replace(record(plan_of(*moves()), PlanState.PLANNED), request={"dry_run": True})
TRIED = EndedRun("reassign_partitions", "control__1", STALE, "plan-1")


def _tried(state: PlanState, cause: Cause = STALE, why: str = "") -> PlanAccount:
    data = dry_run_only(*([NO_ROOM] if cause.kind is CauseKind.DRY_RUN else []))
    known, attempt = record(data.plan, state, why), replace(TRIED, cause=cause)
    return with_evidence(data, record=known, ended_runs=(attempt,)).account


def _status(state: PlanState, cause: Cause = STALE, why: str = "") -> StatusText:
    return status_of(_tried(state, cause, why))


def test_a_plan_that_is_out_of_date_is_not_ready() -> None:
    assert status_of(dry_run_only().account).label == "Ready"
    account = _tried(PlanState.PLANNED)
    found = status_of(account)
    assert (account.standing.tone, found.label) == (Tone.BAD, "Out of date")
    assert found.headline.startswith(STALE.text)
    assert "Run control__1, task snapshot" in found.headline
    assert (found.state_left, found.next_step) == (STALE.left, "Plan anew.")


def test_a_report_says_it_first() -> None:
    page = render(with_evidence(dry_run_only(), record=WAITS, ended_runs=(TRIED,)))
    assert "orders-0 has other replicas" in page
    assert "found no problems" not in page


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


def test_a_plan_that_another_one_has_overtaken_is_not_ready() -> None:
    account = account_of(PlanEvidence(WAITS, overtaken_by="p2"), START)
    found = status_of(account)
    assert (account.standing.tone, found.label) == (Tone.BAD, "Superseded")
    assert found.headline.startswith(
        "Since this plan was made, plan p2 has moved partitions that this plan moves, too."
    )
