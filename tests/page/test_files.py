"""Files of plans that are there, are not, or are out of reach."""

from __future__ import annotations

from pathlib import Path

from include.page.files import PlanFiles


def test_files_that_are_away_are_no_error_and_are_named(tmp_path: Path) -> None:
    missing = PlanFiles((tmp_path / "away").as_uri())
    assert missing.summary is None
    assert (missing.there, missing.problem) == ((), "")
    (tmp_path / "dry_run.json").write_text("{")
    damaged = PlanFiles(tmp_path.as_uri())
    assert damaged.dry_run is None
    assert "dry_run.json is damaged" in damaged.problem
    unknown = PlanFiles("nosuch://bucket/plans/p1")
    assert unknown.text("report.html") is None
    assert "nosuch://bucket/plans/p1 cannot be read" in unknown.problem
