"""Files of plans that are there, are not, or are out of reach."""

from __future__ import annotations

from pathlib import Path

from rehome.domain.plan.kafka_json import KafkaFiles
from rehome.domain.request.parse_request import parse_request
from rehome.ledger.store import Ledger
from rehome.ledger.stores.approvals.written_files import DryRun
from rehome.page.files import PlanFiles, files_of
from rehome.warehouse import PlanDirectory
from tests.ledger.small_plans import make_plan


def test_files_that_are_away_are_no_error_and_are_named(tmp_path: Path) -> None:
    missing = PlanFiles((tmp_path / "away").as_uri())
    assert missing.summary is None
    assert (missing.there, missing.problem) == ((), "")
    assert missing.gates == ()
    (tmp_path / "gates.json").write_text('[{"gate": "snapshot"}]')
    (tmp_path / "dry_run.json").write_text("{")
    damaged = PlanFiles(tmp_path.as_uri())
    assert damaged.read.tried is None
    assert damaged.gates == damaged.read.gates == ({"gate": "snapshot"},)
    assert "dry_run.json is damaged" in damaged.problem
    unknown = PlanFiles("nosuch://bucket/plans/p1")
    assert unknown.text("report.html") is None
    assert "nosuch://bucket/plans/p1 cannot be read" in unknown.problem


def test_a_file_that_was_changed_since_its_task_wrote_it_is_not_shown(tmp_path: Path) -> None:
    directory = PlanDirectory((tmp_path / "plan").as_uri())
    plan = make_plan("p1")
    directory.save(plan, parse_request({"action": "rebalance"}))
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.create_plan(plan, {}, directory.uri, "run-1", "ann")
        directory.write_json("dry_run.json", {"ok": True})
        ledger.record_files("p1", {"summary.json": directory.digest("summary.json")})
        digest = directory.digest("dry_run.json")
        ledger.record_dry_run(DryRun("p1", "dag", "run-1", True, 1, "", digest))
        record = ledger.plan("p1")
        assert files_of(ledger, record).summary is not None
        assert files_of(ledger, record).read.tried == {"ok": True}

        directory.write_json("dry_run.json", {"ok": True, "findings": []})
        content = directory.read_json("summary.json") | {"bytes_to_move": 1}
        directory.write_json("summary.json", content)
        for name in ("summary.json", "dry_run.json"):
            files = files_of(ledger, record)
            assert files.json(name) is None
            assert f"{name} is not shown" in files.problem
        assert PlanFiles(directory.uri).summary is not None, "no ledger knows it: a dry run by hand"


def test_what_people_hand_to_kafkas_own_tools_is_what_was_checked(tmp_path: Path) -> None:
    """Who may write to the warehouse would have others carry out another plan."""
    directory = PlanDirectory((tmp_path / "plan").as_uri())
    made = make_plan("p1")
    plan = KafkaFiles.of(made.moves).with_digests(made)
    directory.save(plan, parse_request({"action": "rebalance"}))
    directory.write_json("export.json", {"batches": ["1.json"], "files": ["1.json"]})
    directory.folder("export").write_text("1.json", "as it was made")
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.create_plan(plan, {}, directory.uri, "run-1", "ann")
        digests = {name: directory.digest(name) for name in ("summary.json", "export.json")}
        digests["export/1.json"] = directory.folder("export").digest("1.json")
        ledger.record_files("p1", digests)
        files = files_of(ledger, ledger.plan("p1"))
        assert files.exported_text("1.json") == "as it was made"
        honest = files.text("reassignment.json")
        assert honest

        directory.folder("export").write_text("1.json", "forged")
        directory.write_text("reassignment.json", honest.replace("3", "4"))
        for read in (PlanFiles.exported_text, PlanFiles.text):
            files = files_of(ledger, ledger.plan("p1"))
            name = "1.json" if read is PlanFiles.exported_text else "reassignment.json"
            assert read(files, name) is None
            assert f"{name} is not shown" in files.problem
        directory.write_json("summary.json", directory.read_json("summary.json") | {"files": {}})
        files = files_of(ledger, ledger.plan("p1"))
        assert files.text("reassignment.json") is None, "nor by a summary that was forged with it"
