"""Findings from snapshots of real brokers: dead brokers, restarts, disks that fill up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from rehome.ledger.store import Ledger
from rehome.load_history.daily_rollups import SnapshotPace, pending_days, roll_up
from rehome.warehouse import Warehouse
from tests.conftest import Topics, impatient_gateway
from tests.plugins.fleet.watched import Watched, watch_by

DEAD = ("dead_broker", "broker 3")


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Watched]]:
    """Watches a cluster with an empty ledger: ``watched(cluster, policy="heal")``."""
    with ExitStack() as held:

        def watch(cluster: LocalCluster, name: str = "", **rules: Any) -> Watched:
            watch_by(monkeypatch, cluster, **rules)
            url = f"sqlite:///{tmp_path}/{name}ledger.db"
            gateway = held.enter_context(impatient_gateway(cluster))
            ledger = held.enter_context(Ledger.open(url))
            warehouse = Warehouse((tmp_path / f"{name}warehouse").as_uri())
            return Watched(cluster, gateway, warehouse, ledger, url, monkeypatch)

        yield watch


def test_a_dead_broker_is_a_finding_that_closes_when_it_is_back_and_a_restart_is_none(
    mortal: LocalCluster, watched: Callable[..., Watched]
) -> None:
    """It is away once: for twenty minutes by one clock, and for ten by the other."""
    rules = {"policies": {"dead_broker": "propose"}}
    restarted, died = watched(mortal, "restarted", **rules), watched(mortal, "died", **rules)
    Topics(mortal).create([[3, 1], [1, 3]])
    died.kill(3)
    for each in (restarted, died):
        assert each.at(0, 10) == []
        assert DEAD not in each.open(), "within the grace time"
    (start,) = died.at(20)
    assert DEAD in died.open()
    conf = start["conf"]
    assert (conf["action"], conf["brokers"]) == ("fix_offline_replicas", [3])
    assert conf["approval"]

    died.restart(3)
    for each in (restarted, died):
        assert each.at(30, 40, 50) == []
        assert DEAD not in each.open()
    assert restarted.ledger.watch_starts(mortal.cluster_id) == []


def test_disks_are_full_soon_where_a_topic_grows_on_them(
    cluster: LocalCluster,
    topics: Topics,
    watched: Callable[..., Watched],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a clock on which 10 s pass between snapshots: gigabytes grow in hours."""
    monkeypatch.setenv("REHOME_MIN_HISTORY_HOURS", "0.005")
    seen = watched(cluster, snapshots_to_open=2)
    grows = topics.create([[1, 2]])

    def full() -> set[str]:
        return {subject for kind, subject in seen.open() if kind == "disk_full_soon"}

    for number in range(5):
        topics.fill(grows, 1000, size_bytes=10_000)
        seen.at(number / 6)
    assert not full(), "there is no history yet"
    for day in pending_days(seen.warehouse, cluster.cluster_id):
        roll_up(day, SnapshotPace(shortest_s=0.1))
    assert seen.at(5 / 6) == []
    assert not full(), "one snapshot alone shows it"
    assert seen.at(6 / 6) == [], "an alert is sent, and no run is started"
    assert full() == {"broker 1", "broker 2"}
