"""A standalone cluster whose workers have a Python of their own, with what the page names."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rehome.packaging import ROOT
from rehome.run.context import RunContext
from rehome.warehouse import read_snapshot
from tests.plugins.spark.submitted import connected, plan_operator
from tests.plugins.wheel import UV
from tests.quality.snapshots import Rows
from tests.session.needs import Need, needs
from tests.session.spark_session import QUICK
from tests.session.tried import Outcome, versions_of
from tests.spark.fleets import good_fleet, hash_alone
from tests.spark.plan.jobs import DRAIN, Job
from tests.spark.standalone import StandaloneSpark

PAGE = ROOT / "docs" / "howto" / "spark.md"
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of the packages that the page tells to install, and no other."""
    home = tmp_path_factory.mktemp("python") / "venv"
    (named,) = re.findall(r"^uv pip install -c requirements.lock (.+)$", PAGE.read_text(), re.M)
    subprocess.run([UV, "venv", "-q", "--python", sys.executable, home], check=True)
    install = ("pip", "install", "-q", "--python", home / "bin" / "python")
    lock = ROOT / "requirements.lock"
    subprocess.run([UV, *install, "-c", lock, *named.split()], check=True)
    return home / "bin" / "python"


@pytest.fixture(scope="module")
@needs(Need.SPARK)
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneSpark]:
    directory = tmp_path_factory.mktemp("standalone") / "spark"
    directory.mkdir()
    with StandaloneSpark(directory) as found:
        yield found


@pytest.fixture
def connection(spark: StandaloneSpark, python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = {"spark.pyspark.python": str(python), "spark.executor.memory": "700m"}
    connected(monkeypatch, spark.master_url, conf=conf)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")


@pytest.mark.usefixtures("connection")
def test_a_plan_is_made_and_gated(
    spark: StandaloneSpark, tmp_path: Path, outcome: Callable[[Outcome], None]
) -> None:
    job = Job(tmp_path)
    arguments = job.arguments(Rows(), DRAIN)
    operator = plan_operator(arguments[1], conf=dict(QUICK))
    operator.application_args = arguments
    operator.submit(RunContext({}))
    assert job.out.load().moves
    assert list(spark.work_dir.glob("app-*/*/rehome.zip"))
    outcome(Outcome("spark-standalone", versions_of("pyspark")))


@pytest.mark.usefixtures("connection")
def test_a_fleet_is_planned_by_the_workers_python(
    tmp_path: Path, outcome: Callable[[Outcome], None]
) -> None:
    fleet = good_fleet(tmp_path)
    operator = plan_operator("", conf=dict(QUICK))
    operator.application = str(ROOT / "spark_jobs" / "fleet.py")
    operator.application_args = fleet.arguments()
    operator.submit(RunContext({}))
    assert {name: entry["plan_hash"] for name, entry in fleet.reported().items()} == {
        name: hash_alone(read_snapshot(uri), fleet.requests[name])
        for name, uri in fleet.uris.items()
    }
    outcome(Outcome("spark-standalone-fleet", versions_of("pyspark")))
