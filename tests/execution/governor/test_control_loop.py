"""The governor: brokers deliver the target, other partitions come first, each step has a cause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rehome.domain.run.flows import (
    FLOWS_VIEWED,
    BrokerFlow,
    FlowSample,
    RateChange,
    RateReason,
    Strain,
    complete_samples,
)
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import PlanState
from rehome.execution.actions import SetRate
from rehome.execution.governor.cluster_health import FallingBehind, LeftIsr, newest_harm
from rehome.execution.governor.control_loop import first_rate, govern
from rehome.execution.governor.measured_rate import inflow_bytes_per_s, measure_delivered

T0 = datetime(2030, 1, 1, tzinfo=UTC)
RATE = 50_000_000
POLICY = Policy(RATE, reaction_s=15)
PLENTY = 10**12
POLL_S = 5


def after(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def samples(
    rates: Iterable[float], left: int = PLENTY, begin_s: int = 0, grown: int = 0
) -> tuple[FlowSample, ...]:
    """One sample for each rate that broker 3 has received at, five seconds apart."""
    return tuple(
        FlowSample(
            after(begin_s + POLL_S * at),
            after(begin_s + POLL_S * (at + 1)),
            (BrokerFlow("in", 3, round(rate * POLL_S), left, 4, grown),),
        )
        for at, rate in enumerate(rates)
    )


def strained(flows: tuple[FlowSample, ...], *reported: tuple[int, int]) -> tuple[FlowSample, ...]:
    """The same, where others are as given: replicas outside the ISR, messages behind."""
    return tuple(
        replace(flow, strain=Strain(*one)) for flow, one in zip(flows, reported, strict=True)
    )


def set_up(nominal: int = RATE, target: int = RATE) -> RateChange:
    return RateChange(T0, nominal, target, target, RateReason.SET_UP, "set up")


def view(flows: tuple[FlowSample, ...], *rates: RateChange, asked: int | None = None) -> LedgerView:
    rates = rates or (set_up(),)
    return LedgerView(
        PlanState.RUNNING,
        {},
        rate_bytes_per_s=rates[-1].rate_bytes_per_s,
        requested_rate_bytes_per_s=asked,
        rates=rates,
        flows=flows,
    )


def governed(known: LedgerView, policy: Policy = POLICY) -> SetRate | None:
    return govern(known, known.flows[-1].at if known.flows else T0, policy)


def test_delivery_below_the_target_raises_the_rate_by_the_certain_part_and_names_the_figures() -> (
    None
):
    change = governed(view(samples([0.8 * RATE] * 8)))
    assert change is not None
    assert change.reason is RateReason.RAISED
    assert 1.1 * RATE < change.rate_bytes_per_s <= round(1.15 * RATE)
    assert change.target_bytes_per_s == RATE
    assert change.delivered_bytes_per_s == 0.8 * RATE
    assert "broker 3 receives 40000000 B/s, 80 % of the rate" in change.cause


def test_delivery_above_the_target_lowers_the_rate() -> None:
    change = governed(view(samples([1.2 * RATE] * 8)))
    assert change is not None
    assert change.reason is RateReason.LOWERED
    assert RATE / 1.2 <= change.rate_bytes_per_s < RATE


@pytest.mark.parametrize(
    "flows",
    [
        samples([0.99 * RATE] * 24),
        samples([0.8 * RATE] * 8, left=RATE // 2),  # it had nothing left to copy
        samples([0.3 * RATE] * 8),  # no throttle delivers so little
        (),
    ],
)
def test_the_rate_stays_when_delivery_is_right_or_not_known_or_limited_otherwise(
    flows: tuple[FlowSample, ...],
) -> None:
    assert governed(view(flows)) is None


BEGUN = set_up(first_rate(RATE))


def begun(part: float, polls: int, copies: int = 4) -> LedgerView:
    """A plan's first polls, where brokers deliver this part of the first nominal rate."""
    flows = samples([part * BEGUN.rate_bytes_per_s] * polls)
    return view(
        tuple(
            replace(sample, flows=tuple(replace(flow, copies=copies) for flow in sample.flows))
            for sample in flows
        ),
        BEGUN,
    )


