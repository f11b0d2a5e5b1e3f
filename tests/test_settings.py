"""Settings: where values come from, what is refused, and what is said of each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from rehome.clusters.own_settings import settings_problems
from rehome.errors import InvalidRequestError
from rehome.settings import Settings, settings_described


def test_the_environment_overrides_a_default_and_airflow_overrides_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REHOME_POLL_INTERVAL_S", "3")
    monkeypatch.setenv("REHOME_HISTORY_DAYS", "2")
    loaded = Settings.load({"history_days": 4})
    assert (loaded.poll_interval_s, loaded.history_days, loaded.wake_s) == (3.0, 4, 10.0)


def test_local_state_lies_next_to_airflows_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.delenv("REHOME_WAREHOUSE", raising=False)
    loaded = Settings.load({"ledger_url": ""})
    assert loaded.warehouse == (tmp_path / "rehome" / "warehouse").as_uri()
    assert loaded.ledger_url == f"sqlite:///{tmp_path}/rehome/ledger.db"


def test_every_problem_is_reported_with_its_place_and_the_accepted_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REHOME_WAKE_S", "-1")
    wrong = {"poll_interval": 3, "history_days": "a week", "ledger_url": {"password": "s3cret"}}
    with pytest.raises(InvalidRequestError) as refused:
        Settings.load(wrong)
    text = "\n".join(refused.value.problems)
    assert len(refused.value.problems) == 4
    assert "Unknown setting 'poll_interval'; known: alert_again_s" in text
    assert "history_days='a week' is not what it takes: whole number, more than 0, at most" in text
    assert "wake_s='-1', set by REHOME_WAKE_S in the environment, is not" in text
    assert "The default is 10." in text
    assert "s3cret" not in str(refused.value)
    assert "Variable rehome" in refused.value.next_step


def test_a_setting_of_an_earlier_version_is_ignored_wherever_it_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Settings.load().removed == ()
    assert Settings.load({"max_driver_replicas": "any"}).removed == ("max_driver_replicas",)
    assert settings_problems({"max_driver_replicas": "any"}) == []
    monkeypatch.setenv("REHOME_MAX_DRIVER_REPLICAS", "10")
    assert Settings.load().removed == ("max_driver_replicas",)


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        Settings().wake_s = 1.0


def test_settings_that_may_hold_a_password_are_not_printed() -> None:
    assert "s3cret" not in repr(Settings(ledger_url="postgresql://rehome:s3cret@db/rehome"))


def test_every_setting_is_documented_in_full() -> None:
    for setting in settings_described():
        assert setting.description.endswith("."), setting.name
        assert setting.shown_default, setting.name
        if setting.name.endswith("_s") and not setting.name.endswith("_per_s"):
            assert setting.unit == "s", setting.name


@pytest.mark.slow
def test_settings_cost_little_to_import() -> None:
    """Airflow parses the DAG that reads them again and again."""
    code = "import sys, rehome.settings; print(len([n for n in sys.modules if n in %r]))"
    heavy = ("airflow", "numpy", "pyarrow", "sqlalchemy", "jsonschema")
    done = subprocess.run(
        [sys.executable, "-c", code % (heavy,)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "0"
