"""A cluster that a whole Airflow watches: snapshots that are judged, and brokers that are gone."""

from __future__ import annotations

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from tests.e2e.conftest import World

COLLECT, WATCH = "collect_snapshots", "watch_clusters"
RUNS_S = 900.0


def collected(world: World, times: int) -> None:
    """Take snapshots, one after the other, and wait until each is judged."""
    api = world.airflow.api
    for _ in range(times):
        known = len(api.runs(WATCH))
        run = api.trigger(COLLECT)
        assert api.wait_for_run(COLLECT, run, RUNS_S) == "success"

        def judged(before: int = known) -> bool:
            runs = api.runs(WATCH)
            return len(runs) > before and all(run["end_date"] for run in runs)

        wait_until(judged, "the snapshot to be judged", RUNS_S, 1.0)


def kill(cluster: LocalCluster, *brokers: int) -> None:
    for broker in brokers:
        cluster.kill(broker)
    left = cluster.answering_brokers

    def gone() -> bool:
        return all(
            not set(brokers) & cluster.brokers_known_at(cluster.address(each)) for each in left
        )

    wait_until(gone, f"brokers {brokers} to be gone", 240)
