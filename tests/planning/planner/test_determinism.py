"""The same snapshot, request and seed give the same plan, wherever and however it is made."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rehome.cluster.snapshot.model import TABLES, Snapshot
from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.packaging import JOB_PATH
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.warehouse import Warehouse, read_snapshot
from tests.planning.large import large_snapshot

pytestmark = pytest.mark.slow

SPREADS_TOPICS = True  # see conftest: the processes that plan elsewhere know nothing of it

ROOT = Path(__file__).resolve().parents[3]
REQUESTS = {
    "rebalance": ReassignmentRequest(Action.REBALANCE, seed=7),
    "strict": ReassignmentRequest(Action.REBALANCE, tolerances={"replicas": 0.1, "leaders": 0.1}),
    "drain": ReassignmentRequest(Action.DRAIN, brokers=(3, 4)),
    "targets": ReassignmentRequest(
        Action.REBALANCE,
        tolerances={"leader_bytes_in": 0.05, "potential_bytes_out": 0.05},
        min_leaders={"*": 1},
    ),
}


RECORDED = {
    "rebalance": "0e0e3367eaeb3519557c49bb158c180c5adea7e7aef0d313c2aba123b178b589",
    "strict": "2cff409932015292af6ac23c346575d89dacd1297acf2ed6afcf291bb8ee0073",
    "drain": "a1e2788fcbf593b7704992f03f4b51775749206f608e98e55a27816a000148a9",
    "targets": "c2fd8063484d1022d238158ac7c05e36ca240b1b74bf8079fe851d57d28efa55",
}
"""Hashes of these plans. What changes them changes plans: docs/decisions/028-pay-or-go.md lists
such changes, and 161-leaders-of-topics-in-the-end.md the last one.
"""


def cluster() -> Snapshot:
    """Eighteen brokers, and rates: sums of fractions depend on the order of adding."""
    snapshot = large_snapshot(800, 18, new=0.2)
    table = snapshot.replicas
    size = table.column("size_bytes").to_numpy()
    for name, part in (("bytes_in_per_s", 0.001), ("bytes_out_per_s", 0.0031)):
        table = table.append_column(name, pa.array(size * part))
    return replace(snapshot, replicas=table)


def plan_hash(snapshot: Snapshot, request: ReassignmentRequest) -> str:
    plan = make_plan(snapshot, request, PlanOptions(plan_id="p"))
    assert plan.moves
    return plan.plan_hash


@cache
def hashes() -> dict[str, str]:
    return {name: plan_hash(cluster(), request) for name, request in REQUESTS.items()}


def elsewhere(**environment: str) -> dict[str, str]:
    """The hashes that another process comes to."""
    script = (
        "import json; from tests.planning.planner.test_determinism import hashes; "
        "print(json.dumps(hashes()))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": JOB_PATH} | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    found: dict[str, str] = json.loads(run.stdout)
    return found


def test_plans_are_what_they_were() -> None:
    assert hashes() == RECORDED


def test_hash_seeds_and_threads_do_not_show_in_a_plan() -> None:
    other = {"PYTHONHASHSEED": "1", "OMP_NUM_THREADS": "3", "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    assert elsewhere(**other) == hashes()


def _shuffled(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    return table.take(pa.array(rng.permutation(len(table))))


def _one_file(table: pa.Table, file: Path) -> None:
    pq.write_table(table, file, row_group_size=997, compression="zstd", use_dictionary=False)


def _several_files(table: pa.Table, directory: Path) -> None:
    """As Spark writes a table: a directory of parts, in no order, and a mark."""
    directory.mkdir()
    cuts = [0, len(table) // 7, len(table) // 2, len(table)]
    for number, (start, end) in enumerate(itertools.pairwise(cuts)):
        _one_file(table.slice(start, end - start), directory / f"part-{9 - number}.parquet")
    (directory / "_SUCCESS").touch()


@pytest.mark.parametrize("write", [pytest.param(_one_file, marks=pytest.mark.long), _several_files])
def test_the_order_and_the_files_of_a_snapshots_rows_do_not_show_in_a_plan(
    tmp_path: Path, write: Any
) -> None:
    """Whether it is one file of many row groups, or several files, in any order of rows."""
    snapshot, rng = cluster(), np.random.default_rng(5)
    directory = tmp_path / "cluster=large" / "taken_at=now"
    directory.mkdir(parents=True)
    for name in TABLES:
        write(_shuffled(getattr(snapshot, name), rng), directory / f"{name}.parquet")
    uri = Warehouse(tmp_path.as_uri()).write_snapshot(snapshot)
    (directory / "snapshot.json").write_text(Path(uri[7:], "snapshot.json").read_text())
    read = read_snapshot(f"file://{directory}")
    assert not read.replicas.equals(snapshot.replicas)
    for name, request in REQUESTS.items():
        assert plan_hash(read, request) == hashes()[name]


def test_another_seed_may_give_another_plan() -> None:
    snapshot = cluster()
    found = {
        plan_hash(snapshot, ReassignmentRequest(Action.REBALANCE, seed=seed)) for seed in range(2)
    }
    assert len(found) > 1
