"""What ended a run is in the ledger until its task succeeds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import inspect

from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.ledger.store import Ledger
from rehome.ledger.stores.by_run.causes import EndedRun

AT = datetime(2030, 1, 1, tzinfo=UTC)
CAUSE = Cause(
    CauseKind.STALE, "t-0 has changed.", "Nothing was changed.", "Plan anew.", AT, "snapshot"
)
RUN = EndedRun("reassign_partitions", "run-1", CAUSE, "p1", "kafka_default")


def test_the_first_word_of_an_attempt_stays(ledger: Ledger) -> None:
    assert ledger.cause_of(RUN.dag_id, RUN.run_id) is None
    ledger.record_cause(RUN)
    ledger.record_cause(replace(RUN, cause=replace(CAUSE, text="Something else.")))
    assert ledger.cause_of(RUN.dag_id, RUN.run_id) == CAUSE
    assert ledger.cause_of(RUN.dag_id, "run-2") is None


def test_what_an_attempt_said_is_over_when_a_later_one_succeeds(ledger: Ledger) -> None:
    ledger.record_cause(RUN)
    ledger.causes_over(RUN.dag_id, RUN.run_id, "plan", 2)
    ledger.causes_over(RUN.dag_id, RUN.run_id, CAUSE.task_id, 1)
    assert ledger.cause_of(RUN.dag_id, RUN.run_id) == CAUSE
    ledger.causes_over(RUN.dag_id, RUN.run_id, CAUSE.task_id, 2)
    assert ledger.cause_of(RUN.dag_id, RUN.run_id) is None
    assert ledger.ended_runs_of("p1") == []


def test_runs_of_a_plan_come_the_last_one_first(ledger: Ledger) -> None:
    later = replace(RUN, run_id="run-2", cause=replace(CAUSE, at=AT + timedelta(hours=1)))
    other = replace(RUN, run_id="run-3", plan_id="p2")
    for each in (later, RUN, other):
        ledger.record_cause(each)
    assert ledger.ended_runs_of("p1") == [later, RUN]
    assert later.driver == "reassign_partitions/run-2"


@pytest.mark.parametrize("column", ["plan_id", "at"])
def test_causes_are_found_by_an_index(ledger: Ledger, column: str) -> None:
    indexes = inspect(ledger.engine).get_indexes("run_causes")
    assert column in {each["column_names"][0] for each in indexes}
