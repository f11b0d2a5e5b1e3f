"""The clusters file on Airflow's side: DAGs for each cluster, and its values in each step."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.utils.file import might_contain_dag

from rehome import alerting, installation
from rehome.alerts.alert import Alert
from rehome.alerts.kinds import AlertKind
from rehome.errors import InvalidRequestError
from rehome.execution.access.connection_policy import PolicyError
from rehome.fleet import clusters, plan_settings
from rehome.hooks.cluster import KafkaClusterHook
from rehome.run.context import RunContext
from rehome.settings import Settings
from rehome.timetables.maintenance_window import MaintenanceWindowTimetable
from rehome.trigger_check import problems_of
from rehome.triggers.progress import ReassignmentTrigger
from tests.session.airflow_home import ROOT

FILE = """
clusters:
  berlin:
    connection: kafka_berlin
    policy: {actions: [drain]}
    windows:
      - {cron: "0 1 * * *", hours: 4}
      - {cron: "0 13 * * *", hours: 1}
    targets: {tolerance: 0.5}
    settings: {poll_interval_s: 2}
  oslo: {connection: kafka_oslo}
"""
Write = Callable[[str], None]


@pytest.fixture
def write(airflow_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes the clusters file."""
    path = tmp_path / "clusters.yaml"
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))
    monkeypatch.setenv("REHOME_POLL_INTERVAL_S", "9")
    monkeypatch.setenv("REHOME_WAKE_S", "1")
    for name in ("kafka_berlin", "kafka_default"):
        extra = {"bootstrap.servers": "b1:9092"}
        monkeypatch.setenv(
            f"AIRFLOW_CONN_{name.upper()}", json.dumps({"conn_type": "kafka", "extra": extra})
        )
    return lambda text: (path.write_text(text), None)[1]


def bag() -> DagBag:
    return DagBag(ROOT / "dags", safe_mode=True)


def test_each_cluster_of_the_file_has_dags_of_its_own(write: Write) -> None:
    write(FILE)
    found = bag()
    assert found.import_errors == {}
    named = {dag_id for dag_id in found.dags if "__" in dag_id}
    assert named == {
        "collect_snapshots__berlin",
        "sweep_throttles__berlin",
        "rebalance_in_window__berlin",
        "collect_snapshots__oslo",
        "sweep_throttles__oslo",
        "rebalance_in_window__oslo",
    }
    heals = found.dags["rebalance_in_window__oslo"]
    assert heals.schedule is None, "it only runs when it is triggered"
    assert heals.is_paused_upon_creation is False
    windows = found.dags["rebalance_in_window__berlin"]
    assert isinstance(windows.timetable, MaintenanceWindowTimetable)
    assert windows.params["kafka_config_id"] == "kafka_berlin"
    assert "cluster:berlin" in windows.tags
    assert windows.is_paused_upon_creation is None, "a person unpauses it"
    # kafka_default is none of the file's: its DAGs stay, and run only when they are triggered.
    for dag_id in ("collect_snapshots", "rebalance_in_window"):
        assert found.dags[dag_id].schedule is None
    assert found.dags["sweep_throttles"].schedule is not None


