"""What one look asks of the brokers: few requests, however many partitions it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from kafka.net.connection import KafkaConnection

from include.cluster.gateway import ClusterGateway
from include.execution.observe import observe
from include.ledger.database import utc_now
from local.kafka_cluster import LocalCluster
from tests.conftest import Topics
from tests.ledger.small_plans import move

INVOLVED = 3


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts what is sent to brokers, by kind of request."""
    sent: Counter[str] = Counter()
    send: Callable[..., Any] = KafkaConnection.send_request

    def counted(connection: KafkaConnection, request: Any, **options: Any) -> Any:
        sent[type(request).__name__] += 1
        return send(connection, request, **options)

    monkeypatch.setattr(KafkaConnection, "send_request", counted)
    return sent


@pytest.mark.parametrize("partitions", [1, 40])
def test_a_poll_asks_the_controller_once_and_each_involved_broker_twice(
    cluster: LocalCluster,
    gateway: ClusterGateway,
    topics: Topics,
    requests: Counter[str],
    partitions: int,
) -> None:
    topic = topics.create([[1, 2]] * partitions)
    moves = [move(topic, number, (1, 2), (1, 3)) for number in range(partitions)]
    observe(gateway, moves, utc_now())  # connects
    requests.clear()
    seen = observe(gateway, moves, utc_now())
    assert len(seen.sizes) == 2 * partitions
    assert not seen.missing
    metadata = sum(requests.pop(name) for name in [*requests] if "Metadata" in name)
    assert dict(requests) == {
        "ListPartitionReassignmentsRequest": 1,
        "ListOffsetsRequest": INVOLVED,
        "DescribeLogDirsRequest": INVOLVED,
    }
    # Who is there is asked of several brokers at once, before each question.
    assert metadata <= 5 * len(cluster.broker_ids) + 1
