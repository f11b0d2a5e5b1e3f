"""Topics brought to destinations, beside what Kafka's own tool proposes for the same brokers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.snapshot.take import take_snapshot
from rehome.domain.clock import utc_now
from rehome.domain.reassignment_file import parse_reassignment
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.pasted_reassignment import read_reassignment
from rehome.execution.completion.verify import verify
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from tests.conftest import Topics
from tests.execution.access.own_gateway import OwnGateway

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


def spread(rows: Iterable[Sequence[int]]) -> tuple[int, int]:
    """By how much the fullest broker is ahead of the emptiest, in replicas and in leaders."""
    rows = list(rows)
    held, led = Counter(b for row in rows for b in row), Counter(row[0] for row in rows)
    brokers = {*held, *led}
    return tuple(  # type: ignore[return-value]
        max(count[b] for b in brokers) - min(count[b] for b in brokers) for count in (held, led)
    )


def test_topics_move_to_the_same_brokers_as_with_kafkas_tool_and_no_less_evenly(
    cluster: LocalCluster, gateway: OwnGateway, topics: Topics, tmp_path: Path
) -> None:
    """Kafka's manual, Automatically migrating data to new machines: here, to brokers 3 and 4."""
    names = [topics.create([[1, 2], [2, 1], [1, 2], [2, 1], [1, 2]]) for _ in range(2)]
    for name in names:
        topics.fill(name, 200)
    to_move = tmp_path / "topics-to-move.json"
    to_move.write_text(json.dumps({"version": 1, "topics": [{"topic": name} for name in names]}))
    printed = cluster.run_tool(
        TOOL, "--topics-to-move-json-file", str(to_move), "--broker-list", "3,4", "--generate"
    )
    assert printed.returncode == 0, printed.stdout + printed.stderr
    theirs = parse_reassignment(read_reassignment(printed.stdout) or {})

    snapshot = take_snapshot(gateway, utc_now())
    request = parse_request({"action": "rebalance", "topics": names, "destinations": "3, 4"})
    plan = make_plan(snapshot, request, PlanOptions(plan_id="p"))
    ours = {move.partition: move.target for move in plan.moves}

    assert ours.keys() == theirs.keys()
    for partition, target in ours.items():
        assert sorted(target) == sorted(theirs[partition].replicas) == [3, 4]
    held, led = spread(ours.values())
    assert held <= spread(item.replicas for item in theirs.values())[0]
    # Of five leaders of a topic one broker has three: which one, the tool draws for each topic.
    assert led <= len(names)

    assert not any(gateway.alter_reassignments(ours).values())
    wait_until(lambda: verify(plan, gateway).ok, "the moves")
    described = gateway.describe_topics(names)
    assert {
        broker
        for topic in described.values()
        for state in topic.partitions.values()
        for broker in state.replicas
    } == {3, 4}
