"""Where Spark runs does not matter: one process, an executor for each task, or other machines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rehome.warehouse import read_snapshot
from tests.spark.fleets import good_fleet, hash_alone
from tests.spark.standalone import StandaloneSpark
from tests.spark.submit import submit


@contextmanager
def standalone(directory: Path) -> Iterator[str]:
    """A master and two workers in processes of their own, which get the zip and nothing else."""
    directory.mkdir()
    with StandaloneSpark(directory) as spark:
        yield spark.master_url
        shipped = list(spark.work_dir.glob("app-*/*/rehome.zip"))
        assert shipped, f"no executor ran below {spark.work_dir}"


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "master", ["local[1]", "local[*]", "local-cluster[2,1,1024]", "standalone"]
)
def test_a_fleet_is_planned_the_same_on_every_master(master: str, tmp_path: Path) -> None:
    fleet = good_fleet(tmp_path)
    with standalone(tmp_path / "spark") if master == "standalone" else _named(master) as url:
        conf = {"spark.executor.memory": "700m"}
        run = submit("fleet.py", fleet.arguments(), tmp_path, master=url, conf=conf)
        assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    found = {name: entry["plan_hash"] for name, entry in fleet.reported().items()}
    assert found == {
        name: hash_alone(read_snapshot(uri), fleet.requests[name])
        for name, uri in fleet.uris.items()
    }


@contextmanager
def _named(master: str) -> Iterator[str]:
    yield master
