"""One seed fixes everything, in whatever process it runs."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.packaging import JOB_PATH
from tests.processes import OTHER_HASHES
from world.kafka.cluster import KafkaModel
from world.kafka.hooks import SetClock

ROOT = Path(__file__).resolve().parents[3]
TOPICS = ("orders", "payments", "returns")


def trace(seed: int) -> str:
    """The digest of what one client sees while much happens."""
    rng = Random(seed)
    made = KafkaModel(SetClock(), rng, 6)
    for topic in TOPICS:
        made.actions.create_topic(topic, [rng.sample(range(1, 7), 3) for _ in range(4)])
    made.advance_to(1)
    made.actions.set_config(
        ConfigResource.cluster_default(), "follower.replication.throttled.rate", "2000000"
    )
    port, seen = made.port(), hashlib.sha256()
    for step in range(60):
        part = TopicPartition(rng.choice(TOPICS), rng.randrange(4))
        made.actions.produce(part, rng.choice((0, 1e5, 1e6)))
        made.actions.reassign(part, rng.sample(range(1, 7), 3))
        made.actions.set_config(
            ConfigResource.topic(part.topic),
            "follower.replication.throttled.replicas",
            rng.choice(("*", "", "0:1,1:2", None)),
        )
        broker = rng.randrange(1, 7)
        rng.choice((made.actions.kill, made.actions.start, made.actions.pause))(broker)
        made.actions.resume(broker)
        made.advance_to(step * 20.0)
        seen.update(repr((made.world.now, made.world.image, port.describe_topics())).encode())
        seen.update(repr([dict(node.replicas) for node in made.world.nodes.values()]).encode())
    return seen.hexdigest()


@pytest.mark.slow
def test_a_seed_gives_the_same_world_whatever_order_hashes_have() -> None:
    code = "from tests.world.kafka.test_cluster_by_seed import trace; print(*map(trace, range(3)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": OTHER_HASHES, "PYTHONPATH": JOB_PATH},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [*map(trace, range(3))]
    assert trace(1) != trace(2)
