"""What a plan was made with, compared with what its cluster has now."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehome.clusters.clusters_file import ClustersFileError
from rehome.domain.request.limits import read_caps
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.findings import Severity
from rehome.errors import RehomeError
from rehome.execution.dry_run.words.worded import put_in_words
from rehome.fleet import plan_settings
from rehome.params import FORM_DEFAULTS
from rehome.run.context import RunContext
from rehome.warehouse import PlanDirectory, read_snapshot
from tests.ledger.small_plans import move
from tests.load_history.recorded import Cluster
from tests.plugins.fleet.recorded import CONNECTION, watch
from tests.quality.snapshots import Rows

HERE = "kafka_berlin"


@pytest.fixture
def directory(tmp_path: Path) -> PlanDirectory:
    return PlanDirectory((tmp_path / "plan").as_uri())


@pytest.fixture(autouse=True)
def clusters_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of one cluster, which the plans are for, and a warehouse of its own."""
    path = tmp_path / "clusters.yaml"
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    write(path, {"default": {"replicas": 4}})
    return path


def write(path: Path, caps: Any) -> None:
    berlin = {"connection": HERE, "caps": caps, "targets": {"tolerance": 0.02}}
    path.write_text(json.dumps({"clusters": {"berlin": berlin}}))


def compared(directory: PlanDirectory, *, begun: bool = False) -> plan_settings.ComparedSettings:
    return plan_settings.ComparedSettings.of(directory, "rebalance", HERE, begun=begun)


def keep(directory: PlanDirectory, of_run: tuple[str, ...] = ()) -> None:
    plan_settings.keep(directory, plan_settings.values_now("rebalance", HERE, of_run))


def test_the_record_is_of_the_cluster_behind_the_connection(
    directory: PlanDirectory, clusters_file: Path
) -> None:
    keep(directory, ("effort",))
    write(clusters_file, {"default": {"replicas": 5}})
    found = compared(directory)
    assert found.caps == read_caps({"default": {"replicas": 5}})
    assert found.counting == {"caps.default.replicas": 5, "targets.tolerance": 0.02}
    (finding,) = found.findings(Rows().snapshot(), (), ())
    assert finding.subject == "caps.default.replicas"


def test_a_clusters_file_that_cannot_be_used_refuses_what_has_not_begun(
    directory: PlanDirectory, clusters_file: Path
) -> None:
    keep(directory)
    clusters_file.write_text("clusters: [")
    with pytest.raises(ClustersFileError, match="cannot be used") as refused:
        compared(directory)
    assert "Correct the clusters file" in str(refused.value)
    found = compared(directory, begun=True)
    (finding,) = found.findings(Rows().snapshot(), (), ())
    assert finding.severity is Severity.WARNING
    assert "Correct the clusters file" in put_in_words(finding).remedy
    assert (found.counting, found.caps, found.limited) == (None, None, False)


def test_a_damaged_record_is_refused_with_what_to_do(directory: PlanDirectory) -> None:
    for text in ("{", "[]", "{}", '{"caps": {"x": 1}, "broker_sets": []}'):
        directory.write_text("settings.json", text)
        with pytest.raises(RehomeError, match=r"settings\.json.*cannot be read") as refused:
            compared(directory)
        assert "trigger a new run" in str(refused.value)


def test_caps_on_traffic_are_judged_by_the_history(
    tmp_path: Path, directory: PlanDirectory, clusters_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partition n is written to at n kB/s."""
    monkeypatch.setenv("REHOME_MIN_HISTORY_HOURS", "1")
    cluster = Cluster((tmp_path / "warehouse").as_uri())
    for minutes in range(0, 100, 20):
        uri = cluster.snapshot(minutes)
    cluster.roll_up()
    write(clusters_file, {"default": {"bytes_in": 1}})
    keep(directory)
    snapshot = read_snapshot(uri)
    row = snapshot.replicas.to_pylist()[-1]
    mine = [r for r in snapshot.replicas.to_pylist() if same_partition(r, row)]
    now = tuple(r["broker"] for r in sorted(mine, key=lambda r: r["position"]))
    (free, *_) = {r["broker"] for r in snapshot.brokers.to_pylist()} - {*now}
    left = move(row["topic"], row["partition"], now, (free, *now[1:]))
    (text,) = compared(directory).broken_limits(snapshot, (), [left])
    assert text.startswith(f"Broker {free} would end with")
    assert "bytes in" in text


def same_partition(one: Any, other: Any) -> bool:
    return all(one[key] == other[key] for key in ("topic", "partition"))


def test_a_plan_that_follows_up_keeps_the_limits_of_now_but_for_those_of_the_run(
    directory: PlanDirectory, clusters_file: Path
) -> None:
    sets = [{"name": "fast", "topics": ["a"], "brokers": [1]}]
    asked = parse_request({"action": "drain", "brokers": [4], "caps": {}, "broker_sets": sets})
    assert plan_settings.renew_request(asked, directory, HERE) == asked, "of an earlier version"
    keep(directory, ("broker_sets",))
    found = plan_settings.renew_request(asked, directory, HERE)
    assert found.caps == read_caps({"default": {"replicas": 4}})
    assert found.broker_sets == asked.broker_sets


@pytest.mark.slow
def test_no_target_of_the_cluster_replaces_what_watching_has_chosen(
    recorded: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of 4 % is what the form shows by default."""
    path = tmp_path / "clusters.yaml"
    path.write_text(
        "clusters:\n"
        "  main:\n"
        f"    connection: {CONNECTION}\n"
        "    targets: {tolerance: 0.9, throttle: 70000000, effort: thorough}\n"
        "    watch: {policies: {imbalance: heal}, balance_tolerance: 0.04}\n"
    )
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))

    def fuller(rows: Rows) -> None:
        for row in rows.replicas:
            row["size_bytes"] *= 1 + (row["broker"] == 1)

    (start,) = watch(*(recorded.snapshot(minutes, fuller) for minutes in (10, 20, 30)))
    by_watching = start["trigger_run_id"]
    for run_id, run_type, tolerance, throttle in (
        (by_watching, "operator_triggered", 0.02, 50_000_000),
        (by_watching, "manual", 0.9, 50_000_000),
        ("watch__by_ann", "operator_triggered", 0.9, 50_000_000),
    ):
        run = SimpleNamespace(
            dag_id=start["trigger_dag_id"],
            run_id=run_id,
            run_type=run_type,
            conf=start["conf"],
            run_after=datetime.now(UTC),
        )
        params = {**FORM_DEFAULTS, **start["conf"]}
        found = RunContext({"params": params, "dag_run": run}).filled
        assert (found.params["tolerance"], found.params["throttle"]) == (tolerance, throttle)
        assert found.params["effort"] == "thorough", "what watching has not chosen"
        assert ("tolerance" in plan_settings.stated_params(found)) is (tolerance == 0.02)
