"""A warehouse with the snapshots of several clusters, and what each should be planned to be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.request.parse_request import parse_request
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.warehouse import PlanDirectory, Warehouse
from tests.quality.snapshots import Rows

GOOD: Mapping[str, Mapping[str, Any]] = {
    "berlin": {"action": "drain", "brokers": [4]},
    "oslo": {"action": "set_replication_factor", "replication_factor": 3},
    "paris": {"action": "balance_leaders"},
}


def snapshot(cluster_id: str, size_bytes: int = 1_000, rows: Rows | None = None) -> Snapshot:
    """A sound cluster of its own sizes, taken now."""
    rows = rows or Rows()
    for row in rows.replicas:
        row["size_bytes"] = row["size_bytes"] and size_bytes * (1 + row["partition"])
        if cluster_id == "paris":  # one broker of each pair leads all
            row["position"] = row["broker"] % 2
            row["is_leader"] = row["position"] == 0
    return replace(rows.snapshot(), cluster_id=cluster_id, taken_at=datetime.now(UTC))


class Fleet:
    """Snapshots in a warehouse, and the arguments of the job that plans them."""

    def __init__(self, directory: Path, requests: Mapping[str, Mapping[str, Any]]) -> None:
        self.requests = requests
        self.warehouse = Warehouse(directory.as_uri())
        self.uris: dict[str, str] = {}
        self._request_file = directory / "requests.json"
        self._request_file.write_text(json.dumps({"clusters": requests}))

    def add(self, of: Snapshot) -> None:
        """Write a cluster's snapshot."""
        self.uris[of.cluster_id] = self.warehouse.write_snapshot(of)

    def arguments(self) -> list[str]:
        """Of spark_jobs/fleet.py."""
        return [
            *("--snapshots", *self.uris.values()),
            *("--request", str(self._request_file)),
            *("--out", f"{self.warehouse.uri}/plans", "--name", "f1"),
        ]

    def plan(self, cluster_id: str) -> PlanDirectory:
        """Where the cluster's plan goes."""
        return self.warehouse.plan(f"f1-{cluster_id}")

    def reported(self) -> dict[str, dict[str, Any]]:
        """The entries of the fleet's list by cluster."""
        entries = PlanDirectory(f"{self.warehouse.uri}/plans").read_json("f1.json")
        return {entry["cluster_id"]: entry for entry in entries}


def good_fleet(directory: Path) -> Fleet:
    """Clusters of which each can be planned."""
    fleet = Fleet(directory, GOOD)
    for number, cluster_id in enumerate(GOOD):
        fleet.add(snapshot(cluster_id, 1_000 + number))
    return fleet


def hash_alone(of: Snapshot, request: Mapping[str, Any]) -> str:
    """Of the plan that the cluster gets by itself."""
    plan = make_plan(of, parse_request(request), PlanOptions(plan_id="alone"))
    assert plan.moves
    return plan.plan_hash
