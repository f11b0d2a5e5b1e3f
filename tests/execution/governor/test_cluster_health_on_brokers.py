"""Other partitions come first: a follower outside the plan falls behind while the plan copies."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from local.workload import Workload
from rehome.cluster.interface.errors import ClusterError
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerError, ReplicaId
from rehome.domain.plan.plan import Plan
from rehome.domain.run.flows import RateChange, RateReason
from rehome.domain.run.run_policy import Policy
from rehome.execution.actions import SetRate
from rehome.execution.admission.backlog import Backlog
from rehome.execution.advance import advance
from rehome.execution.control.cancel import abort
from rehome.execution.decide import decide, needs_worker
from rehome.execution.governor.cluster_health import RISING_READINGS, bystanders
from rehome.execution.governor.control_loop import CALM_S, first_rate
from rehome.execution.poll import Poll, poll
from rehome.execution.throttle.keys import FOLLOWER_RATE, own_value
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from tests.conftest import LATE_DEAD, Topics, impatient_gateway
from tests.dags.clusters import no_throttles, throttles_become
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.driven import state_of
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import move
from tests.session.needs import Need, needs

pytestmark = pytest.mark.slow

ASKED = 400_000
POLICY = Policy(ASKED, metadata_grace_s=2)
SIZE = 30_000_000
OTHER_FOLLOWER = 4
"""A follower of another client's partition: no broker of the plan."""
SLOW_FOLLOWER = 5
"""Of a partition whose follower falls behind, yet stays in the ISR."""
OUT_OF_ISR_BEFORE_DEAD = {"replica.lag.time.max.ms": "3000"}
SLOW_TO_FETCH = {"replica.fetch.min.bytes": "500000", "replica.fetch.wait.max.ms": "10000"}
"""A follower waits for so much, or so long, and stays in the ISR for 30 s."""
BATCH = 300
"""Small messages written before each poll: all of them are much less than what is waited for."""


