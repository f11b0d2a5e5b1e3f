"""A channel of alerts hangs, in an Airflow with the limits of time that users have."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.airflow.standalone import ROOT, AirflowStandalone
from local.process.waiting import wait_until
from rehome.airflow_settings import AirflowSettings
from rehome.alerts.kinds import AlertKind
from rehome.ledger.store import Ledger
from tests.e2e.runs import DAG, TIMEOUT_S
from tests.session.needs import Need, needs

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture
@needs(Need.AIRFLOW)
def airflow(tmp_path: Path) -> Iterator[AirflowStandalone]:
    """It has no brokers: its runs fail at once."""
    dags = tmp_path / "dags"
    dags.mkdir()
    shutil.copy(ROOT / "dags" / f"{DAG}.py", dags)
    nowhere = json.dumps({"bootstrap.servers": "127.0.0.1:1"})
    settings = AirflowSettings.read().with_connections(
        {"kafka_default": {"conn_type": "kafka", "extra": nowhere}}
    )
    env = {
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "REHOME_ALERT_CHANNELS": json.dumps(
            [{"notifier": "tests.e2e.hostile.hanging_channel.HangingChannel"}]
        ),
        "REHOME_LEDGER_URL": f"sqlite:///{tmp_path}/ledger.db",
        "REHOME_WAREHOUSE": (tmp_path / "warehouse").as_uri(),
    }
    with AirflowStandalone(tmp_path / "airflow", settings=settings, env=env) as started:
        yield started


def test_the_alert_of_a_runs_end_is_left_to_the_sweep_and_its_dag_stays(
    airflow: AirflowStandalone, tmp_path: Path
) -> None:
    """The DAG processor kills callbacks after 50 s, and takes their DAG for deleted then."""
    run = airflow.api.trigger(DAG, {"action": "drain", "brokers": [1], "dry_run": True})
    assert airflow.api.wait_for_run(DAG, run, TIMEOUT_S) == "failed"
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:

        def failures() -> list[str]:
            alerts = (each for each in ledger.alerts() if each.kind is AlertKind.FAILED)
            return [why for each in alerts for why in dict(each.failed_channels).values()]

        wait_until(failures, "the callback to have waited for its channel", TIMEOUT_S, 1.0)
        assert failures() == ["It did not end within 25 s"]
    assert airflow.api.serves((DAG,))
    assert "exceeding the timeout" not in airflow.log_file.read_text()
