"""The governor in a loop, over simulated brokers that keep their quotas in windows."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulation.cluster import BrokerDies, BrokerReturns, ModelledCluster
from benchmarks.simulation.quota import QuotaWindow, ThrottledCopies
from benchmarks.simulation.simulator import Asked, At, Simulation
from rehome.domain.run.flows import RateReason, Strain
from rehome.domain.run.states import PlanState
from rehome.execution.governor.control_loop import LEAST_EFFICIENCY
from tests.examples import few_and_many, property_of
from tests.execution.governor.test_control_loop import POLICY, RATE, T0, after
from tests.ledger.small_plans import make_plan, move


def test_a_broker_forgets_after_eleven_seconds_and_counts_from_its_oldest_sample() -> None:
    window = QuotaWindow()
    window.record(0, 1000)
    assert window.exceeds(0.5, 999)  # counts as a second at least
    assert window.exceeds(9.9, 100)
    assert not window.exceeds(10.1, 100)
    window.record(10.5, 1000)
    assert window.exceeds(10.9, 150)
    assert window.exceeds(11.0, 900)  # the first is forgotten, the second is young
    assert not window.exceeds(21.5, 1)


class Loop:
    """A plan of five minutes to one broker, under a governed throttle."""

    def __init__(self, poll_s: float, events: Iterable[At] = ()) -> None:
        moves = [move("t", at, (1 + at % 2,), (3,), RATE * 10) for at in range(30)]
        self.copies = ThrottledCopies((1, 2, 3), poll_s, link_bytes_per_s=10 * RATE)
        cluster = ModelledCluster((1, 2, 3), moves, copies=self.copies)
        self.copied = [(0.0, 0.0)]
        advance = self.copies.run

        def run(seconds: float) -> object:
            ended = advance(seconds)
            self.copied.append((self.copied[-1][0] + seconds, self.copies.copied[3]))
            return ended

        self.copies.run = run  # type: ignore[assignment]
        plan = make_plan("p", *moves)
        self.simulation = Simulation(plan, cluster, POLICY, T0, events, governed=True)

    def run(self) -> Loop:
        assert self.simulation.run(1000) is PlanState.DONE
        return self

    def by(self, seconds: float) -> float:
        return self.copied[bisect(self.copied, (seconds + 1e-3, float("inf"))) - 1][1]

    def over(self, seconds: int, begin: int, end: int) -> list[float]:
        """What was delivered in every span of so many seconds, over what was asked for."""
        spans = range(begin, end - seconds)
        return [(self.by(at + seconds) - self.by(at)) / seconds / RATE for at in spans]

    def reasons(self) -> list[RateReason]:
        return [change.reason for change in self.simulation.rates]


@pytest.mark.slow
@few_and_many(5, 150)
def test_what_is_delivered_comes_to_what_was_asked_for_and_never_far_above(examples: int) -> None:
    @property_of(examples)
    @given(st.floats(0.3, 0.8))  # brokers that deliver 0.98 to 0.93 of a rate
    def holds(poll_s: float) -> None:
        loop = Loop(poll_s).run()
        assert max(loop.over(30, 0, 290)) < 1.1
        settled = loop.over(60, 90, 270)
        assert sum(settled) / len(settled) == pytest.approx(1, abs=0.03)
        assert sum(abs(part - 1) <= 0.05 for part in settled) > 0.9 * len(settled)

    holds()


@pytest.mark.parametrize("poll_s", [1.0, 1.5])
def test_the_mean_is_right_for_brokers_that_check_seldom(
    poll_s: float,
) -> None:
    settled = Loop(poll_s).run().over(60, 90, 270)
    assert sum(settled) / len(settled) == pytest.approx(1, abs=0.04)


def test_without_the_governor_the_same_brokers_deliver_less() -> None:
    loop = Loop(1.5)
    loop.simulation.governed = False
    loop.simulation.cluster.set_rate(RATE)
    assert max(loop.run().over(60, 90, 270)) < 0.94


def test_neither_a_quiet_time_nor_the_burst_after_it_changes_the_rate() -> None:
    away = [At(100, BrokerDies(3)), At(130, BrokerReturns(3))]
    loop = Loop(0.5, away).run()
    assert max(loop.over(30, 0, 300)) < 1.1
    quiet = [c for c in loop.simulation.rates if after(100) < c.at < after(160)]
    assert quiet == []


@pytest.mark.slow
@pytest.mark.parametrize("poll_s", [0.5, 0.6, 0.7])
def test_a_cut_that_was_asked_for_is_met_after_its_silence(poll_s: float) -> None:
    loop = Loop(poll_s, [At(60, Asked(rate_bytes_per_s=RATE // 2))]).run()
    assert loop.over(60, 90, 300) == pytest.approx([0.5] * 150, rel=0.08)


def test_strain_of_other_partitions_halves_the_rate_and_it_recovers() -> None:
    others = [At(0, Strain(0, 0)), At(60, Strain(1, 0)), At(80, Strain(0, 0))]
    loop = Loop(0.5, others).run()
    assert RateReason.STRAIN in loop.reasons()
    assert max(loop.over(20, 75, 105)) < 0.65
    steps = [c for c in loop.simulation.rates if c.reason is RateReason.RECOVERY]
    assert len(steps) == 5
    assert steps[-1].target_bytes_per_s == RATE
    assert all(c.rate_bytes_per_s <= RATE / LEAST_EFFICIENCY for c in loop.simulation.rates)