def test_where_windows_make_no_plan_their_dag_only_takes_up_what_waits_and_is_not_paused(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(FILE.replace("    targets:", "    own_plan: false\n    targets:"))
    window = bag().dags["rebalance_in_window__berlin"]
    assert isinstance(window.timetable, MaintenanceWindowTimetable)
    assert window.is_paused_upon_creation is False
    assert clusters.own_plan("kafka_berlin") is False
    monkeypatch.delenv("REHOME_CLUSTERS_FILE")
    assert clusters.own_plan("kafka_default") is None
    monkeypatch.setenv("REHOME_WINDOW_OWN_PLAN", "false")
    assert clusters.own_plan("kafka_default") is False
    assert clusters.default_cluster().only_waiting


def test_a_setting_by_which_no_window_opens_is_shown_where_a_broken_file_is(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REHOME_CLUSTERS_FILE")
    monkeypatch.setenv("REHOME_WINDOW_CRON", "0 0 30 2 *")
    found = bag()
    ((path, error),) = found.import_errors.items()
    assert path.endswith("clusters_file.py")
    assert "has cron='0 0 30 2 *', which has no date" in error
    assert "Correct REHOME_WINDOW_CRON" in error
    window = found.dags["rebalance_in_window"]
    assert (window.schedule, window.is_paused_upon_creation) == (None, None)
    assert found.dags["collect_snapshots"].schedule is not None, "it needs no window"
    with pytest.raises(InvalidRequestError, match="no date"):
        clusters.windows_through("kafka_default")


def test_a_broken_file_is_an_import_error_with_every_problem_and_hides_no_other_dag(
    write: Write,
) -> None:
    write("clusters: {berlin: {conection: x, windows: [{}]}, oslo: {}}")
    found = bag()
    ((path, error),) = found.import_errors.items()
    assert path.endswith("clusters_file.py")
    for place in ("berlin.conection", "berlin.windows[0]", "berlin.connection", "oslo.connection"):
        assert f"- clusters.{place}: " in error
    assert {"reassign_partitions", "control_reassignment", "sweep_throttles"} <= found.dags.keys()
    assert found.dags["rebalance_in_window"].schedule is None, "its windows are not known"


def test_a_broken_clusters_file_removes_no_dag(write: Write) -> None:
    write("clusters: {berlin: {connection: kafka_berlin, windows: [{}]}, oslo: {}}")
    found = bag()
    assert list(found.import_errors) == [str(ROOT / "dags" / "clusters_file.py")]
    berlin = {name: dag for name, dag in found.dags.items() if name.endswith("__berlin")}
    assert {name for name, dag in berlin.items() if dag.schedule} == {"sweep_throttles__berlin"}
    window = berlin["rebalance_in_window__berlin"]
    assert window.is_paused_upon_creation is None, "it may have windows, which are not known"
    assert window.params["kafka_config_id"] == "kafka_berlin"
    assert "clear_throttle" in window.task_ids
    assert not [name for name in found.dags if name.endswith("__oslo")], "nothing leads to it"


def test_without_a_file_the_dags_are_as_they_were() -> None:
    cluster = clusters.default_cluster()
    assert (cluster.dag_id("collect_snapshots"), cluster.scheduled) == ("collect_snapshots", True)
    assert cluster.windows is not None
    assert clusters.named_clusters() == []
    through = ["kafka_default", "any"]
    known = {"kafka_default": "rebalance_in_window"}
    assert clusters.dags_for("rebalance_in_window", through) == known, "its schedule has no other"


@pytest.mark.parametrize("path", sorted((ROOT / "dags").glob("*.py")), ids=lambda path: path.stem)
def test_airflow_looks_into_every_dag_file(path: Path) -> None:
    assert might_contain_dag(str(path), True)


def context(connection: str, **params: Any) -> dict[str, Any]:
    return {
        "params": {"kafka_config_id": connection, "action": "rebalance", **params},
        "dag_run": SimpleNamespace(
            run_after=datetime(2030, 1, 1, tzinfo=UTC), dag_id="reassign_partitions", run_id="r"
        ),
        "task": SimpleNamespace(task_id="plan"),
    }


def test_a_cluster_s_values_reach_whatever_works_through_its_connection(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(FILE)
    assert installation.settings().poll_interval_s == 9
    assert installation.settings("kafka_berlin").poll_interval_s == 2
    assert installation.settings("kafka_oslo").poll_interval_s == 9
    found = RunContext(context("kafka_berlin")).settings
    assert (found.poll_interval_s, found.wake_s) == (2, 1)
    assert RunContext(context("kafka_berlin")).params["tolerance"] == 0.5
    assert RunContext(context("kafka_berlin", tolerance=0.1)).params["tolerance"] == 0.1
    assert "tolerance" not in RunContext(context("kafka_oslo")).params


def test_triggers_of_several_clusters_share_a_process_and_no_settings(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each polls its own cluster, by that cluster's settings."""
    write(FILE)
    opened: dict[str, float] = {}

    def gateway(hook: KafkaClusterHook, settings: Settings) -> None:
        opened[hook.kafka_config_id] = settings.poll_interval_s

    monkeypatch.setattr(KafkaClusterHook, "gateway", gateway)
    for name in ("kafka_berlin", "kafka_oslo"):
        ReassignmentTrigger(name, None, 1.0).open_watch()
    assert opened == {"kafka_berlin": 2, "kafka_oslo": 9}


def test_an_alert_is_sent_again_by_the_settings_of_the_cluster_that_it_is_about(
    write: Write,
) -> None:
    write(FILE.replace("{poll_interval_s: 2}", "{alert_again_s: 7200}"))
    raised: list[float | None] = []

    class Noting:
        def raise_alerts(self, rows: Any, *_: Any, **__: Any) -> None:
            raised.extend(each.again_s for each in rows)

    names = ("kafka_berlin", "kafka_oslo", "")
    found = [Alert(AlertKind.STALLED, name, "x", connection=name) for name in names]
    alerting.journal(Noting(), found)  # type: ignore[arg-type]
    assert raised == [7200, 3600, 3600]


def test_the_policy_is_in_the_file_or_in_the_connection_not_in_both(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(FILE)
    policy = KafkaClusterHook("kafka_berlin").policy
    with pytest.raises(PolicyError, match="Action rebalance"):
        policy.require("rebalance", None, datetime(2030, 1, 1, tzinfo=UTC))
    extra = {"bootstrap.servers": "b1:9092", "rehome.policy": {"approval": True}}
    monkeypatch.setenv(
        "AIRFLOW_CONN_KAFKA_BERLIN", json.dumps({"conn_type": "kafka", "extra": extra})
    )
    with pytest.raises(InvalidRequestError, match="and one in the clusters file"):
        _ = KafkaClusterHook("kafka_berlin").policy


def test_with_a_broken_file_nothing_begins_and_what_runs_goes_on(write: Write) -> None:
    write("clusters: {berlin: {}}")
    assert installation.settings("kafka_berlin").poll_interval_s == 9
    (problem,) = problems_of("reassign_partitions", {"kafka_config_id": "kafka_default"})
    assert problem == "clusters.berlin.connection: is needed."
    with pytest.raises(InvalidRequestError):
        _ = RunContext(context("kafka_default")).params
    with pytest.raises(InvalidRequestError):
        _ = KafkaClusterHook("kafka_default").policy


def test_a_run_is_checked_with_the_targets_of_its_cluster(write: Write) -> None:
    write("clusters: {berlin: {connection: kafka_berlin, targets: {throttle_max: 5000}}}")
    asked = {"kafka_config_id": "kafka_berlin", "action": "rebalance", "throttle_min": 6000}
    for dag_id in ("reassign_partitions", "rebalance_in_window__berlin"):
        (problem,) = problems_of(dag_id, asked)
        assert problem == "throttle_min=6000 is above throttle_max=5000."
    assert problems_of("reassign_partitions", asked | {"kafka_config_id": "kafka_default"}) == ()
    del asked["kafka_config_id"]
    assert problems_of("rebalance_in_window__berlin", asked), "its own, where none is named"
    assert problems_of("rebalance_in_window", asked) == ()


def test_the_former_word_for_a_default_gives_way_to_a_target_like_the_present_one(
    write: Write,
) -> None:
    write(FILE.replace("{tolerance: 0.5}", "{on_window_end: cancel}"))
    for word in ("drain", "finish"):
        filled = RunContext(context("kafka_berlin", on_window_end=word)).filled
        assert filled.params["on_window_end"] == "cancel"
        assert "on_window_end" not in plan_settings.stated_params(filled)


def test_tonight_ends_with_the_window_of_the_run_s_own_cluster(write: Write) -> None:
    write(FILE)
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    through = "kafka_berlin"
    assert clusters.window_closes(through, noon) == datetime(2030, 1, 1, 14, tzinfo=UTC)
    inside = noon + timedelta(hours=13, minutes=30)
    assert clusters.window_closes(through, inside) == datetime(2030, 1, 2, 5, tzinfo=UTC)
    (dag_id,) = clusters.dags_for("rebalance_in_window", ["kafka_berlin"]).values()
    assert dag_id == "rebalance_in_window__berlin"
