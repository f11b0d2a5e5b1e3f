"""One day of a watched cluster, on real brokers: what happens, and what a person on call reads.

`make bench-day` runs it, and writes the table of docs/on-call.md. What has to hold of its rows is
asked of the committed ones, too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local.kafka.cluster import LocalCluster
from tests.conftest import Topics
from tests.dags.day import acts
from tests.dags.day.conftest import SMALL_DISK
from tests.dags.day.day import Day
from tests.dags.day.happened import RESULT, saved
from tests.dags.day.test_table_of_the_day import has_gone_right

LAYOUT = [[1, 3, 5], [3, 5, 2], [5, 2, 4], [2, 4, 6], [4, 6, 1], [6, 1, 3]]
"""Each broker has three replicas, of which it leads one; each partition is in each rack."""


@pytest.fixture
def topic(day: Day) -> str:
    topics = Topics(day.cluster)
    found = topics.create(LAYOUT, "orders", {"min.insync.replicas": "2"})
    topics.fill(found, 200)
    return found


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_day_on_call(
    day: Day,
    topic: str,
    clusters_file: Path,
    private_cluster: Callable[..., LocalCluster],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began = time.monotonic()
    acts.restarts(day)
    acts.flaps(day)
    acts.dies(day)
    acts.a_new_one_comes(day, monkeypatch)
    acts.a_disk_fills(day, topic, *SMALL_DISK)
    acts.the_connection_is_edited(day, private_cluster(brokers=1), monkeypatch)
    acts.the_file_is_broken(day, clusters_file)
    acts.a_rack_dies(day)
    acts.the_webhook_is_slow(day)
    acts.nobody_answers(day, monkeypatch)
    about = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "cores": os.cpu_count(),
        "brokers": len(day.cluster.broker_ids),
        "real_s": round(time.monotonic() - began),
    }
    saved(day.rows, Path(os.environ.get("REHOME_DAY_RESULT", RESULT)), **about)
    has_gone_right(day.rows)
