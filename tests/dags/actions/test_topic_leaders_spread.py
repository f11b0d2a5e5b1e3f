"""Topics whose leaders are spread one by one, on real brokers; read by Kafka's own topics tool."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial

from local.process.waiting import wait_until
from rehome.domain.run.states import PlanState
from tests.dags.site import Site

TOOL = "org.apache.kafka.tools.TopicCommand"
BROKERS = (1, 2, 3, 4)
FREE = {"bytes_in": None, "bytes_out": None, "leaders": None, "replicas": None}


def described(site: Site, topic: str) -> list[tuple[int, list[int]]]:
    """Leader and replicas of each partition, as `kafka-topics --describe` prints them."""
    text = site.cluster.run_tool(TOOL, "--describe", "--topic", topic).stdout
    rows = re.findall(r"Partition: (\d+)\s+Leader: (\d+)\s+Replicas: ([\d,]+)", text)
    return [(int(leader), [int(b) for b in row.split(",")]) for _, leader, row in sorted(rows)]


def led(site: Site, topic: str) -> list[int]:
    """How many partitions of a topic each broker leads."""
    count = Counter(leader for leader, _ in described(site, topic))
    return [count[broker] for broker in BROKERS]


def copies(site: Site, topic: str) -> list[set[int]]:
    return [set(row) for _, row in described(site, topic)]


def test_leaders_of_each_topic_are_spread_where_all_leaders_together_are_even_already(
    site: Site,
) -> None:
    """Broker 1 and 2 lead all of one topic, 3 and 4 all of the other: in sum, each leads four."""
    one = site.topics.create([[1, 3], [1, 4], [2, 3], [2, 4]] * 2)
    other = site.topics.create([[3, 1], [3, 2], [4, 1], [4, 2]] * 2)
    for topic in (one, other):
        site.topics.fill(topic, 160)
    before = {topic: copies(site, topic) for topic in (one, other)}
    assert (led(site, one), led(site, other)) == ([4, 4, 0, 0], [0, 0, 4, 4])
    asked = {"action": "rebalance", "topics": [one, other], "tolerance": 0.9}
    free = site.run(**asked, tolerances=FREE | {"topic_spread": None}, dry_run=True)
    assert free.state == "success", free.log
    (idle,) = site.ledger.plans()
    assert not site.ledger.moves(idle.plan_id), "in sum, there is nothing to balance"

    spread = {"tolerances": FREE | {"topic_spread": 0}, "topic_spread_of": "leaders"}
    run = site.run(**asked, **spread)
    assert run.state == "success", run.log

    def is_spread(topic: str) -> bool:
        """Each broker leads the topic's share of 8 partitions over 4 brokers, give or take one."""
        return set(led(site, topic)) <= {1, 2, 3}

    for topic in (one, other):
        wait_until(partial(is_spread, topic), "leaders to be spread")
        assert copies(site, topic) == before[topic], "nothing is copied for it"
        assert all(leader == row[0] for leader, row in described(site, topic))
    newest = max(site.ledger.plans(), key=lambda plan: plan.created_at)
    assert (newest.state, newest.bytes_total) == (PlanState.DONE, 0)
    assert not site.ledger.throttles(open_only=True)