def test_a_first_rate_that_delivers_too_little_is_corrected_within_a_quarter_of_a_minute() -> None:
    assert governed(begun(0.82, polls=2)) is None  # of which the first does not count
    change = governed(begun(0.82, polls=3))
    assert change is not None
    assert (change.reason, change.target_bytes_per_s) == (RateReason.RAISED, RATE)
    assert 0.95 * RATE < 0.82 * change.rate_bytes_per_s < RATE


def test_the_fewer_fetches_the_first_samples_have_the_less_they_count() -> None:
    clear, blurred = (governed(begun(0.8, 3, copies)) for copies in (4, 16))
    assert clear is not None
    assert blurred is not None
    assert BEGUN.rate_bytes_per_s < blurred.rate_bytes_per_s < clear.rate_bytes_per_s
    assert governed(begun(0.8, 3, copies=100)) is None


def test_a_correction_of_the_first_rate_is_small_enough_to_be_harmless_when_wrong() -> None:
    change = governed(begun(0.65, polls=3))
    assert change is not None
    assert 0.9 * change.rate_bytes_per_s < 1.1 * RATE


@pytest.mark.parametrize("part", [0.55, 0.87, 0.91])
def test_the_first_rate_stays_when_delivery_is_as_expected_or_limited_otherwise(
    part: float,
) -> None:
    assert governed(begun(part, polls=3)) is None


def test_a_first_rate_that_delivers_too_much_is_corrected_too() -> None:
    change = governed(begun(0.98, polls=3))
    assert change is not None
    assert change.reason is RateReason.LOWERED
    assert RATE <= 0.98 * change.rate_bytes_per_s < 1.05 * RATE


def test_later_samples_do_not_change_the_judgement_of_the_first_rate() -> None:
    flows = samples([0.82 * BEGUN.rate_bytes_per_s] * 3)
    later = samples([0.3 * BEGUN.rate_bytes_per_s], begin_s=15)
    assert governed(view((*flows, *later), BEGUN)) == governed(view(flows, BEGUN))


def test_only_the_first_rate_is_judged_so_soon() -> None:
    asked = RateChange(T0, RATE, RATE, RATE, RateReason.REQUESTED, "requested")
    assert governed(view(samples([0.8 * RATE] * 4), asked)) is None


def test_only_what_comes_after_a_missing_poll_counts() -> None:
    flows, asked = samples([0.8 * RATE] * 12), replace(set_up(), reason=RateReason.REQUESTED)
    assert governed(view(flows, asked)) is not None
    assert governed(view((*flows[:8], *flows[9:]), asked)) is None


def test_polls_that_leave_a_broker_out_count_as_missing_and_so_do_those_after_them() -> None:
    """Else one that only waits for the broker left out would pass for the best of all."""
    flows, asked = samples([0.8 * RATE] * 14), replace(set_up(), reason=RateReason.REQUESTED)
    assert governed(view(flows, asked)) is not None
    silent = (*flows[:8], replace(flows[8], flows=(), silent=(5,)), *flows[9:])
    assert governed(view(silent, asked)) is None
    assert complete_samples(silent) == (*flows[:8], *flows[10:])


def test_a_raise_that_brings_nothing_is_taken_back_and_not_tried_again() -> None:
    raised = RateChange(
        after(60), round(1.15 * RATE), RATE, RATE, RateReason.RAISED, "", 0.8 * RATE
    )
    flows = samples([0.8 * RATE] * 30)
    change = governed(view(flows, set_up(), raised))
    assert change is not None
    assert (change.reason, change.rate_bytes_per_s) == (RateReason.UNBOUND, RATE)
    back = RateChange(
        after(150), RATE, RATE, RATE, RateReason.UNBOUND, "", change.delivered_bytes_per_s
    )
    later = samples([0.8 * RATE] * 20, begin_s=150)
    assert governed(view((*flows, *later), set_up(), raised, back)) is None