@dataclass(frozen=True)
class Run:
    """A plan that copies to broker 3 from broker 1 and another, and a topic outside the plan."""

    plan: Plan
    ledger: Ledger
    cluster: LocalCluster
    gateway: OwnGateway
    topics: Topics
    clock: SetClock
    others: str

    def stepped(self) -> RateChange:
        """What trigger and worker do in turn; returns the newest change of the rate."""
        plan, ledger, gateway, clock = self.plan, self.ledger, self.gateway, self.clock
        others, backlog = bystanders(plan, gateway.describe_topics()), Backlog()
        polled = poll(plan, ledger, gateway, POLICY, backlog, clock, others)
        assert polled is not None
        seen = polled.observation
        if needs_worker(decide(plan, polled.view, seen, seen.taken_at, POLICY, backlog)):
            assert advance(plan, ledger, gateway, POLICY, clock).finished is None
        return ledger.rate_changes(plan.plan_id)[-1]

    def cut(self) -> RateChange | None:
        """One step; the newest change where it is others' strain that has caused it.

        A poll gets no answer if it asks a broker that is paused a moment later. The trigger, too,
        then waits for its next poll.
        """
        with suppress(ClusterError):
            change = self.stepped()
            return change if change.reason is RateReason.STRAIN else None
        return None

    def asked_by_strain(self) -> SetRate | None:
        """What the trigger sees to be due to strain; nothing is changed."""
        polled: Poll | None = None
        with suppress(ClusterError):  # as in `cut`
            others = bystanders(self.plan, self.gateway.describe_topics())
            args = (self.plan, self.ledger, self.gateway, POLICY, Backlog(), self.clock, others)
            polled = poll(*args)
        if polled is None:
            return None
        rates = [action for action in polled.actions if isinstance(action, SetRate)]
        return next((rate for rate in rates if rate.reason is RateReason.STRAIN), None)

    def knows_what_is_usual(self) -> bool:
        """Enough readings, the newest with all replicas in the ISR: on a busy machine a new topic's
        followers may be out of it at first.
        """
        self.stepped()
        flows = self.ledger.flows(self.plan.plan_id)
        readings = [flow.strain for flow, _ in flows if flow.strain is not None]
        return len(readings) >= RISING_READINGS and readings[-1].outside_isr == 0

    def comes_back(self, calm_s: float) -> None:
        """From half of the rate to all of it, step by step, each of which has its time.

        :param calm_s: by how much the clock is put forward at each poll; 0 = it is waited for.
        """

        def back() -> bool:
            self.clock.pass_s(calm_s)
            return self.stepped().target_bytes_per_s == ASKED

        wait_until(back, "the rate that was asked for", 500, 0.5)
        changes = self.ledger.rate_changes(self.plan.plan_id)
        for before, after in pairwise(changes):
            change = after.target_bytes_per_s - before.target_bytes_per_s
            if after.reason is RateReason.RECOVERY:
                # Whoever has suffered twice is cut from another step: the last one is shorter.
                assert change == min(ASKED // 10, ASKED - before.target_bytes_per_s), changes
                assert after.at - before.at >= timedelta(seconds=CALM_S), changes
            elif after.reason is not RateReason.STRAIN:
                assert change == 0, changes


@pytest.fixture(scope="module")
@needs(Need.BROKERS)
def cluster() -> Iterator[LocalCluster]:
    """Brokers 1 and 2 soon take a follower out of the ISR; one broker is a slow follower."""
    with (
        tempfile.TemporaryDirectory(prefix="rehome-test-") as directory,
        LocalCluster(
            Path(directory),
            brokers=5,
            controller_config=LATE_DEAD,
            node_config={
                1: OUT_OF_ISR_BEFORE_DEAD,
                2: OUT_OF_ISR_BEFORE_DEAD,
                SLOW_FOLLOWER: SLOW_TO_FETCH,
            },
        ) as running,
    ):
        yield running


@pytest.fixture
def running(
    cluster: LocalCluster,
    ledger: Ledger,
    approved: Callable[..., Plan],
    clock: SetClock,
) -> Callable[..., AbstractContextManager[Run]]:
    """Runs a plan until it is known how others are, and takes its throttle back."""

    @contextmanager
    def run(others: Sequence[int], *, source: int = 2, own: bool = False) -> Iterator[Run]:
        with impatient_gateway(cluster) as gateway, Topics(cluster) as topics:
            mine, theirs = topics.create([[1], [1], [1], [source]]), topics.create([others])
            topics.fill(mine, SIZE // 100_000, size_bytes=100_000)
            clean = no_throttles(gateway, [mine, theirs])
            moves = [move(mine, at, (1 if at < 3 else source,), (3,), SIZE) for at in range(4)]
            if own:
                topics.fill(theirs, SIZE // 100_000, size_bytes=100_000)
                moves.append(move(theirs, 0, tuple(others), (2, *others[1:])))
            plan = approved(*moves, cluster_id=cluster.cluster_id)
            set_up_throttle(plan, ledger, gateway, first_rate(ASKED), ASKED)
            advance(plan, ledger, gateway, POLICY, clock)
            begun = Run(plan, ledger, cluster, gateway, topics, clock, theirs)
            try:
                wait_until(begun.knows_what_is_usual, "it to be known how others are", 240)
                yield begun
            finally:  # the next test uses the same brokers
                abort(plan.plan_id, ledger, gateway, "the test is over")
                assert clear_throttle(plan.plan_id, ledger, gateway).owed == ()
                throttles_become(gateway, [mine, theirs], clean)

    return run


in_time_and_at_once = pytest.mark.parametrize(
    "calm_s", [CALM_S, pytest.param(0, marks=[pytest.mark.long, pytest.mark.timeout(1800)])]
)


@in_time_and_at_once
def test_a_follower_that_leaves_the_isr_halves_the_rate_and_calm_brings_it_back(
    calm_s: float, running: Callable[..., AbstractContextManager[Run]]
) -> None:
    with running([1, 3, OTHER_FOLLOWER]) as run:
        with Workload(run.cluster.client_settings(), {run.others: 1}, consume=False):
            run.cluster.pause(OTHER_FOLLOWER)
            try:
                cut = wait_until(run.cut, "the cut", 240)
            finally:
                run.cluster.resume(OTHER_FOLLOWER)
        assert cut is not None
        assert cut.cause.endswith("left the ISR")
        assert_halved(cut, run)
        wait_until(lambda: whole(run), "the follower to catch up", 240)
        run.comes_back(calm_s)


@pytest.mark.long
def test_a_follower_of_a_partition_that_the_plan_moves_itself_asks_for_half_the_rate_too(
    running: Callable[..., AbstractContextManager[Run]],
) -> None:
    """The paused broker is one of a move that is in flight: it gives no answer to any poll, and its
    own rate cannot be read until it is back.
    """
    with running([1, 3, OTHER_FOLLOWER], own=True) as run:
        with Workload(run.cluster.client_settings(), {run.others: 1}, consume=False):
            run.cluster.pause(OTHER_FOLLOWER)
            try:
                asked = wait_until(run.asked_by_strain, "a cut to be due", 240)
            finally:
                run.cluster.resume(OTHER_FOLLOWER)
        assert asked is not None
        assert asked.cause == "1 replica of watched partitions has left the ISR"
        assert asked.target_bytes_per_s == ASKED // 2
        newest, _ = run.ledger.flows(run.plan.plan_id)[-1]
        assert newest.silent == (OTHER_FOLLOWER,)


@in_time_and_at_once
def test_an_in_sync_follower_that_falls_behind_halves_the_rate_until_it_has_caught_up(
    calm_s: float, running: Callable[..., AbstractContextManager[Run]]
) -> None:
    with running([3, SLOW_FOLLOWER], source=SLOW_FOLLOWER) as run:

        def cut_while_a_producer_writes() -> RateChange | None:
            run.topics.fill(run.others, BATCH, size_bytes=10, acks="1")
            return run.cut()

        cut = wait_until(cut_while_a_producer_writes, "the cut", 240, 0)
        assert cut is not None
        assert cut.cause.startswith("in-sync followers of watched partitions fall behind")
        assert_halved(cut, run)
        reported = [flow.strain for flow, _ in run.ledger.flows(run.plan.plan_id) if flow.strain]
        assert {strain.outside_isr for strain in reported} == {0}
        run.clock.pass_s(2 * CALM_S)
        assert run.stepped() == cut or lacking(run) == 0, "raised before it had caught up"
        wait_until(lambda: lacking(run) == 0, "the follower to catch up", 240)
        run.comes_back(calm_s)


def assert_halved(cut: RateChange, run: Run) -> None:
    assert (cut.target_bytes_per_s, cut.limit_bytes_per_s) == (ASKED // 2, ASKED)
    rate, every_broker = str(cut.rate_bytes_per_s), ConfigResource.cluster_default()

    def is_set() -> bool:
        configs = run.gateway.describe_configs([every_broker], [FOLLOWER_RATE])[every_broker]
        if isinstance(configs, BrokerError):  # the broker that was paused is not back yet
            return False
        return own_value(every_broker, configs.get(FOLLOWER_RATE)) == rate

    wait_until(is_set, "the lower rate on the brokers", 240)


def whole(run: Run) -> bool:
    state = state_of(run.gateway, run.others)
    return state.isr == set(state.replicas)


def lacking(run: Run) -> int:
    """Messages between the ends of the two replicas."""
    replicas = [ReplicaId(run.others, 0, broker) for broker in (3, SLOW_FOLLOWER)]
    ends = run.gateway.log_end_offsets(replicas).value
    leader, follower = (ends[replica] for replica in replicas)
    assert isinstance(leader, int)
    assert isinstance(follower, int)
    return leader - follower
