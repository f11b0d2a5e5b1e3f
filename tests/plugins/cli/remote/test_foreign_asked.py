"""Reassignments of other clients are cancelled and adopted by the DAG, which asks a person."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rehome.cli.foreign import FOREIGN_DAG, FOREIGN_QUESTION
from rehome.cli.main import main
from rehome.cli.output import ExitCode
from tests.plugins.cli.remote.conftest import RUN_ID, Airflow, Shell

Opened = Callable[[str], Shell]


def test_a_cancel_starts_the_dag_and_says_what_is_to_be_approved_and_where(
    shell: Opened, airflow: Airflow
) -> None:
    ann = shell("admin")
    named = ("--topics", "orders", "--brokers", "3", "--connection", "kafka_b")
    assert ann("foreign", "cancel", *named, "--clean-throttles", "--yes") == ExitCode.DONE
    assert airflow.asked == {
        FOREIGN_DAG: {
            "logical_date": None,
            "conf": {
                "kafka_config_id": "kafka_b",
                "action": "cancel",
                "topics": ["orders"],
                "brokers": [3],
                "clean_throttles": True,
            },
        }
    }
    assert f"May {FOREIGN_DAG} move it?" in ann.out
    assert f"/dags/{FOREIGN_DAG}/runs/{RUN_ID}/tasks/{FOREIGN_QUESTION}" in ann.out
    assert "Nothing is done before a person has answered it" in ann.out


def test_an_adoption_names_its_throttle_and_prints_for_programs(
    shell: Opened, airflow: Airflow
) -> None:
    ann = shell("admin")
    assert ann("foreign", "adopt", "--all", "--throttle", "5 MB/s", "--yes", "--json") == 0
    conf = airflow.asked[FOREIGN_DAG]["conf"]
    assert (conf["action"], conf["all_in_flight"], conf["throttle"]) == ("adopt", True, 5_000_000)
    assert ann.json()["run_id"] == RUN_ID
    assert ann.json()["question"]["options"] == list(airflow.options)
    assert ann("foreign", "adopt", "--all", "--yes", "--no-wait") == ExitCode.DONE
    assert ann.out == f"{RUN_ID}\n"


def test_a_dag_that_is_paused_is_not_started(shell: Opened, airflow: Airflow) -> None:
    airflow.paused.add(FOREIGN_DAG)
    ann = shell("admin")
    assert ann("foreign", "cancel", "--all", "--yes") == ExitCode.REFUSED
    assert airflow.asked == {}


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "often"])
def test_a_pause_that_cannot_be_is_refused_before_a_cluster_is_asked(
    seconds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["foreign", "follow", f"--every={seconds}"])
    assert ended.value.code == ExitCode.USAGE
    assert f"--every: {seconds} is no pause" in capsys.readouterr().err
