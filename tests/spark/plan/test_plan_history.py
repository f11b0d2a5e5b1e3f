"""The plan job with a history: it plans by what is known, and says what is not."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rehome.warehouse import PlanDirectory
from spark_jobs import plan as job
from tests.load_history.recorded import START, Cluster
from tests.quality.snapshots import Rows

AS_OLD_AS_IT_LIKES = ("--max-snapshot-age-s", "1e10")


class Planned:
    """A rebalance of the cluster whose traffic is uneven and whose disks are level."""

    def __init__(self, directory: Path, hours: str) -> None:
        cluster = Cluster(directory.as_uri())
        for number in range(5):
            cluster.snapshot(20 * number)
        cluster.roll_up()
        taken_at = START + timedelta(minutes=81)
        snapshot = replace(Rows().snapshot(), taken_at=taken_at)
        request = directory / "request.json"
        asked = {"action": "rebalance", "tolerance": 0.9, "throttle": 1000, "dry_run": True}
        request.write_text(json.dumps(asked))
        self.out = PlanDirectory(f"{directory.as_uri()}/plans/p1")
        self.exit_code = job.main(
            [
                *("--snapshot", cluster.warehouse.write_snapshot(snapshot)),
                *("--request", str(request)),
                *("--out", self.out.uri),
                *("--history", cluster.warehouse.uri, "--min-history-hours", hours),
                *AS_OLD_AS_IT_LIKES,
            ]
        )

    def gate(self, name: str) -> dict[str, Any]:
        (found,) = (gate for gate in self.out.read_json("gates.json") if gate["gate"] == name)
        return dict(found)


@pytest.mark.usefixtures("spark", "passed_snapshot")
def test_traffic_is_balanced_once_the_history_shows_it(tmp_path: Path) -> None:
    planned = Planned(tmp_path, "1")
    assert planned.exit_code == 0
    gates = planned.out.read_json("gates.json")
    assert {gate["gate"] for gate in gates if gate["passed"]} == {"snapshot", "history", "plan"}
    plan = planned.out.load()
    assert plan.moves
    assert plan.summary.planned_by == "bytes, bytes in per second and bytes out per second"
    curve = [point.bytes_to_move for point in plan.summary.curve]
    assert curve[:1] + curve[-1:] == [0, plan.summary.bytes_to_move]
    load = planned.out.read_json("load.json")
    assert {item["resource"]: item["known"] for item in load["resources"]} == {
        "bytes_in": True,
        "bytes_out": True,
        "growth": True,
    }
    growth = {row["broker"]: row["growth_bytes_per_s"] for row in load["forecast"]}
    assert sum(growth.values()) == pytest.approx(2 * sum(range(12)) * 1000)


@pytest.mark.usefixtures("spark", "passed_snapshot")
def test_a_thin_history_refuses_nothing_and_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = Planned(tmp_path, hours="24")
    assert planned.exit_code == 0
    gate = planned.gate("history")
    assert not gate["passed"]
    assert not gate["binding"]
    failed = {item["name"]: item for item in gate["outcomes"] if item["status"] != "passed"}
    assert failed.keys() == {"the history is long enough"}
    rows = failed["the history is long enough"]["offending_rows"]
    assert "resource bytes_in, hours 1.333, needed_hours 24.0" in rows
    plan = planned.out.load()
    assert plan.moves == ()
    assert plan.summary.planned_by == (
        "bytes only; bytes in per second and bytes out per second not known: "
        "the history covers 1.3 h of the 24 h it takes"
    )
    assert planned.out.read_json("load.json")["forecast"] == []
    assert "Gate on the history: too thin" in capsys.readouterr().out