def test_the_silence_after_a_cut_does_not_change_the_measured_rate() -> None:
    cut = RateChange(after(60), RATE // 2, RATE // 2, RATE // 2, RateReason.REQUESTED, "requested")
    before = samples([0.9 * RATE] * 12)
    silent = samples([0, 0, RATE, 0.45 * RATE, *[0.45 * RATE] * 4], begin_s=60)
    found = measure_delivered((*before, *silent), (set_up(), cut))
    assert found is not None
    assert found.part == pytest.approx(0.9)
    assert found.bytes_per_s == pytest.approx(0.45 * RATE)
    assert found.seconds == 60  # 45 before the cut, 15 after its burst


def test_a_request_comes_first_and_keeps_what_is_known_of_the_brokers() -> None:
    known = view(samples([0.8 * RATE] * 8), set_up(first_rate(RATE)), asked=2 * RATE)
    assert governed(known) == SetRate(
        2 * first_rate(RATE), "requested", RateReason.REQUESTED, 2 * RATE, 2 * RATE
    )
    passed_on = RateChange(T0, 2 * RATE, 2 * RATE, 2 * RATE, RateReason.REQUESTED, "requested")
    assert governed(view((), passed_on, asked=2 * RATE)) is None


# -- Others come first -----------------------------------------------------------------------


def test_replicas_that_leave_the_isr_halve_the_target_down_to_throttle_min() -> None:
    flows = strained(samples([RATE] * 3), (1, 0), (1, 0), (3, 0))
    change = governed(view(flows))
    assert change is not None
    assert (change.reason, change.target_bytes_per_s) == (RateReason.STRAIN, RATE // 2)
    assert change.rate_bytes_per_s == RATE // 2
    assert change.limit_bytes_per_s == RATE
    assert "2 replicas of watched partitions have left the ISR" in change.cause
    bounded = governed(view(flows), replace(POLICY, min_rate_bytes_per_s=40_000_000))
    assert bounded is not None
    assert bounded.target_bytes_per_s == 40_000_000


def test_what_watched_partitions_suffer_is_a_fact_with_its_figures() -> None:
    left = strained(samples([RATE] * 3), (1, 0), (1, 0), (3, 0))
    assert newest_harm(left) == LeftIsr(replicas=2)
    lags = [(0, lag) for lag in (10, 12, 9, 11, 400, 900)]
    behind = newest_harm(strained(samples([RATE] * 6), *lags))
    assert behind == FallingBehind(messages=900, usual_messages=10.5)
    change = governed(view(strained(samples([RATE] * 6), *lags)))
    assert change is not None
    assert change.cause == (
        "in-sync followers of watched partitions fall behind: 900 messages, usually 10"
    )


def test_a_broker_that_gives_no_answer_does_not_hide_who_has_left_the_isr() -> None:
    silent = [replace(sample, flows=(), silent=(5,)) for sample in samples([RATE] * 2, begin_s=15)]
    seen = strained((*samples([RATE] * 3), *silent), (0, 0), (0, 0), (0, 0), (0, 0), (1, 0))
    change = governed(view(seen))
    assert change is not None
    assert change.reason is RateReason.STRAIN


def test_how_far_followers_are_behind_is_not_known_while_a_broker_gives_no_answer() -> None:
    """The leader may be the one: what others lack of it would look like nothing, or like a lot."""
    lags = [(0, lag) for lag in (10, 12, 9, 11, 400, 900)]
    seen = strained(samples([RATE] * 6), *lags)
    assert newest_harm(seen) is not None
    assert newest_harm((*seen[:5], replace(seen[5], flows=(), silent=(5,)))) is None
    usual = (replace(sample, flows=(), silent=(5,)) for sample in seen[:4])
    assert newest_harm((*usual, *seen[4:])) is None, "nothing is known to be usual"


def test_the_target_does_not_grow_while_a_broker_gives_no_answer() -> None:
    cut = RateChange(after(15), RATE // 2, RATE // 2, RATE, RateReason.STRAIN, "")
    well = strained(samples([RATE // 2] * 9), *[(0, 0)] * 9)
    assert governed(view(well, set_up(), cut)) is not None
    silent = (*well[:8], replace(well[8], flows=(), silent=(5,)))
    assert governed(view(silent, set_up(), cut)) is None


def test_what_stays_out_of_the_isr_while_the_target_is_at_its_least_becomes_usual() -> None:
    least = RateChange(after(60), RATE // 10, RATE // 10, RATE, RateReason.STRAIN, "")
    flows = strained(samples([RATE // 10] * (FLOWS_VIEWED + 1)), (0, 0), *[(1, 0)] * FLOWS_VIEWED)
    assert governed(view(flows, least)) is None
    change = governed(view(flows[1:], least))
    assert change is not None
    assert change.reason is RateReason.RECOVERY


def test_what_the_trigger_saw_holds_for_the_worker_which_does_not_watch_others() -> None:
    seen = strained(samples([RATE] * 3), (1, 0), (1, 0), (3, 0))
    change = governed(view((*seen, *samples([RATE] * 4, begin_s=15))))
    assert change is not None
    assert change.reason is RateReason.STRAIN
    a_window_later = view((*seen, *samples([RATE], begin_s=600)))
    assert governed(a_window_later) is None


def test_the_target_stays_above_the_growth_of_what_is_copied() -> None:
    growing = samples([RATE] * 3, grown=POLL_S * 30_000_000)
    assert inflow_bytes_per_s(growing) == 30_000_000
    change = governed(view(strained(growing, (0, 0), (0, 0), (1, 0))))
    assert change is not None
    assert change.target_bytes_per_s == 37_500_000


@pytest.mark.parametrize(
    ("lags", "suffers"),
    [
        ([10, 12, 9, 11, 400, 900], True),
        ([10, 12, 9, 11, 900, 400], False),  # catching up
        ([10, 12, 9, 11, 20, 30], False),  # as usual
        ([5000, 5500, 5200, 5100, 5300, 5600], False),
        ([400, 900], False),  # nothing is known to be usual
    ],
)
def test_followers_that_fall_further_behind_are_distinguished_from_the_usual_to_and_fro(
    lags: list[int], suffers: bool
) -> None:
    flows = strained(samples([RATE] * len(lags)), *((0, lag) for lag in lags))
    assert (newest_harm(flows) is not None) is suffers


def test_a_cut_is_given_time_and_then_the_target_grows_step_by_step() -> None:
    half = RATE // 2
    cut = RateChange(after(15), half, half, RATE, RateReason.STRAIN, "")
    hurt = strained(samples([RATE] * 5), (0, 0), (0, 0), (1, 0), (1, 0), (1, 0))
    assert governed(view(hurt, set_up(), cut)) is None
    well = strained(samples([half] * 9), *[(0, 0)] * 9)
    change = governed(view(well, set_up(), cut))
    assert change is not None
    assert (change.reason, change.target_bytes_per_s) == (RateReason.RECOVERY, half + RATE // 10)
    assert change.limit_bytes_per_s == RATE


@pytest.mark.parametrize(
    ("reported", "grows"),
    [
        ([(0, 9)] * 9, True),
        ([(1, 9)] * 4 + [(0, 9)] * 5, False),  # in the ISR again for 25 s
        ([(1, 9)] * 3 + [(0, 9)] * 6, True),
        ([(0, 700)] * 9, False),  # no further behind, and not caught up
    ],
)
def test_the_target_grows_when_others_have_been_well_for_as_long_as_the_cause_says(
    reported: list[tuple[int, int]], grows: bool
) -> None:
    cut = RateChange(after(60), RATE // 2, RATE // 2, RATE, RateReason.STRAIN, "")
    flows = strained(samples([RATE // 2] * 21, left=0), *[(0, 9)] * 12, *reported)
    change = governed(view(flows, set_up(), cut))
    assert (change is not None and change.reason is RateReason.RECOVERY) is grows


def test_the_target_never_grows_beyond_what_was_asked_for() -> None:
    almost = RateChange(T0, RATE - 1, RATE - 1, RATE, RateReason.RECOVERY, "")
    change = governed(view(samples([RATE] * 8), almost))
    assert change is not None
    assert change.target_bytes_per_s == RATE
    assert governed(view(samples([RATE] * 8))) is None
