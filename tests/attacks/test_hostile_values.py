"""What tasks leave for one another, replaced by users: nowhere is asked, and nothing changes.

By Airflow's public API, on the DAG whose tasks need no Spark; the other DAGs are in the walk.
"""

from __future__ import annotations

import pytest

from tests.attacks.conftest import Stack
from tests.attacks.in_process import GUARDED
from tests.attacks.listener import Trap

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ADDS = "add_partitions"


def test_a_task_fetches_nothing_that_an_xcom_names(stack: Stack, trap: Trap) -> None:
    """(5) By http, through a cache of it, or by ftp."""
    bob = stack["bob"]
    topic = stack.topic([1, 2])
    run = stack["ann"].triggers(
        ADDS, {"partitions": {topic: 2}, "kafka_config_id": GUARDED, "dry_run": True}
    )
    assert bob.wait_for_end(run) == "success"
    for value in trap.hostile:
        bob.forges(run, "snapshot", value)
        assert bob.has_done_again(run, "place") == "success", "by the snapshot that the run took"
    assert trap.heard == []
