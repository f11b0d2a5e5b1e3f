"""Jobs on a Spark Connect server: plan, gates and history, and what runs Python on executors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from rehome.packaging import ROOT
from rehome.run.context import RunContext
from rehome.spark.connect_process import ConnectProcess
from rehome.warehouse import PlanDirectory, read_snapshot
from tests.load_history.recorded import START, Cluster
from tests.plugins.spark.submitted import connected, plan_operator
from tests.quality.snapshots import Rows
from tests.session.needs import Need, needs
from tests.session.tried import Outcome, versions_of
from tests.spark.elsewhere.connect_server import connect_server
from tests.spark.fleets import good_fleet, hash_alone

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
@needs(Need.SPARK)
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("spark") / "server") as address:
        yield address


def test_a_plan_by_a_history_is_made_and_gated_on_a_server(
    server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    outcome: Callable[[Outcome], None],
) -> None:
    """Twice, for the server goes on; once with a plan that its gate's empty tables are of."""
    cluster = Cluster(tmp_path.as_uri())
    for number in range(5):
        cluster.snapshot(20 * number)
    cluster.roll_up()
    taken_at = START + timedelta(minutes=81)
    snapshot = cluster.warehouse.write_snapshot(replace(Rows().snapshot(), taken_at=taken_at))
    request = tmp_path / "request.json"
    asked = {"action": "rebalance", "tolerance": 0.9, "throttle": 1000, "dry_run": True}
    request.write_text(json.dumps(asked))
    connected(monkeypatch, server)
    found = []
    for name in ("p1", "p2"):
        out = PlanDirectory(f"{tmp_path.as_uri()}/plans/{name}")
        operator = plan_operator(snapshot)
        operator.application_args = [
            *("--snapshot", snapshot, "--request", str(request), "--out", out.uri),
            *("--history", cluster.warehouse.uri, "--min-history-hours", "1"),
            *("--max-snapshot-age-s", "1e10"),
        ]
        operator.submit(RunContext({}))
        gates = out.read_json("gates.json")
        assert [gate["gate"] for gate in gates if gate["passed"]] == ["snapshot", "history", "plan"]
        assert out.exists("data_docs/index.html")
        found.append(out.load())
    assert found[0].moves
    assert found[0].plan_hash == found[1].plan_hash
    outcome(Outcome("spark-connect", versions_of("pyspark")))


def test_a_snapshot_that_a_gate_refuses_is_refused_with_its_rows(
    server: str, tmp_path: Path, outcome: Callable[[Outcome], None]
) -> None:
    rows = Rows()
    rows.replica(1, 1).update(size_bytes=None)
    cluster = Cluster(tmp_path.as_uri())
    snapshot = cluster.warehouse.write_snapshot(rows.snapshot())
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"action": "drain", "brokers": [4]}))
    out = PlanDirectory(f"{tmp_path.as_uri()}/plans/p1")
    arguments = ["--snapshot", snapshot, "--request", str(request), "--out", out.uri]
    job = str(ROOT / "spark_jobs" / "plan.py")
    code, said = ConnectProcess(server).run(
        job, [*arguments, "--max-snapshot-age-s", "1e12"], {}, print
    )
    assert code == 3, said
    failure = out.read_json("failure.json")
    assert failure["details"] == ["every replica has a size"]
    assert "partition 1" in failure["message"]
    outcome(Outcome("spark-connect-refused", versions_of("pyspark")))


def test_executors_of_a_server_get_rehomes_sources(
    server: str, tmp_path: Path, outcome: Callable[[Outcome], None]
) -> None:
    fleet = good_fleet(tmp_path)
    job = ConnectProcess(server)
    code, said = job.run(str(ROOT / "spark_jobs" / "fleet.py"), fleet.arguments(), {}, print)
    assert code == 0, said
    assert {name: entry["plan_hash"] for name, entry in fleet.reported().items()} == {
        name: hash_alone(read_snapshot(uri), fleet.requests[name])
        for name, uri in fleet.uris.items()
    }
    outcome(Outcome("spark-connect-fleet", versions_of("pyspark")))


def test_history_is_rolled_up_and_modelled_on_a_server(
    server: str, tmp_path: Path, outcome: Callable[[Outcome], None]
) -> None:
    cluster = Cluster(tmp_path.as_uri())
    for number in range(3):
        cluster.snapshot(20 * number)
    job, jobs = ConnectProcess(server), ROOT / "spark_jobs"
    warehouse = ["--warehouse", cluster.warehouse.uri]
    code, said = job.run(str(jobs / "rollup.py"), warehouse, {}, print)
    assert (code, said) == (0, "test 2026-01-05: 3 snapshots, 0 gaps")
    out = (tmp_path / "loads").as_uri()
    code, said = job.run(str(jobs / "load_model.py"), [*warehouse, "--out", out], {}, print)
    assert code == 0, said
    assert list((tmp_path / "loads").rglob("*.parquet"))
    outcome(Outcome("spark-connect-history", versions_of("pyspark")))
