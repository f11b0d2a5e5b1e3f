"""Old data: retention, DeleteRecords, compaction, tiers."""

from __future__ import annotations

from random import Random

import pytest

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import ReplicaId, TopicPartition
from world.kafka.cluster import KafkaModel
from world.kafka.hooks import SetClock
from world.kafka.nodes import Replica
from world.kafka.upkeep import CHECK_S

PART = TopicPartition("orders", 0)
SMALL = {"segment.bytes": "1048576", "retention.ms": "-1"}


def model(**configs: str) -> KafkaModel:
    made = KafkaModel(SetClock(), Random(1))
    assert made.actions.create_topic("orders", [[1, 2]], {**SMALL, **configs}) is None
    made.advance_to(1)
    made.actions.fill(PART, 50e6)
    return made


def on(made: KafkaModel, broker: int) -> Replica:
    found = made.world.replica(PART, broker)
    assert found is not None
    return found


def test_retention_by_size_leaves_whole_segments_of_it() -> None:
    made = model(**{"retention.bytes": "10000000"})
    made.advance_to(CHECK_S + 2)
    assert 10e6 <= on(made, 1).log.size < 11.1e6
    made.advance_to(2 * CHECK_S + 2)
    assert on(made, 2).log.size == on(made, 1).log.size


def test_retention_by_time_deletes_what_is_older() -> None:
    made = model(**{"retention.ms": "1000000"})
    made.advance_to(1200)
    assert on(made, 1).log.size > 49e6
    made.advance_to(1600)
    assert on(made, 1).log.size < 2e6


def test_deleted_records_are_on_disk_until_the_next_check_and_are_not_copied() -> None:
    made = model()
    made.actions.delete_records(PART, 49_000)
    assert on(made, 1).log.size == 50e6
    assert made.port().log_start_offsets([ReplicaId("orders", 0, 1)]).value == {
        ReplicaId("orders", 0, 1): 49_000
    }
    made.actions.reassign(PART, [3, 2])
    made.advance_to(10)
    assert (on(made, 3).log.size, on(made, 3).log.end) == (1e6, 50_000)
    made.advance_to(CHECK_S + 2)
    assert on(made, 2).log.size < 2.1e6


def test_compaction_takes_bytes_and_leaves_offsets() -> None:
    made = model(**{"cleanup.policy": "compact"})
    made.advance_to(CHECK_S + 2)
    assert on(made, 1).log.end == 50_000
    assert on(made, 1).log.size < 20e6


@pytest.mark.parametrize(("flag", "copied"), [("false", 11e6), ("true", 1.1e6)])
def test_a_new_replica_gets_what_is_local_or_what_is_not_in_the_tier(
    flag: str, copied: float
) -> None:
    made = model(**{"local.retention.bytes": "10000000"})
    topic = ConfigResource.topic("orders")
    made.world.nodes[3].static["follower.fetch.last.tiered.offset.enable"] = flag
    refused = made.actions.set_config(topic, "remote.storage.enable", "true")
    assert refused is not None
    assert refused.code == 40
    made.world.nodes[1].static["remote.log.storage.system.enable"] = "true"
    assert made.actions.set_config(topic, "remote.storage.enable", "true") is None
    made.advance_to(CHECK_S + 2)
    assert 10e6 <= on(made, 1).log.size < 11.1e6
    assert on(made, 1).log.start == 0
    made.actions.reassign(PART, [3, 2])
    made.advance_to(CHECK_S + 10)
    assert on(made, 3).log.end == 50_000
    assert copied / 12 < on(made, 3).log.size <= copied
