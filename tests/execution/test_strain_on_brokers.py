"""Others come first: a follower of a partition outside the plan suffers while the plan copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from include.cluster.gateway import ClusterGateway
from include.execution.advance import advance
from include.execution.backlog import Backlog
from include.execution.bystanders import bystanders
from include.execution.decide import needs_worker
from include.execution.governor import CALM_S, first_rate
from include.execution.model import Policy
from include.execution.poll import poll
from include.execution.rates import RateChange, RateReason
from include.execution.throttle import clear_throttle, set_up_throttle
from include.execution.throttle_items import FOLLOWER_RATE
from include.ledger.database import utc_now
from include.ledger.store import Ledger
from include.planning.plan import Plan
from local.kafka_cluster import LocalCluster
from local.waiting import wait_until
from local.workload import Workload
from tests.conftest import Topics, impatient_gateway
from tests.dags.clusters import throttles_of
from tests.ledger.small_plans import move

ASKED = 400_000
POLICY = Policy(ASKED, metadata_grace_s=2)
SIZE = 30_000_000
BESIDE = 4
"""Follows a partition of somebody else's, and has no part in the plan."""
OUT_OF_ISR_BEFORE_DEAD = {"replica.lag.time.max.ms": "3000"}
"""The controller takes a broker for dead after 9 s."""


class Clock:
    """The time, put forward at will: a test tells it that it has been calm for a while."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return utc_now() + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(ledger_url: str, clock: Clock) -> Iterator[Ledger]:
    with Ledger.open(ledger_url, clock=clock) as opened:
        yield opened


def step(plan: Plan, ledger: Ledger, gateway: ClusterGateway, clock: Clock) -> RateChange:
    """What trigger and worker do in turn; returns the newest change of the rate."""
    beside, backlog = bystanders(plan, gateway.describe_topics()), Backlog()
    look = poll(plan, ledger, gateway, POLICY, backlog, clock, beside)
    assert look is not None
    if needs_worker(plan, look.view, look.seen, POLICY, backlog):
        assert advance(plan, ledger, gateway, POLICY, clock).finished is None
    return ledger.rate_changes(plan.plan_id)[-1]


@pytest.mark.parametrize(
    "calm_s", [CALM_S, pytest.param(0, marks=[pytest.mark.long, pytest.mark.timeout(600)])]
)
def test_a_follower_that_leaves_the_isr_halves_the_rate_and_calm_brings_it_back(
    calm_s: float,
    private_cluster: Callable[..., LocalCluster],
    ledger: Ledger,
    approved: Callable[..., Plan],
    clock: Clock,
) -> None:
    """:param calm_s: by how much the clock is put forward at each look; 0 = it is waited for."""
    cluster = private_cluster(broker_config=OUT_OF_ISR_BEFORE_DEAD)
    with impatient_gateway(cluster) as gateway, Topics(cluster) as topics:
        mine, others = topics.create([[1]] * 4), topics.create([[1, 3, BESIDE]])
        topics.fill(mine, SIZE // 100_000, size_bytes=100_000)
        clean = throttles_of(gateway, [mine, others])
        moves = [move(mine, at, (1,), (3,), SIZE) for at in range(4)]
        plan = approved(*moves, cluster_id=cluster.cluster_id)
        set_up_throttle(plan, ledger, gateway, first_rate(ASKED), ASKED)
        advance(plan, ledger, gateway, POLICY, clock)

        def stepped() -> RateChange:
            return step(plan, ledger, gateway, clock)

        def usual_is_known() -> bool:
            stepped()
            return sum(flow.strain is not None for flow, _ in ledger.flows(plan.plan_id)) >= 3

        wait_until(usual_is_known, "it to be known how others are", 60)
        with Workload(cluster.client_settings(), {others: 1}, consume=False):
            cluster.pause(BESIDE)
            try:
                cut = wait_until(lambda: of_strain(stepped()), "the cut", 60)
            finally:
                cluster.resume(BESIDE)
        assert cut is not None
        assert (cut.target_bytes_per_s, cut.limit_bytes_per_s) == (ASKED // 2, ASKED)
        assert cut.cause.endswith("replicas of partitions outside the plan have left the ISR")
        told = str(cut.rate_bytes_per_s)
        wait_until(
            lambda: throttles_of(gateway, [])["broker "].get(FOLLOWER_RATE) == told,
            "the lower rate on the brokers",
        )
        wait_until(lambda: whole(gateway, others), "the follower to catch up", 60)

        def back() -> bool:
            clock.ahead += timedelta(seconds=calm_s)
            return stepped().target_bytes_per_s == ASKED

        wait_until(back, "the rate that was asked for", 500, 0.5)
        changes = ledger.rate_changes(plan.plan_id)
        for before, after in pairwise(changes):
            change = after.target_bytes_per_s - before.target_bytes_per_s
            if after.reason is RateReason.RECOVERY:
                assert change == ASKED // 10, changes
                assert after.at - before.at >= timedelta(seconds=CALM_S), changes
            elif after.reason is not RateReason.STRAIN:
                assert change == 0, changes
        assert clear_throttle(plan.plan_id, ledger, gateway).owed == ()
        wait_until(lambda: throttles_of(gateway, [mine, others]) == clean, "no throttle")


def of_strain(change: RateChange) -> RateChange | None:
    return change if change.reason is RateReason.STRAIN else None


def whole(gateway: ClusterGateway, topic: str) -> bool:
    state = gateway.describe_topics([topic])[topic].partitions[0]
    return state.isr == set(state.replicas)
