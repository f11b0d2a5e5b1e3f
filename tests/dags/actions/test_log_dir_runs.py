"""Balancing the log dirs of a broker, and the way back, as whole runs."""

from __future__ import annotations

from collections import Counter

from local.process.waiting import wait_until
from rehome.domain.kafka import ReplicaId, TopicPartition
from rehome.domain.run.states import PlanState
from rehome.warehouse import PlanDirectory
from tests.dags.clusters import no_throttles, throttles_become
from tests.dags.site import Site

SIZE_BYTES, NUMBER = 1_000_000, 4


def dirs_of(site: Site, topic: str) -> list[str]:
    """Log dir of each partition on broker 1; of one that is being copied, both."""
    partitions = [TopicPartition(topic, number) for number in range(NUMBER)]
    found = site.gateway.describe_log_dirs([1], partitions).value
    return sorted(log_dir.path for log_dir in found for _ in log_dir.replicas)


def test_the_log_dirs_of_a_broker_are_balanced_and_taken_back_to_where_they_were(
    site: Site,
) -> None:
    topic = site.topics.create([[1]] * NUMBER)
    site.topics.fill(topic, SIZE_BYTES // 10_000, size_bytes=10_000)
    one = str(site.cluster.log_dirs(1)[0])
    together = {ReplicaId(topic, number, 1): one for number in range(NUMBER)}
    assert not any(site.gateway.alter_replica_log_dirs(together).values())
    wait_until(lambda: dirs_of(site, topic) == [one] * NUMBER, "all in one log dir")
    before = no_throttles(site.gateway, [topic])

    run = site.run(action="move_log_dirs", brokers=[1], topics=[topic], throttle=5_000_000)
    assert run.state == "success", run.log
    assert set(Counter(dirs_of(site, topic)).values()) == {NUMBER // 2}
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.DONE
    assert plan.bytes_total > SIZE_BYTES * NUMBER // 2
    assert site.ledger.samples(plan.plan_id)[-1].bytes_done >= plan.bytes_total
    assert {entry.key for entry in site.ledger.throttles(plan.plan_id)} == {
        "replica.alter.log.dirs.io.max.bytes.per.second"
    }
    directory = PlanDirectory(plan.plan_dir)
    assert directory.read_json("dry_run.json")["log_dir_bytes"] == plan.bytes_total
    assert directory.read_json("verification.json")["ok"]
    throttles_become(site.gateway, [topic], before)

    back = site.run(action="rollback", plan_id=plan.plan_id, throttle=5_000_000)
    assert back.state == "success", back.log
    assert dirs_of(site, topic) == [one] * NUMBER
    assert site.ledger.plan(plan.plan_id).state is PlanState.ROLLED_BACK
