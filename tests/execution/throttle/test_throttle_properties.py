"""No throttle outlives its plan: set-up, moves and clearing over a cluster in memory, with crashes.

The process dies before or after any of its writes to the cluster, and another one goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rehome.domain.configs import ConfigResource
from rehome.domain.plan.plan import Plan
from rehome.domain.run.flows import RateReason
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import advance
from rehome.execution.control.cancel import abort
from rehome.execution.throttle import clear as throttle_clearing
from rehome.execution.throttle import configs as throttle_configs
from rehome.execution.throttle.keys import FOLLOWER_RATE, LEADER_RATE, LISTS
from rehome.execution.throttle.ownership.marks import is_mark
from rehome.execution.throttle.rate_scope import DEFAULT_HONOURED_SINCE, METADATA_VERSION
from rehome.execution.throttle.set_up import clear_throttle, set_up_throttle
from rehome.ledger.store import Ledger
from tests.examples import few_and_many, property_of
from tests.execution.advance.test_advance_properties import BROKERS, MEMORY, plans, record
from tests.execution.simulated_cluster import Crash, SimulatedCluster
from tests.ledger.small_plans import make_plan, move

RATES = (LEADER_RATE, FOLLOWER_RATE)
T0 = datetime(2030, 1, 1, tzinfo=UTC)
POLICY = Policy(1000, max_moves_per_broker=1, metadata_grace_s=0)
ConfigKey = tuple[ConfigResource, str]
Configs = dict[ConfigKey, str]


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readings of a cluster in memory are true at once."""
    monkeypatch.setattr(throttle_configs, "SETTLE_S", 0)
    monkeypatch.setattr(throttle_configs, "VERIFY_POLL_S", 0)
    monkeypatch.setattr(throttle_clearing, "VERIFY_POLL_S", 0)


def foreign_configs() -> st.SearchStrategy[Configs]:
    """What another client has set before: lists, rates of brokers or of all of them."""
    topic, everyone = ConfigResource.topic("t"), ConfigResource.cluster_default()
    lists = st.sampled_from(["", "*", "0:9", "7:1,8:2"])
    rates = st.sampled_from(["123", "456789"])
    keys = {(topic, key): lists for key in LISTS} | {(everyone, key): rates for key in RATES}
    keys |= {(ConfigResource.broker(1), key): rates for key in RATES}
    return st.fixed_dictionaries({}, optional=keys)


class Run:
    """A plan's processes, one after the other, on one cluster and one ledger."""

    def __init__(
        self,
        plan: Plan,
        cluster: SimulatedCluster,
        url: str,
        rate: int = 1000,
        copied_per_poll: int = 1,
    ) -> None:
        self._plan, self._cluster, self._url = plan, cluster, url
        self._rate, self._copied = rate, copied_per_poll
        self._now = T0

    @property
    def _port(self) -> OwnCluster:
        return cast(OwnCluster, self._cluster)

    def to_its_end(self, crashes: list[int]) -> PlanState:
        """Every process begins from the start; its task that had succeeded is not repeated."""
        tasks: Iterator[Callable[[Ledger], PlanState | None]] = iter(
            [self._set_up, self._drive, self._clear]
        )
        task, todo, end = next(tasks), list(crashes), None
        while True:
            self._cluster.crash_at = self._cluster.calls + todo.pop(0) if todo else None
            try:
                with Ledger.open(self._url, clock=lambda: self._now) as ledger:
                    while True:
                        end = task(ledger) or end
                        task = next(tasks)
            except Crash:
                continue
            except StopIteration:
                assert end is not None
                return end

    def _set_up(self, ledger: Ledger) -> None:
        set_up_throttle(self._plan, ledger, self._port, self._rate)

    def _drive(self, ledger: Ledger) -> PlanState:
        for _ in range(400):
            self._now += timedelta(seconds=5)
            done = advance(self._plan, ledger, self._port, POLICY, lambda: self._now)
            if done.finished:
                return done.finished
            self._cluster.step(self._copied)
        raise AssertionError("the plan does not end")

    def _clear(self, ledger: Ledger) -> None:
        assert clear_throttle(self._plan.plan_id, ledger, self._port).owed == ()

    def given_up(self, polls: int) -> None:
        """A plan that is aborted after so many polls."""
        with Ledger.open(self._url, clock=lambda: self._now) as ledger:
            self._set_up(ledger)
            for _ in range(polls):
                self._now += timedelta(seconds=5)
                advance(self._plan, ledger, self._port, POLICY, lambda: self._now)
                self._cluster.step(1)
            abort(self._plan.plan_id, ledger, self._port, "enough")
            self._clear(ledger)


