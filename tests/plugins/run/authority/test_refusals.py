"""What the audit has of a refusal: in whose name the run was, and why, by a code."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehome import installation
from rehome.clusters.binding import Misled, MisledBy
from rehome.domain.run.askers import NotAsked, NotAskedForError
from rehome.ledger.base.audit_entry import Decided, Door
from rehome.run.authority import refusals
from rehome.run.context import RunContext
from tests.ledger.audit_rows import audit_of
from tests.plugins.run.asked import BY_ANN, run_of, task_of

BY_SCHEDULE = task_of(run_of("r2", run_type="scheduled", triggering_user_name=None))


def test_a_refusal_says_who_when_where_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    error = NotAskedForError(NotAsked.TOO_OLD, "x", next_step="y")
    misled = Misled(MisledBy.ENTRY_BOUND_ELSEWHERE, "kafka_berlin", "B", "X", "berlin")
    with installation.open_ledger() as ledger:
        with pytest.raises(NotAskedForError), refusals.told_of_refusal(RunContext(BY_ANN)):
            raise error
        refusals.tell_misled(RunContext(BY_SCHEDULE), misled)
        first, second = audit_of(ledger)
    assert (first.decision, first.door, first.user_name) == (Decided.REFUSED, Door.TASK, "ann")
    assert (first.run_id, first.task_id, first.detail) == ("r1", "snapshot", {"why": "too_old"})
    assert (second.decision, second.door, second.user_name) == (
        Decided.REFUSED,
        Door.SCHEDULE,
        None,
    )
    assert (second.run_id, second.cluster_id) == ("r2", "B")
    assert second.detail == {
        "why": "entry_bound_elsewhere",
        "connection": "kafka_berlin",
        "leads_to": "B",
        "bound_to": "X",
        "entries": ["berlin"],
    }
