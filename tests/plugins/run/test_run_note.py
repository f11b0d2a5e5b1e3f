"""The note of a run that has failed begins with what has ended it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator

from local.process.waiting import wait_until
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.run import run_note
from rehome.run.causes.errors import EndedError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.run_note import LONGEST, NOTES, NoteListener, cause_of_run, with_cause

AT = datetime(2030, 1, 1, tzinfo=UTC)
CAUSE = Cause(CauseKind.STALE, "t-0 has changed.", "", "Plan anew.", AT, "snapshot")


def test_what_was_written_before_stays_behind_it() -> None:
    assert with_cause(None, CAUSE) == "t-0 has changed. Plan anew."
    found = with_cause("Drain broker 3.", CAUSE)
    assert found == "t-0 has changed. Plan anew.\n\nDrain broker 3."
    assert with_cause(found, CAUSE) == "t-0 has changed. Plan anew.", "it is there once"
    assert len(with_cause("x" * LONGEST, CAUSE)) == LONGEST


def test_a_task_that_has_failed_without_a_word_counts_before_what_only_follows() -> None:
    verdict = replace(CAUSE, kind=CauseKind.VERDICT, task_id="verdict")
    found = cause_of_run([verdict], ["progress", "verdict"])
    assert found is not None
    assert (found.kind, found.task_id) == (CauseKind.SILENT, "progress")
    assert cause_of_run([verdict, CAUSE], ["progress"]) == CAUSE
    assert cause_of_run([verdict], ["verdict"]) == verdict
    assert cause_of_run([], []) is None


def emit_note(sentence: str, dag_id: str, run_id: str) -> None:
    """As Airflow does for a task whose note is this."""
    event = SimpleNamespace(
        asset=NOTES, extra={"note": sentence}, source_dag_id=dag_id, source_run_id=run_id
    )
    NoteListener().on_asset_event_emitted(event)


@pytest.mark.parametrize("after_commit", [True, False], ids=["since 3.3", "before 3.3"])
def test_a_note_is_written_where_airflow_calls_before_it_commits(
    airflow_database: None, monkeypatch: pytest.MonkeyPatch, *, after_commit: bool
) -> None:
    from airflow.models.dagrun import DagRun
    from airflow.sdk import DAG
    from airflow.utils.session import create_session
    from sqlalchemy import select

    from tests.dags.runs import register

    monkeypatch.setattr(run_note, "listeners_are_called_after_commit", lambda: after_commit)
    with DAG(f"noted_{after_commit}", schedule=None) as dag:
        EmptyOperator(task_id="dry_run")
    run = register(dag).test()
    this = select(DagRun).where(DagRun.dag_id == dag.dag_id, DagRun.run_id == run.run_id)

    with create_session(scoped=False) as session:  # as the API server has it
        found = session.scalar(this)
        assert found is not None
        found.conf = {"changed": "by Airflow"}
        session.flush()  # in SQLite, no other may write from here on
        if not after_commit:
            emit_note("x", dag.dag_id, run.run_id)
    if after_commit:
        emit_note("x", dag.dag_id, run.run_id)

    def note() -> str | None:
        with create_session() as session:
            found = session.scalar(this)
            return found.note if found else None

    assert wait_until(note, "the note", 60) == "x"


def test_airflow_has_the_note_of_a_run_that_fails_begin_with_what_a_task_has_left(
    airflow_database: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where the ledger is away."""
    from airflow.models.dagrun import DagRun
    from airflow.sdk import DAG
    from airflow.utils.session import create_session
    from sqlalchemy import select

    from rehome.run.causes.operator import RecordedOperator
    from tests.dags.runs import register

    class Fails(RecordedOperator):
        def step(self, context: Any) -> None:
            raise EndedError(TaskEnd(TaskReason.TRY_REFUSED, "p1"))

    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}")  # a folder
    with DAG("reassign_partitions__noted", schedule=None) as dag:
        Fails(task_id="snapshot")
    run = register(dag).test()
    cause = (
        "The newest dry run of plan p1 refuses that plan. This step has changed nothing. "
        "Correct what it names, and trigger a new run."
    )

    def note() -> str | None:
        this = select(DagRun).where(DagRun.dag_id == dag.dag_id, DagRun.run_id == run.run_id)
        with create_session() as session:
            found = session.scalar(this)
            return found.note if found else None

    assert note() == cause
    emit_note("Drain broker 3.", dag.dag_id, run.run_id)
    assert note() == f"{cause}\n\nDrain broker 3.", "a note that comes late stays behind it"
