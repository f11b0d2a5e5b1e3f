"""Requests that contradict themselves or the cluster are reported, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk.exceptions import ParamValidationError

from local.kafka.cluster import LocalCluster
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.execution.throttle.keys import FOLLOWER_RATE, FOLLOWER_REPLICAS
from rehome.ledger.store import Ledger
from tests.dags.clusters import state_of, to
from tests.dags.runs import Run
from tests.dags.site import Site


def entry(topic: str, partition: int, replicas: list[int], **more: Any) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "replicas": replicas} | more


def test_all_that_is_wrong_with_a_reassignment_in_itself_is_reported_before_anything_is_read(
    site: Site,
) -> None:
    topic = site.topics.create([[1, 2]] * 3)
    before = state_of(site.gateway, [topic])
    wrong = [
        entry(topic, 0, [3, 3]),
        entry(topic, 1, []),
        entry(topic, 2, [3, 2], log_dirs=["any"]),
    ]
    run = site.run(action="reassign", reassignment={"version": 1, "partitions": wrong})
    assert run.state == run.tasks["snapshot"] == "failed"
    assert f"{topic}-0: broker 3 is listed more than once" in run.log
    assert f"{topic}-1: the replica list is empty" in run.log
    assert f"{topic}-2: 1 log_dirs for 2 replicas" in run.log
    assert "Nothing was changed" in run.log
    assert state_of(site.gateway, [topic]) == before
    assert not site.ledger.plans()


def test_all_of_a_reassignment_that_the_cluster_contradicts_is_reported(site: Site) -> None:
    topic = site.topics.create([[1, 2]] * 3)
    before = state_of(site.gateway, [topic])
    wanted = to(topic, {0: [1, 9], 1: [3], 7: [1, 2]})
    wanted["partitions"] += to("nothing-here", {0: [1]})["partitions"]
    run = site.run(action="reassign", reassignment=wanted)
    assert run.state == run.tasks["plan"] == "failed"
    assert f"{topic}-0: unknown broker 9." in run.log
    assert f"{topic}-1: the replication factor would change from 2 to 1" in run.log
    assert f"Unknown partition {topic}-7." in run.log
    assert "Unknown topic 'nothing-here'." in run.log
    assert "Nothing was changed" in run.log
    assert state_of(site.gateway, [topic]) == before
    assert not site.ledger.plans()


def test_a_foreign_reassignment_in_flight_refuses_the_run_unless_additional(site: Site) -> None:
    topic = site.topics.create([[1, 2], [1, 2]])
    site.topics.fill(topic, 1200, size_bytes=10_000)
    foreign = TopicPartition(topic, 1)
    slow = ConfigChange(ConfigResource.broker(4), FOLLOWER_RATE, ConfigOperation.SET, "10000")
    listed = ConfigChange(
        ConfigResource.topic(topic), FOLLOWER_REPLICAS, ConfigOperation.SET, "1:4"
    )
    assert not any(site.gateway.alter_configs([slow, listed]).values())
    site.gateway.alter_reassignments({foreign: [4, 2]})
    in_flight = site.gateway.list_reassignments()
    assert set(in_flight) == {foreign}
    mine = {"action": "reassign", "reassignment": to(topic, {0: [3, 2]})}
    try:
        refused = site.run(**mine)
        assert site.gateway.list_reassignments() == in_flight
        allowed = site.run(**mine, additional=True, dry_run=True)
    finally:
        site.gateway.alter_reassignments({foreign: None})
        gone = ConfigChange(slow.resource, slow.key, ConfigOperation.DELETE)
        assert not any(site.gateway.alter_configs([gone]).values())
    assert refused.state == refused.tasks["dry_run"] == "failed", refused.log
    assert f"{foreign}" in refused.log
    assert "additional" in refused.log
    assert "Nothing was changed" in refused.log
    assert allowed.state == "success", allowed.log
    assert site.gateway.describe_topics([topic])[topic].partitions[0].replicas == (1, 2)
    assert not site.ledger.throttles()


def test_a_wrong_password_is_reported_and_not_tried_again(
    secured_cluster: LocalCluster, ledger: Ledger, rehome: Callable[..., Run]
) -> None:
    wrong = secured_cluster.client_settings() | {"sasl.password": "not-the-password"}
    run = rehome(wrong, action="rebalance")
    assert run.state == run.tasks["snapshot"] == "failed"
    assert "was not authenticated" in run.log
    assert "Correct sasl.username and sasl.password of the connection" in run.log
    assert "Nothing was changed" in run.log
    assert "not-the-password" not in run.log
    assert not ledger.plans()


@pytest.mark.parametrize(
    "conf",
    [
        {"throttle": 0},
        {"throttle": -5},
        {"throttle": "fast"},
        {"reassignment": 7},
        {"replication_factor": 0},
        {"brokers": ["one"]},
        {"action": "rebuild"},
    ],
    ids=str,
)
def test_the_form_refuses_values_that_make_no_sense(conf: dict[str, Any], site: Site) -> None:
    (name,) = conf
    with pytest.raises(ParamValidationError, match=name):
        site.run(**{"action": "rebalance"} | conf)
    assert not site.ledger.plans()
