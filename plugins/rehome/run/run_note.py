"""The note of a run: its plan in one sentence, and what became of it.

A task cannot write its run's note: Airflow's Task SDK has no call for it. So the task puts the
sentence into an asset event, and a listener in the API server writes the note.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl
from airflow.sdk import Asset

if TYPE_CHECKING:
    from airflow.listeners.types import AssetEvent
    from airflow.sdk.definitions.context import Context

NOTES = Asset("rehome_run_notes", group="rehome")
"""Carries notes from tasks to the API server; no DAG is to be scheduled on it."""
_SENTENCE = "note"
LONGEST = 1000
"""Characters that Airflow keeps of a note."""

log = logging.getLogger(__name__)


def write_note(context: Context, sentence: str) -> None:
    """Have the run's note say this, once the task has succeeded.

    The task has :data:`NOTES` among its outlets.
    """
    context["outlet_events"][NOTES].extra = {_SENTENCE: sentence[:LONGEST]}


class NoteListener:
    """Writes the notes, in the API server. A note that a person has written stays."""

    @hookimpl
    def on_asset_event_emitted(self, asset_event: AssetEvent) -> None:
        """Called by Airflow, for every asset."""
        sentence: Any = asset_event.extra.get(_SENTENCE)
        if asset_event.asset.name != NOTES.name or not sentence:
            return
        _keep(str(asset_event.source_dag_id), str(asset_event.source_run_id), str(sentence))


def _keep(dag_id: str, run_id: str, sentence: str) -> None:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        run = session.scalar(select(DagRun).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
        if run is None:
            return
        if run.dag_run_note is not None and run.dag_run_note.user_id is not None:
            log.info("Run %s of %s has a note of a person's: it stays.", run_id, dag_id)
            return
        run.note = sentence
