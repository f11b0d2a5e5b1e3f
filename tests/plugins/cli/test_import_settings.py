"""``rehome settings import``: what it says where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from rehome.cli import import_settings
from rehome.cli.main import main

COMMAND = ("settings", "import")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("airflow: {connections: 7}", "connections is no list of entries"),
        ("airflow: {pools: [seven]}", "pools is no list of entries"),
        ("- airflow", "is no YAML with a key airflow"),
        ("airflow: [", "is no YAML with a key airflow"),
    ],
)
def test_a_file_that_astro_would_not_take_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, named: str
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(content)
    assert main([*COMMAND, str(file)]) == 1
    assert named in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*COMMAND, str(tmp_path / "gone.yaml")]) == 1
    assert "gone.yaml" in capsys.readouterr().err


def test_a_database_without_tables_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_table(*_: object, **__: object) -> None:
        raise OperationalError("SELECT", {}, Exception("no such table: connection"))

    monkeypatch.setattr(import_settings, "import_all", no_table)
    assert main([*COMMAND]) == 1
    said = capsys.readouterr().err
    assert "no such table: connection" in said
    assert "--migrate does both" in said
