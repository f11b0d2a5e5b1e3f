"""``rehome dags install``: files in a folder of people's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehome.cli.main import main
from tests.plugins.wheel import ROOT

COMMAND = ("dags", "install")


def test_each_dag_has_a_file_and_a_second_time_changes_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        assert main([*COMMAND, str(tmp_path / "dags")]) == 0
        assert {path.name: path.read_bytes() for path in (tmp_path / "dags").iterdir()} == {
            path.name: path.read_bytes() for path in (ROOT / "dags").glob("*.py")
        }


def test_a_file_that_differs_stays_and_is_named_unless_it_may_be_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "sweep_throttles.py"
    own.write_text("# mine\n")
    assert main([*COMMAND, str(tmp_path)]) == 1
    assert own.read_text() == "# mine\n"
    assert f"{own} differs" in capsys.readouterr().err
    assert (tmp_path / "reassign_partitions.py").exists()
    assert main([*COMMAND, str(tmp_path), "--overwrite"]) == 0
    assert own.read_bytes() == (ROOT / "dags" / own.name).read_bytes()


def test_a_folder_that_cannot_be_had_is_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main([*COMMAND, str(tmp_path / "file")]) == 1
    assert "cannot be written" in capsys.readouterr().err