def effective(configs: Mapping[ConfigKey, str]) -> dict[ConfigKey, str]:
    """Without lists that are empty: to brokers they are the same as none."""
    return {where: value for where, value in configs.items() if value}


def cluster_of(plan: Plan, by_default: bool, foreign: Configs) -> SimulatedCluster:
    features = {METADATA_VERSION: DEFAULT_HONOURED_SINCE} if by_default else {}
    cluster = SimulatedCluster(BROKERS, plan.moves, features)
    cluster.configs.update(foreign)
    return cluster


@pytest.mark.slow
@few_and_many(6, 300)
def test_after_any_crash_throttles_are_as_before_once_the_plan_is_over(examples: int) -> None:
    @property_of(examples)
    @given(plans(), st.booleans(), foreign_configs(), st.lists(st.integers(1, 6), max_size=5))
    def holds(plan: Plan, by_default: bool, foreign: Configs, crashes: list[int]) -> None:
        with TemporaryDirectory(dir=MEMORY) as directory:
            url = f"sqlite:///{Path(directory)}/ledger.db"
            record(plan, url)
            cluster = cluster_of(plan, by_default, foreign)
            assert Run(plan, cluster, url).to_its_end(crashes) is PlanState.DONE
            assert cluster.replicas == {m.partition: m.target for m in plan.moves}
            assert effective(cluster.configs) == effective(foreign)

    holds()


@pytest.mark.slow
@few_and_many(6, 300)
def test_a_plan_that_is_given_up_leaves_no_throttle_either(examples: int) -> None:
    @property_of(examples)
    @given(plans(), st.booleans(), foreign_configs(), st.integers(0, 3))
    def holds(plan: Plan, by_default: bool, foreign: Configs, polls: int) -> None:
        with TemporaryDirectory(dir=MEMORY) as directory:
            url = f"sqlite:///{Path(directory)}/ledger.db"
            record(plan, url)
            cluster = cluster_of(plan, by_default, foreign)
            Run(plan, cluster, url).given_up(polls)
            assert cluster.targets == {}
            assert effective(cluster.configs) == effective(foreign)

    holds()


@pytest.mark.slow
@few_and_many(1, 100)
def test_no_rate_of_the_governors_outlives_the_plan_whatever_crashes(examples: int) -> None:
    rate = 50_000_000
    delivered = 4 * rate  # four fifths of it in the five seconds between two polls
    plan = make_plan("p", move("t", 0, (1, 2), (3, 2), 40 * delivered), cluster_id="sim")

    @property_of(examples)
    @given(st.booleans(), foreign_configs(), st.lists(st.integers(1, 12), max_size=6))
    @example(True, {}, [3, 5, 7, 2])
    def holds(by_default: bool, foreign: Configs, crashes: list[int]) -> None:
        with TemporaryDirectory(dir=MEMORY) as directory:
            url = f"sqlite:///{Path(directory)}/ledger.db"
            record(plan, url)
            cluster = cluster_of(plan, by_default, foreign)
            run = Run(plan, cluster, url, rate, delivered)
            assert run.to_its_end(crashes) is PlanState.DONE
            with Ledger.open(url) as ledger:
                changes = ledger.rate_changes(plan.plan_id)
            assert RateReason.RAISED in {change.reason for change in changes}
            assert effective(cluster.configs) == effective(foreign)

    holds()


def test_a_throttle_stays_while_the_plan_runs(tmp_path: Path) -> None:
    plan = make_plan("p", move("t", 0, (1, 2), (3, 2), 5), cluster_id="sim")
    url = f"sqlite:///{tmp_path}/ledger.db"
    record(plan, url)
    cluster = cluster_of(plan, True, {})
    with Ledger.open(url) as ledger:
        set_up_throttle(plan, ledger, cast(OwnCluster, cluster), 1000)
    assert {key for _, key in cluster.configs if not is_mark(key)} == {*LISTS, *RATES}
