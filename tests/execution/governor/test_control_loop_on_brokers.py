"""What real brokers deliver under a governed throttle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from local.process.waiting import wait_until
from rehome.domain.broker_rates import BrokerRates
from rehome.domain.clock import utc_now
from rehome.domain.plan.plan import Plan
from rehome.domain.run.flows import QUOTA_WINDOW_S, FlowSample, RateReason
from rehome.domain.run.run_policy import Policy
from rehome.execution.advance import advance
from rehome.execution.governor.control_loop import FIRST_PART, first_rate, first_rates
from rehome.execution.throttle.keys import FOLLOWER_RATE, LEADER_RATE
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from tests.conftest import Topics
from tests.dags.clusters import throttles_of
from tests.execution.access.own_gateway import OwnGateway
from tests.ledger.small_plans import move

ASKED, OWN = 8_000_000, 600_000
POLL_S = 3.0


def received(
    flows: list[FlowSample], broker: int, direction: str = "in"
) -> list[tuple[float, int]]:
    """Seconds since the first poll, and bytes that the broker had received by then."""
    begin, so_far = flows[0].since, 0
    reported = [(0.0, 0)]
    for sample in flows:
        so_far += sum(
            flow.copied_bytes
            for flow in sample.flows
            if (flow.direction, flow.broker) == (direction, broker)
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
    approved: Callable[..., Plan], topics: Topics, ledger: Ledger, gateway: OwnGateway
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


@pytest.mark.timeout(400)
def test_brokers_with_a_throttle_of_their_own_send_and_receive_what_it_lets_through(
    approved: Callable[..., Plan],
    throttled: Callable[..., None],
    topics: Topics,
    ledger: Ledger,
    gateway: OwnGateway,
) -> None:
    """Broker 4 receives, and broker 2 sends, a tenth of what others may; then 4 gets more."""
    topic = topics.create([[1], [2], [1]])
    topics.fill(topic, 750, size_bytes=100_000)  # 25 MB each: 40 seconds at their own rates
    targets = ((1,), (4,)), ((2,), (3,)), ((1,), (3,))
    plan = approved(*(move(topic, at, *way, 25_000_000) for at, way in enumerate(targets)))
    policy = Policy(ASKED, poll_interval_s=POLL_S, reaction_s=POLL_S, metadata_grace_s=2)
    own = BrokerRates({2: OWN}, {4: OWN})
    before = throttles_of(gateway, [topic])
    throttled(plan, first_rate(ASKED), target_bytes_per_s=ASKED, own=first_rates(own, utc_now()))
    found = throttles_of(gateway, [])
    assert found["broker 4"] == {FOLLOWER_RATE: str(round(OWN / FIRST_PART))}
    assert found["broker 2"] == {LEADER_RATE: str(round(OWN / FIRST_PART))}
    began = ledger.events(plan.plan_id)[-1].at

    def for_half_a_minute() -> bool:
        assert advance(plan, ledger, gateway, policy).finished is None
        flows = ledger.view(plan.plan_id).flows
        return bool(flows) and (flows[-1].at - began).total_seconds() > 32

    wait_until(for_half_a_minute, "half a minute", 120, POLL_S)
    flows = [sample for sample, _ in ledger.flows(plan.plan_id)]
    for direction, broker in (("in", 4), ("out", 2)):
        measured = spans(received(flows, broker, direction), 20)
        with_burst = OWN * (20 + QUOTA_WINDOW_S) / 20  # what was unused of the window before
        assert max(measured) < with_burst, (direction, measured)
        assert max(measured) > 0.7 * OWN, (direction, measured)
    fast = [done for at, done in received(flows, 1, "out") if at < 16]
    assert fast[-1] > 24_000_000, "what goes from 1 to 3 has the plan's rate"
    ledger.request_rate(plan.plan_id, None, "ann", by_broker=BrokerRates({}, {4: ASKED}))
    advance(plan, ledger, gateway, policy)
    assert {each.key: each.limit_bytes_per_s for each in ledger.own_rates(plan.plan_id)} == {
        ("in", 4): ASKED
    }
    wait_until(lambda: advance(plan, ledger, gateway, policy).finished, "the end", 60, POLL_S)
    clear_throttle(plan.plan_id, ledger, gateway)
    wait_until(lambda: throttles_of(gateway, [topic]) == before, "nothing of ours to be left")


def test_a_requested_rate_is_set_on_the_cluster_after_one_step(
    approved: Callable[..., Plan],
    throttled: Callable[..., None],
    topics: Topics,
    ledger: Ledger,
    gateway: OwnGateway,
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
