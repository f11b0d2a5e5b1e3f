"""A plan is asked for with the parameters of the DAG, each by its own definition."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rehome.cli.output import ExitCode
from rehome.cli.remote.ask import PLANS_DAG
from rehome.cli.remote.plan import NOT_OPTIONS
from rehome.domain.request.parameters import ReassignmentParams
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.ledger.stores.by_run.causes import EndedRun
from rehome.ui import dag_runs
from tests.plugins.cli.remote.conftest import RUN_ID, Airflow, Shell
from tests.ui.site import Site

Opened = Callable[[str], Shell]


@pytest.fixture(autouse=True)
def run(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """How far the run is: no scheduler is here."""
    found: dict[str, Any] = {"progress": dag_runs.RunProgress(ended=True, failed=False)}
    monkeypatch.setattr(dag_runs, "outcome", lambda _dag, _run: found["progress"])
    monkeypatch.setattr(dag_runs, "steps", lambda _dag, _run, names: dict.fromkeys(names, ""))
    return found


@pytest.mark.parametrize(
    ("words", "conf"),
    [
        (("drain", "--brokers", "4,5"), {"action": "drain", "brokers": "4,5"}),
        (("drain", "--topics", "a,logs-* re:b{1,2}"), {"topics": ["a", "logs-*", "re:b{1,2}"]}),
        (("rebalance", "--tolerance", "0.1", "--seed", "7"), {"tolerance": 0.1, "seed": 7}),
        (
            ("rebalance", "--throttle", "50MB/s", "--approval"),
            {"throttle": "50MB/s", "approval": True},
        ),
        (("drain", "--no-approval"), {"approval": False}),
        (("replace", "--replacements", '{"3": 7}'), {"replacements": {"3": 7}}),
        (("rebalance", "--connection", "kafka_b"), {"kafka_config_id": "kafka_b"}),
        (("rebalance", "--max-moves-per-broker", "many"), {"max_moves_per_broker": "many"}),
        (("rebalance", "--tolerance", "nan"), {"tolerance": "nan"}),
        (("rebalance", "--budget-bytes", "1e999"), {"budget_bytes": "1e999"}),
    ],
)
def test_parameters_are_sent_in_the_types_of_the_dag(
    shell: Opened, site: Site, airflow: Airflow, words: tuple[str, ...], conf: dict[str, Any]
) -> None:
    ann = shell("admin")
    assert ann("plan", *words, "--no-wait") == ExitCode.DONE
    assert ann.out == f"{RUN_ID}\n"
    sent = airflow.asked["reassign_partitions"]["conf"]
    assert sent["dry_run"] is True
    assert {**sent, **conf} == sent


def test_an_object_comes_from_a_file(
    shell: Opened, site: Site, airflow: Airflow, tmp_path: Path
) -> None:
    file = tmp_path / "moves.json"
    moves = {"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1]}]}
    file.write_text(json.dumps(moves))
    ann = shell("admin")
    asked = ("plan", "reassign", "--reassignment", f"@{file}", "--no-wait")
    assert ann(*asked) == ExitCode.DONE
    assert json.loads(airflow.asked["reassign_partitions"]["conf"]["reassignment"]) == moves
    assert ann("plan", "replace", "--replacements", "@gone") == ExitCode.USAGE
    assert "--replacements cannot be read" in ann.err
    os.truncate(file, 2**31)
    assert ann(*asked) == ExitCode.USAGE
    assert "--reassignment cannot be read: it has 2.15 GB, and files of up to 500 MB" in ann.err
    assert ann("plan", "replace", "--replacements", "3=7") == ExitCode.USAGE
    assert "--replacements is not valid JSON" in ann.err
    assert ann("plan", "replace", "--replacements", '{"3": 7, "3": 8}') == ExitCode.USAGE
    assert "--replacements names '3' more than once" in ann.err
    assert ann("plan", "replace", "--replacements", '{"3": NaN}') == ExitCode.USAGE
    assert "--replacements is not valid JSON" in ann.err


def test_a_plan_is_shown_with_its_largest_moves(shell: Opened, site: Site) -> None:
    site.plan("p1", dry_run=True)
    ann = shell("admin")
    assert ann("plan", "drain", "--brokers", "4") == ExitCode.FAILED
    assert "See the logs of run manual__1" in ann.err
    with site.ledger.writing() as connection:
        from rehome.ledger.base.models import PLANS

        connection.execute(PLANS.update().values(run_id=RUN_ID))
    assert ann("plan", "drain", "--brokers", "4") == ExitCode.DONE
    lines = ann.out.splitlines()
    assert lines[0] == "Drain broker 4: planned"
    assert "  orders-11  4, 1 → 2, 1  400 MB" in lines
    assert "  … and 2 more" in lines
    assert lines[-1] == "Carry it out: rehome run p1"
    assert ann("plan", "drain", "--brokers", "4", "--json") == ExitCode.DONE
    assert (ann.json()["plan_id"], len(ann.json()["largest_moves"])) == ("p1", 12)


def test_a_request_that_was_refused_says_why(
    shell: Opened, site: Site, airflow: Airflow, run: dict[str, Any]
) -> None:
    run["progress"] = dag_runs.RunProgress(ended=True, failed=True)
    cause = Cause(CauseKind.REQUEST, "No broker 9.", "", "Name another.", site.clock(), "plan")
    site.ledger.record_cause(EndedRun("reassign_partitions", RUN_ID, cause))
    ann = shell("admin")
    assert ann("plan", "drain", "--brokers", "9") == ExitCode.FAILED
    assert ann.err.startswith("rehome: No broker 9. No plan was made; nothing was changed. ")
    assert ann.err.endswith("Name another.\n")
    airflow.paused.add("reassign_partitions")
    assert ann("plan", "drain", "--brokers", "9") == ExitCode.REFUSED
    assert "paused" in ann.err


def test_every_parameter_has_an_option() -> None:
    from rehome.cli.main import parser_of_all

    parser = parser_of_all()[1]["plan",]
    written = " ".join(name for name, _ in parser.arguments())
    for name in set(ReassignmentParams.model_fields) - NOT_OPTIONS:
        assert f"--{name.replace('_', '-')}" in written
    assert PLANS_DAG == "reassign_partitions"
