"""What a budget did not pay for is told by the snapshot of the plan, as it was taken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rehome import installation
from rehome.domain.request.parse_request import parse_request
from rehome.errors import PlanConflictError
from rehome.execution.completion.drained import Drained
from rehome.operators.completion import drained
from rehome.run import evidence
from rehome.run.context import RunContext
from rehome.run.evidence import FileChangedError
from tests.ledger.small_plans import make_plan
from tests.plugins.run.taken import taken
from tests.spark.fleets import snapshot


@pytest.mark.parametrize("edited", ["summary", "snapshot"])
def test_files_that_were_edited_do_not_say_what_was_there_before_the_plan(
    edited: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica that appeared since would pass for one that the budget left."""
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    warehouse, found = installation.warehouse(), Drained((4,))
    taken_as = snapshot("c1")
    uri = warehouse.write_snapshot(taken_as)
    made = make_plan("p1")
    plan = replace(made, summary=replace(made.summary, snapshot=taken_as.name))
    directory = warehouse.plan("p1")
    directory.save(plan, parse_request({"action": "drain", "brokers": [4]}))
    with installation.open_ledger() as ledger:
        taken(ledger, uri)
        files: dict[str, Any] = evidence.digests_of(directory)
        ledger.create_plan(plan, {"action": "drain"}, directory.uri, "r1", "ann", files=files)
        assert drained.without_unpaid(RunContext({}), found, plan) == found
        name = "summary.json" if edited == "summary" else "snapshot.json"
        (file,) = (path for path in (tmp_path / "warehouse").rglob(name))
        file.write_text(file.read_text() + "\n")
        with pytest.raises((FileChangedError, PlanConflictError), match=r"changed|not what was"):
            drained.without_unpaid(RunContext({}), found, plan)
