"""airflow_settings.yaml, converted for Airflow's own imports."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from rehome.airflow_settings import AirflowSettings, SettingsFileError

FILE = """
airflow:
  connections:
    - conn_id: kafka_default
      conn_type: kafka
      conn_extra: {bootstrap.servers: "localhost:9092"}
    - conn_id: rehome_ledger
      conn_type: postgres
      conn_host: db
      conn_port: 5432
      conn_schema:
  pools:
    - {pool_name: rehome_cluster, pool_slot: 3, pool_description: clusters,
       pool_include_deferred: true}
  variables:
    - {variable_name: rehome, variable_value: "{}"}
"""


def test_each_section_becomes_what_its_import_reads(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(FILE)
    files = AirflowSettings.read(path).write(tmp_path)
    assert {kind: json.loads(file.read_text()) for kind, file in files.items()} == {
        "connections": {
            "kafka_default": {
                "conn_type": "kafka",
                "extra": {"bootstrap.servers": "localhost:9092"},
            },
            "rehome_ledger": {"conn_type": "postgres", "host": "db", "port": 5432},
        },
        "pools": {
            "rehome_cluster": {"slots": 3, "description": "clusters", "include_deferred": True}
        },
        "variables": {"rehome": "{}"},
    }


def test_files_with_passwords_are_for_their_owner_only(tmp_path: Path) -> None:
    for file in AirflowSettings.read().write(tmp_path).values():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_projects_own_file_has_what_the_dags_need() -> None:
    settings = AirflowSettings.read()
    assert settings.connections.keys() == {"spark_default"}, "a cluster's is added by its owner"
    assert settings.pools["rehome_cluster"]["include_deferred"]
    assert "rehome" in settings.variables


def test_a_mistyped_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(FILE.replace("conn_host", "conn_hots"))
    with pytest.raises(SettingsFileError, match="rehome_ledger: unknown key conn_hots"):
        AirflowSettings.read(path)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("{conn_id: kafka_b, 1: kafka, hots: db}", "kafka_b: unknown key 1, hots"),
        ("{conn_type: kafka, 1: db}", "The keys of that entry are 1, conn_type"),
    ],
)
def test_a_key_that_is_no_text_is_named_as_any_other(
    tmp_path: Path, entry: str, problem: str
) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(f"airflow: {{connections: [{entry}]}}")
    with pytest.raises(SettingsFileError, match=problem):
        AirflowSettings.read(path)
