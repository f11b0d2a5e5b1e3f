"""A run without a plan: its page, its line in the list and its alert show one account."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rehome.account.requests import RequestState, line_of
from rehome.account.run_account import (
    REMOVE,
    SEE_LOG,
    Changed,
    RunEvidence,
    account_of_run,
)
from rehome.account.words.run_words import changed_text
from rehome.alerts.run_end import Ended, RunEnd
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.ledger.stores.by_run.causes import EndedRun
from tests.reporting.reported_plans import gates_json

AT = datetime(2030, 1, 1, tzinfo=UTC)
NO_JAVA = Cause(CauseKind.NO_JAVA, "There is no Java.", "Nothing moved.", "Set it up.", AT, "plan")
RUN = RunEvidence("reassign_partitions", "run-1", makes_plan=True)
FAILURE = {"kind": "planner", "message": "No plan.", "details": ["It lacks space."]}


def test_of_a_run_that_nothing_is_known_of_nothing_is_said() -> None:
    account = account_of_run(RUN)
    assert (account.state, account.said, account.next_step) == (None, "", SEE_LOG)
    assert account.changed is Changed.NOTHING


def test_what_ended_a_run_that_goes_on_again_is_history() -> None:
    account = account_of_run(replace(RUN, planning=True, cause=NO_JAVA, failure=FAILURE))
    assert (account.state, account.cause, account.said) == (RequestState.PLANNING, None, "")
    assert account.next_step == ""


def test_what_the_plan_job_has_left_counts_where_no_task_has_said_why() -> None:
    account = account_of_run(replace(RUN, failure=FAILURE, gates=gates_json(failed=True)))
    assert (account.said, account.details) == ("No plan.", ("It lacks space.",))
    assert (account.state, account.next_step) == (RequestState.REFUSED, REMOVE)
    said = account_of_run(replace(RUN, failure=FAILURE, cause=NO_JAVA))
    assert (said.said, said.details) == (NO_JAVA.text, ("It lacks space.",))


@pytest.mark.parametrize("kind", [CauseKind.NO_JAVA, CauseKind.GATE, CauseKind.REJECTED])
def test_list_page_and_alert_do_not_differ(kind: CauseKind) -> None:
    cause = replace(NO_JAVA, kind=kind)
    account = account_of_run(replace(RUN, cause=cause))
    line = line_of(EndedRun(RUN.dag_id, RUN.run_id, cause))
    assert account.state is line.state
    alert = RunEnd(RUN.dag_id, RUN.run_id, Ended.FAILED, cause=cause, makes_plan=True).alert()
    for shown in (account.said, account.left, changed_text(account)):
        assert shown in alert.text
    assert alert.next_step == account.next_step


def test_what_a_run_has_changed_is_said_only_where_it_is_known() -> None:
    for evidence, changed, text in (
        (RUN, Changed.NOTHING, "No plan was made; nothing was changed."),
        (replace(RUN, makes_plan=False), Changed.WITHOUT_PLAN, ""),
        (
            *(replace(RUN, plan_elsewhere=True), Changed.NOT_KNOWN),
            "What the run has changed is not known here: the warehouse holds a plan of it, and "
            "this ledger does not. See the logs of its tasks.",
        ),
    ):
        account = account_of_run(evidence)
        assert (account.changed, changed_text(account)) == (changed, text)
    unknown = account_of_run(replace(RUN, unknown="The ledger is away."))
    assert changed_text(unknown, "The ledger is away.").endswith(
        "here: The ledger is away. See the logs of its tasks."
    )
