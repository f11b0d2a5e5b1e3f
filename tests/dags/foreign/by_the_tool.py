"""What Kafka's own tool has in flight, for tests of what Rehome does about it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.dags.clusters import Throttles, to
from tests.dags.conftest import CRAWL, Throttle
from tests.dags.site import Site

DAG = "foreign_reassignments"
TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


def crawling(
    site: Site, tmp_path: Path, throttle: Throttle, partitions: int
) -> tuple[str, Throttles]:
    """A new topic whose copies, begun by the tool, make next to no way; and all throttles then."""
    topic = site.topics.create([[1, 2]] * partitions)
    site.topics.fill(topic, 300, size_bytes=10_000)
    theirs = throttle(topic, CRAWL)
    started_by_the_tool(site, tmp_path, topic, partitions)
    return topic, theirs


def started_by_the_tool(site: Site, tmp_path: Path, topic: str, partitions: int) -> None:
    """Kafka's own tool moves each of these from broker 1 to broker 3 or 4, without a throttle."""
    file = tmp_path / "reassignment.json"
    targets = {number: [3 + number % 2, 2] for number in range(partitions)}
    file.write_text(json.dumps(to(topic, targets)))
    done = site.cluster.run_tool(TOOL, "--execute", "--reassignment-json-file", str(file))
    assert "Successfully started" in done.stdout, done.stdout + done.stderr
