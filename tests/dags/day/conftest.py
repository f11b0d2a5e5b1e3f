"""Seven brokers in three racks, one of them not there yet, and a disk that can be filled."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from local.kafka.cluster import LocalCluster
from rehome.domain import clock
from rehome.ledger.store import Ledger
from tests.dags.day.day import Day, DayClock
from tests.dags.runs import Run
from tests.e2e.webhook import Webhook
from tests.session.needs import Need, needs

RACKS = ("a", "a", "b", "b", "c", "c", "a")
SMALL_DISK = 4, 1
"""Broker and index of the log dir that has a disk of its own."""
RULES = {
    "policies": {"dead_broker": "heal", "offline_log_dir": "heal", "empty_broker": "propose"},
    "balance_tolerance": 1.0,
}
"""Beside these, every rule has its default. The few partitions here are never even."""


@pytest.fixture
@needs(Need.BROKERS)
def racks() -> Iterator[LocalCluster]:
    """Its last broker is shut down: it has never held anything."""
    directory = Path(tempfile.mkdtemp(prefix="rehome-day-"))
    controller = {
        "broker.session.timeout.ms": "18000",
        "auto.leader.rebalance.enable": "true",  # as Kafka has it by default
        "leader.imbalance.check.interval.seconds": "5",  # of the ten minutes between two snapshots
    }
    cluster = LocalCluster(directory, len(RACKS), racks=RACKS, controller_config=controller)
    disk = cluster.log_dirs(SMALL_DISK[0])[SMALL_DISK[1]]
    disk.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(disk)]
    mounted = subprocess.run(mount, check=False)
    if mounted.returncode:
        shutil.rmtree(directory)
        pytest.skip("a disk that can be filled needs the right to mount one")
    try:
        with cluster:
            cluster.shutdown(len(RACKS))
            yield cluster
    finally:
        subprocess.run(["umount", str(disk)], check=True)
        shutil.rmtree(directory)


@pytest.fixture
def clusters_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One cluster without windows: it is always open."""
    path = tmp_path / "clusters.yaml"
    path.write_text(json.dumps({"clusters": {"main": {"connection": "kafka_default"}}}))
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))
    monkeypatch.setenv("REHOME_WATCH_RULES", json.dumps(RULES))
    return path


@pytest.fixture
def day(
    racks: LocalCluster,
    clusters_file: Path,
    rehome: Callable[..., Run],
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Day]:
    """It begins at six; whatever is sent goes to one webhook."""
    kafka = {"conn_type": "kafka", "extra": racks.client_settings()}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
    with Webhook() as webhook:
        hook = {"conn_type": "http", "host": webhook.url}
        monkeypatch.setenv("AIRFLOW_CONN_REHOME_WEBHOOK", json.dumps(hook))
        of_the_day = DayClock()
        with clock.replaced_by(of_the_day):
            yield Day(racks, ledger, rehome, monkeypatch, of_the_day, webhook)
