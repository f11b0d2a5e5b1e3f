"""The note of a run: its plan in one sentence, and what became of it.

A task cannot write its run's note: Airflow's Task SDK has no call for it. So the task puts the
sentence into an asset event, and a listener in the API server writes the note. A task that fails
sends no event: it leaves what has ended it in an XCom, and where the run ends, the scheduler puts
that first.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl
from airflow.sdk import Asset
from airflow.utils.retries import run_with_db_retries
from airflow.utils.state import DagRunState
from sqlalchemy import select
from sqlalchemy.orm import object_session

from rehome.airflow_versions import listeners_are_called_after_commit
from rehome.domain.clock import utc_now
from rehome.domain.run.causes.cause import Cause, most_specific
from rehome.run.causes.recorded import CAUSE_XCOM, silent_cause
from rehome.trigger_check import is_ours

if TYPE_CHECKING:
    from airflow.listeners.types import AssetEvent
    from airflow.models.dagrun import DagRun
    from sqlalchemy.orm import Session

    from rehome.run.context import RunContext

NOTES = Asset("rehome_run_notes", group="rehome")
"""Carries notes from tasks to the API server; no DAG is to be scheduled on it."""
_SENTENCE = "note"
LONGEST = 1000
"""Characters that Airflow keeps of a note."""

log = logging.getLogger(__name__)
_WRITER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rehome-note")
"""One thread: the notes of a run are written in the order in which they came."""


def write_note(context: RunContext, sentence: str) -> None:
    """Have the run's note say this, once the task has succeeded.

    The task has :data:`NOTES` among its outlets.
    """
    context.airflow["outlet_events"][NOTES].extra = {_SENTENCE: sentence[:LONGEST]}


class NoteListener:
    """Writes the notes, in the API server. A note that a person has written stays."""

    @hookimpl
    def on_asset_event_emitted(self, asset_event: AssetEvent) -> None:
        """Called by Airflow, for every asset."""
        sentence: Any = asset_event.extra.get(_SENTENCE)
        if asset_event.asset.name != NOTES.name or not sentence:
            return
        run = str(asset_event.source_dag_id), str(asset_event.source_run_id)
        if listeners_are_called_after_commit():
            _keep(*run, str(sentence))
        else:
            # In SQLite that transaction keeps all others from writing, until this call returns.
            _WRITER.submit(_keep_beside, *run, str(sentence))

    @hookimpl
    def on_dag_run_failed(self, dag_run: DagRun) -> None:
        """Called by Airflow where it has decided so, in its transaction, for every DAG."""
        if is_ours(dag_run.dag_id):
            _put_cause_first(dag_run)


def with_cause(note: str | None, cause: Cause) -> str:
    """A run's note that begins with what has ended the run.

    :param note: that Rehome has written before; it stays behind the cause, as far as there is room.
    """
    before = "" if not note or note.startswith(cause.text) else f"\n\n{note}"
    return f"{cause}{before}"[:LONGEST]


def cause_of_run(causes: Sequence[Cause], failed: Sequence[str]) -> Cause | None:
    """What has ended a run: what its tasks have said, or that one has said nothing.

    :param failed: ids of tasks that have failed, the first one first.
    """
    said = {cause.task_id for cause in causes}
    silent = (silent_cause(each, utc_now(), 0) for each in failed if each not in said)
    main_cause = most_specific(causes)
    return next(silent, main_cause) if main_cause is None or main_cause.kind.derived else main_cause


def _put_cause_first(dag_run: DagRun) -> None:
    """By what is in Airflow's own database: the ledger may be away, and the scheduler waits for
    nothing. It holds the row of the run, and commits alone: not even a savepoint may be released.
    """
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session

    session = object_session(dag_run)
    if session is not None:
        with session.no_autoflush:
            _note_cause(dag_run, session)
        return
    with create_session() as own:  # a run in one process, as by `airflow dags test`
        own_run = own.get(DagRun, dag_run.id)
        if own_run is not None:
            _note_cause(own_run, own)


def _note_cause(dag_run: DagRun, session: Session) -> None:
    if _is_a_persons(dag_run):
        return
    cause = _cause_of(dag_run, session)
    if cause is not None:
        dag_run.note = with_cause(dag_run.note, cause)


def _cause_of(dag_run: DagRun, session: Session) -> Cause | None:
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.xcom import XComModel

    values = select(XComModel.value).where(
        XComModel.dag_id == dag_run.dag_id,
        XComModel.run_id == dag_run.run_id,
        XComModel.key == CAUSE_XCOM,
    )
    causes = list(_causes(session.scalars(values)))
    failed = (
        select(TaskInstance.task_id)
        .where(
            TaskInstance.dag_id == dag_run.dag_id,
            TaskInstance.run_id == dag_run.run_id,
            TaskInstance.state == "failed",
        )
        .order_by(TaskInstance.end_date)
    )
    return cause_of_run(causes, list(session.scalars(failed)))


def _causes(values: Iterable[Any]) -> Iterator[Cause]:
    for value in values:
        try:
            yield Cause.from_json(json.loads(value) if isinstance(value, str) else value)
        except (KeyError, ValueError, TypeError) as error:
            log.warning("What a task has said cannot be read: %r", error)


def _is_a_persons(dag_run: DagRun) -> bool:
    note = dag_run.dag_run_note
    return note is not None and note.user_id is not None


def _keep_beside(dag_id: str, run_id: str, sentence: str) -> None:
    try:
        run_with_db_retries()(_keep, dag_id, run_id, sentence)
    except Exception:
        log.exception("The note of run %s of %s was not written", run_id, dag_id)


def _keep(dag_id: str, run_id: str, sentence: str) -> None:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session

    with create_session() as session:
        run = session.scalar(select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
        if run is None:
            return
        if _is_a_persons(run):
            log.info("Run %s of %s has a note of a person's: it stays.", run_id, dag_id)
            return
        run.note = sentence
        if run.state == DagRunState.FAILED:  # its cause is there already, and comes first
            _note_cause(run, session)
