"""A short look at Kafka 3.9 beside the usual version, whose jars are fetched when it runs first:
a snapshot, a dry run, a move under a throttle, a cancel, and Kafka's own tool at the end.

All that is marked runs there by ``make test-versions``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.snapshot.take import take_snapshot
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.findings import Severity
from rehome.domain.run.states import PlanState
from rehome.execution.advance import advance
from rehome.execution.completion.verify import verify
from rehome.execution.control.cancel import abort
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from tests.conftest import Topics, impatient_gateway
from tests.dags.clusters import no_throttles
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.driven import SLOW, replicas_of, run
from tests.execution.dry_run.checked import check, found
from tests.execution.upgrades.other_kafkas import bring
from tests.ledger.small_plans import move
from tests.session.needs import Need, needs

OLDER = "3.9.2"
TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


@pytest.fixture(scope="module")
@needs(Need.BROKERS)
def older_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    directory = tmp_path_factory.mktemp("older")
    with LocalCluster(directory / "cluster", brokers=3, version=bring(OLDER)) as running:
        yield running


@pytest.fixture
def on_older(older_kafka: LocalCluster) -> Iterator[OwnGateway]:
    with impatient_gateway(older_kafka) as opened:
        yield opened


def _plan(cluster: LocalCluster, approved: Callable[..., Plan], messages: int) -> tuple[str, Plan]:
    topics = Topics(cluster)
    topic = topics.create([[1, 2]])
    topics.fill(topic, messages)
    moved = move(topic, 0, (1, 2), (3, 2), messages * 1000)
    return topic, approved(moved, cluster_id=cluster.cluster_id)


def test_a_move_under_a_throttle_ends_and_kafkas_own_tool_agrees(
    older_kafka: LocalCluster,
    on_older: OwnGateway,
    ledger: Ledger,
    approved: Callable[..., Plan],
    tmp_path: Path,
) -> None:
    topic, plan = _plan(older_kafka, approved, 3000)
    snapshot = take_snapshot(on_older, datetime.now(UTC))
    result = check(on_older, *plan.moves, snapshot=snapshot)
    assert result.ok, result.findings
    (said,) = found(result, "versions")
    assert (said.severity, said.subject) == (Severity.INFO, "brokers 1, 2 and 3")
    set_up_throttle(plan, ledger, on_older, SLOW.rate_bytes_per_s)
    assert run(plan, ledger, on_older, SLOW).finished is PlanState.DONE
    assert verify(plan, on_older).ok
    clear_throttle(plan.plan_id, ledger, on_older)
    no_throttles(on_older, [topic])
    asked = tmp_path / "plan.json"
    wanted = {"topic": topic, "partition": 0, "replicas": [3, 2]}
    asked.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    told = older_kafka.run_tool(
        TOOL, "--verify", "--reassignment-json-file", str(asked), "--preserve-throttles"
    )
    assert f"Reassignment of partition {topic}-0 is completed." in told.stdout, told


def test_a_cancel_puts_the_replicas_back_and_leaves_no_throttle(
    older_kafka: LocalCluster,
    on_older: OwnGateway,
    ledger: Ledger,
    approved: Callable[..., Plan],
) -> None:
    topic, plan = _plan(older_kafka, approved, 6000)
    set_up_throttle(plan, ledger, on_older, 50_000)
    assert advance(plan, ledger, on_older, SLOW).admitted
    partition = TopicPartition(topic, 0)
    wait_until(lambda: partition in on_older.list_reassignments(), "it to be in flight")
    abort(plan.plan_id, ledger, on_older, "the test is over")
    assert ledger.plan(plan.plan_id).state is PlanState.FAILED
    wait_until(lambda: replicas_of(on_older, topic) == (1, 2), "the replicas as they were")
    clear_throttle(plan.plan_id, ledger, on_older)
    no_throttles(on_older, [topic])
    assert not on_older.list_reassignments()
