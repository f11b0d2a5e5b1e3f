"""How long every action takes to plan a million replicas: `make bench-actions`.

Each action is planned on the large case of `make bench-plan`, and those that place replicas also on
other racks: two for three replicas, none, and racks that replicas were placed without. Times are
seconds of the processor for all that the planner does, from a snapshot in memory to a plan. Writes
benchmarks/results/actions.json and a table in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import document
from benchmarks.clusters import CASES, build, snapshot_of
from benchmarks.planning.plan import SIZES, where_and_when
from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.request.parse_request import parse_request
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan

RESULTS = Path(__file__).parent / "results" / "actions.json"
REPLICAS = 3
"""Of each partition of the case."""

DEAD = 10
"""Brokers that are dead where offline replicas are to be fixed."""

COLUMNS = {
    "action": "action",
    "racks": "racks",
    "CPU s": "cpu_s",
    "partitions": "partitions",
    "replicas copied": "copies",
}


def two(snapshot: Snapshot) -> Snapshot:
    """In two racks in turn, each with a replica of every partition."""
    rows = snapshot.replicas.column("broker").to_numpy().reshape(-1, REPLICAS)
    in_use = np.unique(rows)
    random = np.random.default_rng(0)
    in_one = (rows % 2 == rows[:, :1] % 2).all(axis=1)
    rows = rows.copy()
    for rack in (0, 1):
        mine = in_one & (rows[:, 0] % 2 == rack)
        rows[mine, -1] = random.choice(in_use[in_use % 2 != rack], int(mine.sum()))
    moved = replace(snapshot, replicas=_with(snapshot.replicas, "broker", rows.ravel()))
    return _in_racks(moved, [[f"r{n % 2}"] for n in range(snapshot.brokers.num_rows)])


def none(snapshot: Snapshot) -> Snapshot:
    """Without racks."""
    return _in_racks(snapshot, [[] for _ in range(snapshot.brokers.num_rows)])


def unheeded(snapshot: Snapshot) -> Snapshot:
    """In other racks than those that its replicas were placed by."""
    paths = snapshot.brokers.column("rack_path").to_pylist()
    order = np.random.default_rng(0).permutation(len(paths))
    return _in_racks(snapshot, [paths[n] for n in order.tolist()])


def with_dead(snapshot: Snapshot) -> Snapshot:
    """The first brokers are dead."""
    live = [n >= DEAD for n in range(snapshot.brokers.num_rows)]
    brokers = _with(_with(snapshot.brokers, "live", live), "answered", live)
    return replace(snapshot, brokers=brokers)


RACKS: dict[str, Callable[[Snapshot], Snapshot]] = {
    "as placed": lambda snapshot: snapshot,
    "two": two,
    "none": none,
    "unheeded": unheeded,
    "as placed, ten brokers dead": with_dead,
}


def requests(snapshot: Snapshot) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """What is measured: the name of an action, of racks, and the parameters."""
    ids = snapshot.brokers.column("broker").to_pylist()
    in_use = set(snapshot.replicas.column("broker").unique().to_pylist())
    some = len(ids) // 20
    emptied = [f"{broker}:/data" for broker in ids[: len(ids) // 50]]
    placing: dict[str, dict[str, Any]] = {
        "rebalance": {},
        "drain": {"brokers": ids[:some]},
        "expand": {"brokers": [broker for broker in ids if broker not in in_use]},
        "set_replication_factor": {"replication_factor": 4},
    }
    others: dict[str, dict[str, Any]] = {
        "replace": {"replacements": {str(ids[0]): ids[1]}},
        "balance_leaders": {},
        "demote": {"brokers": ids[:some]},
        "elect_preferred": {},
        "evacuate_log_dirs": {"log_dirs": emptied},
        "move_log_dirs": {},
    }
    for racks in ("as placed", "two", "none", "unheeded"):
        for action, params in placing.items():
            yield action, racks, params
    yield "set_replication_factor", "as placed", {"replication_factor": 2}
    for action, params in others.items():
        yield action, "as placed", params
    yield "repair_racks", "unheeded", {}
    yield "fix_offline_replicas", "as placed, ten brokers dead", {}


def measured(snapshot: Snapshot, action: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Plan once."""
    request = parse_request({"action": action, **params})
    began = time.process_time()
    plan = make_plan(snapshot, request, PlanOptions(plan_id="bench"))
    return {
        "cpu_s": round(time.process_time() - began, 2),
        "partitions": len(plan.moves),
        "copies": plan.summary.replica_moves,
    }


def _in_racks(snapshot: Snapshot, paths: list[list[str]]) -> Snapshot:
    return replace(snapshot, brokers=_with(snapshot.brokers, "rack_path", paths))


def _with(table: pa.Table, name: str, values: Any) -> pa.Table:
    at = table.schema.get_field_index(name)
    field = table.schema.field(at)
    return table.set_column(at, field, pa.array(values, field.type))


def _named(action: str, params: Mapping[str, Any]) -> str:
    factor = params.get("replication_factor")
    return f"{action}, {factor}" if factor else action


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, choices=SIZES, default=1_000_000)
    parser.add_argument("--actions", nargs="+")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    snapshot = snapshot_of(build(CASES[0], *SIZES[options.replicas]), disks=True)
    results: list[dict[str, Any]] = []
    for action, racks, params in requests(snapshot):
        if options.actions and action not in options.actions:
            continue
        row = {"action": _named(action, params), "racks": racks}
        row |= measured(RACKS[racks](snapshot), action, params)
        results.append(where_and_when() | {"replicas": snapshot.replicas.num_rows} | row)
        print(json.dumps(row), flush=True)
        options.out.write_text(json.dumps(results, indent=1) + "\n")
    if options.out == RESULTS:
        day = datetime.now(UTC).date()
        lines = [f"Made {day} on 2 cores.", "", *document.table(COLUMNS, results)]
        document.put(document.DOCS / "benchmarks.md", "bench-actions", lines)


if __name__ == "__main__":
    main()
