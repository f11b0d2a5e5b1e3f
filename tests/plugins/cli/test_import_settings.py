"""``rehome settings import``: what it says where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.models.pool import Pool
from sqlalchemy.exc import OperationalError

from rehome.airflow_settings import AirflowSettings
from rehome.cli import import_settings
from rehome.cli.main import main
from rehome.trigger_check import POOL

COMMAND = ("settings", "import")
POOL_ALONE = f"""
airflow:
  pools:
    - {{pool_name: {POOL}, pool_slot: 3, pool_description: clusters, pool_include_deferred: true}}
"""


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("airflow: {connections: 7}", "connections is no list of entries"),
        ("airflow: {pools: [seven]}", "pools is no list of entries"),
        ("- airflow", "is no YAML with a key airflow"),
        ("airflow: [", "is no YAML with a key airflow"),
        ("airflow: 7", "airflow is no mapping of connections, pools, variables"),
        ("airflow: {pools: [{pool_name: p}]}", "pools p: pool_slot is no whole number"),
        ("{", "is not valid JSON"),
        ("[]", "is no JSON object with an object for each of connections, pools, variables"),
        ('{"pools": {}}', "is no JSON object with an object for each of connections"),
        ('{"pools": {}, "pools": {}}', "names 'pools' more than once"),
        ('{"connections": {}, "pools": [], "variables": {}}', "is no JSON object with an object"),
    ],
)
def test_a_file_of_another_form_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, named: str
) -> None:
    file = tmp_path / ("settings.yaml" if "airflow" in content else "settings.json")
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


def test_a_pool_that_is_there_keeps_its_size_and_counts_deferred_tasks(
    tmp_path: Path, without_pool: None, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(POOL_ALONE)
    assert main([*COMMAND, str(file)]) == 0
    assert _pool() == (3, "clusters", True)
    Pool.create_or_update_pool(POOL, 64, "ours", include_deferred=False)
    assert main([*COMMAND, str(file)]) == 0
    assert _pool() == (64, "ours", True)
    assert "Exported" not in capsys.readouterr().out
    assert main([*COMMAND, "--overwrite", str(file)]) == 0
    assert _pool() == (3, "clusters", True)


def test_a_pool_that_is_there_keeps_its_team_and_what_it_counts() -> None:
    there = {"slots": 64, "description": "", "include_deferred": True, "team_name": "kafka"}
    settings = AirflowSettings({}, {POOL: {"slots": 3, "description": "clusters"}}, {})
    assert settings.with_pools_of({POOL: there, "other": {}}).pools == {POOL: there}


def _pool() -> tuple[int, str, bool]:
    pool = Pool.get_pool(POOL)
    assert pool is not None
    return pool.slots, str(pool.description), pool.include_deferred
