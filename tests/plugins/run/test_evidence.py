"""Files of the warehouse count as the ledger knows them; others may write there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehome import installation
from rehome.execution.dry_run.result import DryRunResult
from rehome.ledger.store import Ledger
from rehome.run import evidence
from rehome.run.context import RunContext
from rehome.warehouse import PlanDirectory

RUN: dict[str, Any] = {"dag_run": SimpleNamespace(dag_id="reassign_partitions", run_id="run-1")}
OTHER: dict[str, Any] = {"dag_run": SimpleNamespace(dag_id="reassign_partitions", run_id="run-2")}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    with installation.open_ledger() as opened:
        yield opened


@pytest.fixture
def directory(tmp_path: Path) -> PlanDirectory:
    found = PlanDirectory((tmp_path / "p1").as_uri())
    found.write_json("summary.json", {"bytes_to_move": 7})
    found.write_json("gates.json", [])
    return found


def test_what_an_approver_reads_is_what_was_recorded_or_is_refused(
    ledger: Ledger, directory: PlanDirectory
) -> None:
    recorded = evidence.digests_of(directory)
    assert sorted(recorded) == ["gates.json", "summary.json"]
    ledger.record_files("p1", recorded)
    assert evidence.of_plan(ledger, "p1", directory) == recorded
    directory.write_json("summary.json", {"bytes_to_move": 1})
    with pytest.raises(evidence.FileChangedError, match=r"summary\.json is not what was written"):
        evidence.of_plan(ledger, "p1", directory)


@pytest.mark.parametrize("name", ["gates.json", "settings.json"])
def test_a_file_that_is_gone_or_was_added_is_one_that_was_changed(
    name: str, ledger: Ledger, directory: PlanDirectory
) -> None:
    ledger.record_files("p1", evidence.digests_of(directory))
    if directory.exists(name):
        directory.remove(name)
    else:
        directory.write_json(name, {})
    with pytest.raises(evidence.FileChangedError, match=name):
        evidence.of_plan(ledger, "p1", directory)


def test_of_a_plan_from_before_the_upgrade_nothing_is_known(
    ledger: Ledger, directory: PlanDirectory
) -> None:
    assert evidence.of_plan(ledger, "p1", directory) == {}


def test_a_dry_run_is_one_of_the_run_with_the_file_that_it_has_written(
    ledger: Ledger, directory: PlanDirectory
) -> None:
    result = DryRunResult("p1", "h", (), (), rate_bytes_per_s=5, rate_cause="half")
    with pytest.raises(evidence.NotDoneError, match="so the task dry_run is not done"):
        evidence.read_dry_run(RunContext(RUN), "p1", directory)
    evidence.record_dry_run(RunContext(RUN), directory, result)
    found = evidence.read_dry_run(RunContext(RUN), "p1", directory)
    assert (found.row.rate_bytes_per_s, found.content["rate_cause"]) == (5, "half")
    evidence.require_dry_run(RunContext(RUN), "p1")
    with pytest.raises(evidence.NotDoneError, match="Clear the task dry_run"):
        evidence.require_dry_run(RunContext(OTHER), "p1")
    directory.write_json("dry_run.json", result.to_json() | {"rate_bytes_per_s": 9})
    with pytest.raises(evidence.FileChangedError, match=r"dry_run\.json is not what was written"):
        evidence.read_dry_run(RunContext(RUN), "p1", directory)


def test_a_dry_run_that_refuses_is_none_to_go_on_with(
    ledger: Ledger, directory: PlanDirectory
) -> None:
    evidence.record_tried(RunContext(RUN), directory, "p1", {"ok": False})
    with pytest.raises(evidence.NotDoneError, match="refuses that plan"):
        evidence.require_dry_run(RunContext(RUN), "p1")


def test_a_proof_that_something_else_has_written_proves_nothing(
    ledger: Ledger, directory: PlanDirectory
) -> None:
    directory.write_json("verification.json", {"ok": True})
    assert evidence.read_kept(ledger, directory, "p1", "verification.json") is None
    evidence.keep(ledger, directory, "p1", "verification.json", {"ok": False})
    assert evidence.read_kept(ledger, directory, "p1", "verification.json") == {"ok": False}
    directory.write_json("verification.json", {"ok": True})
    with pytest.raises(evidence.FileChangedError, match=r"verification\.json"):
        evidence.read_kept(ledger, directory, "p1", "verification.json")
