"""What one poll asks of the brokers: few requests, however many partitions it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from kafka.net.connection import KafkaConnection

from local.kafka.cluster import LocalCluster
from rehome.cluster.calls.fresh_metadata import ATTEMPTS, BROKERS_ASKED
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.clock import utc_now
from rehome.domain.kafka import OngoingReassignment
from rehome.domain.plan.plan import Plan
from rehome.execution.observation.observe import observe
from rehome.execution.throttle.coverage import Coverage, look_at_throttles
from rehome.ledger.store import Ledger
from tests.conftest import Topics
from tests.ledger.small_plans import move

INVOLVED, LEADERS = 3, 1


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
def test_a_poll_asks_the_controller_once_each_involved_broker_twice_and_leaders_once_more(
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
    # None of them is listed: whether brokers know the newest is asked of the controller, too.
    assert 1 <= requests.pop("DescribeQuorumRequest") <= ATTEMPTS
    metadata = sum(requests.pop(name) for name in [*requests] if "Metadata" in name)
    assert dict(requests) == {
        "ListPartitionReassignmentsRequest": 1,
        "ListOffsetsRequest": INVOLVED + LEADERS,
        "DescribeLogDirsRequest": INVOLVED,
    }
    # Who is there is asked of several brokers at once, before each question.
    assert metadata <= (6 + ATTEMPTS) * len(cluster.broker_ids) + 1 + BROKERS_ASKED


@pytest.mark.parametrize("in_flight", [1, 40])
def test_throttles_are_read_of_what_is_in_flight_by_few_requests_and_nothing_where_nothing_is(
    gateway: ClusterGateway,
    ledger: Ledger,
    approved: Callable[..., Plan],
    topics: Topics,
    requests: Counter[str],
    in_flight: int,
) -> None:
    topic = topics.create([[1, 2]] * 40)
    plan = approved(*[move(topic, number, (1, 2), (1, 3)) for number in range(40)])
    seen = observe(gateway, plan.moves, utc_now())
    view = replace(ledger.view(plan.plan_id), rate_bytes_per_s=1000)
    requests.clear()
    assert look_at_throttles(plan, view, seen, ledger, gateway) == Coverage()
    assert not requests
    flying = {m.partition: OngoingReassignment((1, 3, 2), (3,), (2,)) for m in plan.moves}
    some = [m.partition for m in plan.moves[:in_flight]]
    view = replace(view, sent=dict.fromkeys(some, seen.taken_at))
    found = look_at_throttles(plan, view, replace(seen, ongoing=flying), ledger, gateway)
    assert list(found.unthrottled) == some
    marks = 1  # once a rate is not as the plan has set it, who else may have set it is read
    assert requests["DescribeConfigsRequest"] == 1 + INVOLVED + marks
