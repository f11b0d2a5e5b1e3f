"""What real brokers deliver under a governed throttle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from include.cluster.gateway import ClusterGateway
from include.domain.plan.plan import Plan
from include.domain.run.flows import FlowSample, RateReason
from include.domain.run.run_policy import Policy
from include.execution.advance import advance
from include.execution.governor.control_loop import first_rate
from include.execution.throttle.keys import FOLLOWER_RATE
from include.execution.throttle.set_up import clear_throttle, set_up_throttle
from include.ledger.store import Ledger
from local.process.waiting import wait_until
from tests.conftest import Topics
from tests.dags.clusters import throttles_of
from tests.ledger.small_plans import move

ASKED = 8_000_000
POLL_S = 3.0


def received(flows: list[FlowSample], broker: int) -> list[tuple[float, int]]:
    """Seconds since the first poll, and bytes that the broker had received by then."""
    begin, so_far = flows[0].since, 0
    reported = [(0.0, 0)]
    for sample in flows:
        so_far += sum(
            flow.copied_bytes
            for flow in sample.flows
            if (flow.direction, flow.broker) == ("in", broker)
        )
        reported.append(((sample.at - begin).total_seconds(), so_far))
    return reported


def spans(reported: list[tuple[float, int]], seconds: float) -> list[float]:
    """Bytes per second over every span of about so many seconds."""
    rates = []
    for begin, (at, before) in enumerate(reported):
        later = next((one for one in reported[begin:] if one[0] - at >= seconds), None)
        if later is not None:
            rates.append((later[1] - before) / (later[0] - at))
    return rates


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_what_is_delivered_over_a_minute_is_what_was_asked_for(
    approved: Callable[..., Plan], topics: Topics, ledger: Ledger, gateway: ClusterGateway
) -> None:
    topic = topics.create([[1 + at % 2] for at in range(8)])
    topics.fill(topic, 1200, size_bytes=100_000)  # two minutes at the rate asked for
    size = 120_000_000
    plan = approved(*(move(topic, at, (1 + at % 2,), (3,), size) for at in range(8)))
    policy = Policy(ASKED, poll_interval_s=POLL_S, reaction_s=POLL_S, metadata_grace_s=2)
    try:
        set_up_throttle(plan, ledger, gateway, first_rate(ASKED), ASKED)
        wait_until(lambda: advance(plan, ledger, gateway, policy).finished, "the end", 500, POLL_S)
    finally:
        clear_throttle(plan.plan_id, ledger, gateway)
    flows = [sample for sample, _ in ledger.flows(plan.plan_id)]
    reported = [one for one in received(flows, 3) if one[1] < 0.97 * 8 * size]
    changes = [(str(c.reason), c.rate_bytes_per_s) for c in ledger.rate_changes(plan.plan_id)]
    minutes = [rate / ASKED for rate in spans(reported, 60)]
    assert max(spans(reported, 30)) < 1.1 * ASKED, changes
    assert minutes[0] == pytest.approx(1, abs=0.1), (minutes, changes)
    assert minutes[-1] == pytest.approx(1, abs=0.05), (minutes, changes)


def test_a_requested_rate_is_set_on_the_cluster_after_one_step(
    approved: Callable[..., Plan],
    throttled: Callable[..., None],
    topics: Topics,
    ledger: Ledger,
    gateway: ClusterGateway,
) -> None:
    topic = topics.create([[1], [1]])
    topics.fill(topic, 100, size_bytes=100_000)
    plan = approved(*(move(topic, at, (1,), (3,), 10_000_000) for at in (0, 1)))
    throttled(plan, 100_000)
    policy = replace(Policy(100_000), metadata_grace_s=2)
    advance(plan, ledger, gateway, policy)
    ledger.request_rate(plan.plan_id, 30_000_000, "ann")
    advance(plan, ledger, gateway, policy)
    (set_up, changed) = ledger.rate_changes(plan.plan_id)
    assert (set_up.reason, changed.reason) == (RateReason.SET_UP, RateReason.REQUESTED)
    assert changed.target_bytes_per_s == 30_000_000
    wait_until(
        lambda: throttles_of(gateway, [])["broker "].get(FOLLOWER_RATE) == "30000000",
        "the rate that was asked for",
    )
    wait_until(lambda: advance(plan, ledger, gateway, policy).finished is not None, "the end", 240)
