"""A broker dies whose replica a move keeps: no copy goes to it or comes from it.

Since KAFKA-19975 the controller completes such a move, unless it shrinks the replica set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.advance import advance
from rehome.execution.completion.verify import verify
from rehome.execution.completion.words.proof_words import proof_text
from rehome.execution.observation.out_of_isr import OutOfIsr, ReplicaRole
from rehome.ledger.store import Ledger
from tests.conftest import Topics, impatient_gateway
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.driven import FAST, run, state_of
from tests.ledger.small_plans import move
from tests.versions.since import since

BYSTANDER = 2
MESSAGES = 1500
CRAWL = 100_000
"""Bytes per second at which 15 MB are on their way when the bystander is out of the ISR."""


@pytest.fixture
def cluster(mortal: LocalCluster) -> LocalCluster:
    return mortal


@pytest.fixture
def gateway(cluster: LocalCluster) -> Iterator[OwnGateway]:
    with impatient_gateway(cluster) as opened:
        yield opened


@pytest.fixture
def bystander_dies(cluster: LocalCluster, gateway: OwnGateway) -> Iterator[Callable[[str], None]]:
    """Kills the broker in mid-copy; once it is out of the ISR, the test goes on."""

    def kill(topic: str) -> None:
        cluster.kill(BYSTANDER)
        wait_until(
            lambda: (
                BYSTANDER not in state_of(gateway, topic).isr
                and BYSTANDER not in gateway.describe_cluster().brokers
            ),
            "the bystander to be out of the ISR",
            240,
        )

    yield kill
    if BYSTANDER not in cluster.pids:
        cluster.restart(BYSTANDER)
    wait_until(lambda: BYSTANDER in gateway.describe_cluster().brokers, "it to be back", 240)


@since((4, 3), "a move waits for every replica of its target (KAFKA-19975)")
def test_a_move_is_done_when_the_controller_says_so_and_the_dead_replica_is_a_finding(
    gateway: OwnGateway,
    topics: Topics,
    ledger: Ledger,
    approved: Callable[..., Plan],
    throttled: Callable[[Plan, int], None],
    bystander_dies: Callable[[str], None],
) -> None:
    topic, other = topics.create([[1, 2, 3]]), topics.create([[1, 3]])
    topics.fill(topic, MESSAGES, size_bytes=10_000)
    first, second = move(topic, 0, (1, 2, 3), (4, 2, 3)), move(other, 0, (1, 3), (4, 3))
    plan = approved(first, second)
    throttled(plan, CRAWL)
    one_slot = Policy(CRAWL, metadata_grace_s=2, max_moves_per_broker=1)
    assert advance(plan, ledger, gateway, one_slot).admitted == [first.partition]
    bystander_dies(topic)
    assert first.partition in gateway.list_reassignments(), "it died in mid-copy"
    ledger.request_rate(plan.plan_id, 100_000_000, "ann")

    done = run(plan, ledger, gateway, one_slot)
    assert done.finished is PlanState.DONE, done.cause
    record = ledger.moves(plan.plan_id)[first.partition]
    assert record.state is MoveState.DONE
    assert "broker 2 is not in the ISR: the broker is not alive" in record.detail
    assert ledger.moves(plan.plan_id)[second.partition].detail == ""
    proof = verify(plan, gateway)
    assert proof.ok, proof_text(proof)
    assert proof.findings == {
        first.partition: (OutOfIsr(BYSTANDER, ReplicaRole.KEPT, alive=False),)
    }
    assert f"{first.partition}: the replica on broker 2 is not in the ISR" in proof_text(proof)


@pytest.mark.long
@since((3, 8), "it does not wait for replicas that stay (KAFKA-15665)")
def test_a_move_that_shrinks_the_replica_set_waits_for_its_whole_target(
    cluster: LocalCluster,
    gateway: OwnGateway,
    topics: Topics,
    ledger: Ledger,
    approved: Callable[..., Plan],
    throttled: Callable[[Plan, int], None],
    bystander_dies: Callable[[str], None],
) -> None:
    topic = topics.create([[1, 2, 3]])
    topics.fill(topic, MESSAGES, size_bytes=10_000)
    made = move(topic, 0, (1, 2, 3), (4, 2))
    plan = replace(approved(made), allow_replication_factor_change=True)
    throttled(plan, CRAWL)
    policy = Policy(CRAWL, metadata_grace_s=2)
    assert advance(plan, ledger, gateway, policy).admitted == [made.partition]
    bystander_dies(topic)
    ledger.request_rate(plan.plan_id, 100_000_000, "ann")
    wait_until(
        lambda: advance(plan, ledger, gateway, policy) and 4 in state_of(gateway, topic).isr,
        "the copy to be complete",
        240,
    )
    held = advance(plan, ledger, gateway, policy)
    assert (held.in_flight, held.finished) == (1, None), "the controller waits for broker 2"
    assert made.partition in gateway.list_reassignments()

    cluster.restart(BYSTANDER)
    assert run(plan, ledger, gateway, policy).finished is PlanState.DONE
    assert verify(plan, gateway).findings == {}
    assert ledger.moves(plan.plan_id)[TopicPartition(topic, 0)].detail == ""


@pytest.mark.long
def test_an_added_replica_that_leaves_the_isr_after_the_end_is_reported_as_that(
    cluster: LocalCluster,
    gateway: OwnGateway,
    topics: Topics,
    ledger: Ledger,
    approved: Callable[..., Plan],
    bystander_dies: Callable[[str], None],
) -> None:
    topic = topics.create([[1, 3]])
    made = move(topic, 0, (1, 3), (1, 2, 3))
    plan = replace(approved(made), allow_replication_factor_change=True)
    assert run(plan, ledger, gateway, FAST).finished is PlanState.DONE
    bystander_dies(topic)
    proof = verify(plan, gateway)
    assert proof.ok, proof_text(proof)
    ((found,),) = proof.findings.values()
    assert found == OutOfIsr(BYSTANDER, ReplicaRole.ADDED, alive=False)
    assert "It was in the ISR when the controller completed the move" in str(found)
