"""The pace of a plan: head, brokers and rows by the same polls, from rows of a ledger."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rehome.account.account import account_of
from rehome.account.evidence import EvidenceFollower, PaceFollower, read_evidence
from rehome.account.known import Known, NotKnown, Source, Unknown
from rehome.account.pace import PlanPace, pace_at_poll, pace_of
from rehome.account.words.figure_words import UNTIL_SILENT, WHY_UNKNOWN, rate_of, rate_of_partition
from rehome.domain.plan.plan import Plan
from rehome.domain.plan.summary import BrokerLoad
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.store import Ledger
from rehome.metrics.catalog import BROKER_BYTES_IN, BROKER_BYTES_OUT, BROKER_REASSIGNING, Label
from rehome.metrics.readings import Polled, broker_readings
from rehome.page.plan_view import broker_lines
from tests.account.plans_with_bytes import MOVES, admit, poll, settle
from tests.execution.observed import POLICY
from tests.ledger.set_clock import SetClock

A, B, C = MOVES


def pace(ledger: Ledger, clock: SetClock) -> PlanPace:
    found = account_of(read_evidence(ledger, "p1"), clock()).pace
    assert isinstance(found, Known)
    return found.value


def seconds(ledger: Ledger, found: PlanPace) -> float:
    """What the pace is measured over: a clock in tests goes on by itself, too."""
    (newest,) = ledger.samples("p1", newest=1)
    return (newest.sampled_at - found.since).total_seconds()


def test_head_brokers_and_rows_are_of_the_same_time_and_make_up_the_whole(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    admit(ledger, clock, A, B)
    poll(ledger, plan, clock, {A: (1000, 100), B: (500, 0)})
    poll(ledger, plan, clock, {A: (1000, 300), B: (500, 50)})
    poll(ledger, plan, clock, {A: (1000, 600), B: (500, 100)})
    found = pace(ledger, clock)
    span_s = seconds(ledger, found)
    assert 10 <= span_s < 15
    assert found.total == (500 + 100) / span_s
    assert found.partitions == {A.partition: 500 / span_s, B.partition: 100 / span_s}
    assert found.into == {3: found.total}
    assert found.out_of == {1: found.total}
    (sample,) = ledger.samples("p1", newest=1)
    assert sample.rate_bytes_per_s == found.total  # what metrics and the log say
    known = Known(found, clock(), Source.POLL)
    assert rate_of_partition(known, A.partition) == (500 / span_s, "")
    assert rate_of(known) == (found.total, "")


def test_metrics_and_page_say_the_same_of_each_broker_at_each_poll(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    polled, newest = Polled("c1", "p1", POLICY, 60, 1700, plan.brokers), PaceFollower(ledger, "p1")
    page = EvidenceFollower(ledger, "p1")
    loads = [BrokerLoad(broker, 0, 1, 0, 0, 0, 0, 1, 1) for broker in sorted(plan.brokers)]
    admit(ledger, clock, A, B)
    for copied in (100, 300, 600):
        poll(ledger, plan, clock, {A: (1000, copied), B: (500, copied // 2)})
        recent = newest.read()
        found = pace_at_poll(recent, newest.gains)
        sent = {
            (reading.metric, reading.labels[Label.BROKER]): reading.value
            for reading in broker_readings(polled, found, ledger.flying("p1"))
        }
        shown, _ = broker_lines(loads, {}, pace_of(page.read(), clock()), page.flying)
        assert [line.broker for line in shown] == sorted(plan.brokers)
        for line in shown:
            broker = str(line.broker)
            assert sent[BROKER_REASSIGNING, broker] == line.moves_in + line.moves_out
            assert sent.get((BROKER_BYTES_IN, broker)) == line.in_bytes_per_s
            assert sent.get((BROKER_BYTES_OUT, broker)) == line.out_bytes_per_s
    assert sent[BROKER_BYTES_IN, "3"] == sent[BROKER_BYTES_OUT, "1"] > 0
    assert sent[BROKER_REASSIGNING, "3"] == 2


def test_a_copy_that_has_ended_counts_for_what_it_received_meanwhile(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    admit(ledger, clock, A, B)
    poll(ledger, plan, clock, {A: (1000, 400)})
    poll(ledger, plan, clock, {A: (1000, 1000)})
    settle(ledger, MoveState.DONE, A)
    poll(ledger, plan, clock, {B: (500, 100)})
    found = pace(ledger, clock)
    span_s = seconds(ledger, found)
    assert found.total == found.into[3] == (600 + 100) / span_s
    assert found.partitions == {A.partition: 600 / span_s, B.partition: 100 / span_s}
    known = Known(found, clock(), Source.POLL)
    rows = [
        rate_of_partition(known, each.partition, in_flight=each is not A)[0] or 0 for each in MOVES
    ]
    assert sum(rows) == pytest.approx(found.total), "the rows make up the head"
    assert rate_of_partition(known, C.partition, in_flight=False)[0] is None


@pytest.mark.slow
def test_what_came_more_than_a_minute_ago_counts_no_more(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    admit(ledger, clock, A)
    for copied in (0, 900, *[900] * 12, 960):
        poll(ledger, plan, clock, {A: (1000, copied)})
    found = pace(ledger, clock)
    assert found.total == 60 / seconds(ledger, found)
    assert 50 < seconds(ledger, found) <= 60


def test_where_there_is_no_pace_the_reason_is_known(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    def why() -> NotKnown:
        found = pace_of(read_evidence(ledger, "p1"), clock())
        assert isinstance(found, Unknown)
        assert rate_of(found) == (None, WHY_UNKNOWN[found.why])
        return found.why

    assert why() is NotKnown.NOT_POLLED
    admit(ledger, clock, A)
    poll(ledger, plan, clock, {A: (1000, 100)})
    assert why() is NotKnown.ONE_POLL
    clock.pass_s(61)
    assert why() is NotKnown.OLD_POLL
    poll(ledger, plan, clock, {A: (1000, 200)})  # a gap without polls is no pace
    assert why() is NotKnown.ONE_POLL
    poll(ledger, plan, clock, {A: (1000, 300)})
    evidence = read_evidence(ledger, "p1")
    earlier = tuple(replace(sample, received_bytes=None) for sample in evidence.recent)
    older = pace_of(replace(evidence, recent=earlier), clock())
    assert older == Unknown(NotKnown.NOT_RECORDED)
    settle(ledger, MoveState.PENDING, A)
    ledger.transition("p1", PlanState.PAUSED, "a person")
    assert why() is NotKnown.NOT_RUNNING


def test_a_broker_that_was_silent_is_named_where_its_rate_would_be(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    admit(ledger, clock, A, B)
    poll(ledger, plan, clock, {A: (1000, 100), B: (500, 100)})
    poll(ledger, plan, clock, {A: (1000, 200), B: (500, 0)})  # B's copy is not read
    found = pace(ledger, clock)
    assert found.of_partition(A.partition) == 100 / seconds(ledger, found)
    assert found.of_partition(B.partition) is NotKnown.BROKER_SILENT
    assert found.of_partition(C.partition) is NotKnown.NOT_POLLED


def test_rows_make_up_the_head_when_the_target_of_a_copy_has_died(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    """What came to it within the minute is in the head and in the table of brokers."""
    admit(ledger, clock, A, B)
    poll(ledger, plan, clock, {A: (1000, 100), B: (500, 100)})
    poll(ledger, plan, clock, {A: (1000, 200), B: (500, 300)})
    poll(ledger, plan, clock, {A: (1000, 300), B: (500, 0)})  # B's copy is not read
    found = pace(ledger, clock)
    known, span_s = Known(found, clock(), Source.POLL), seconds(ledger, found)
    assert rate_of_partition(known, A.partition) == (200 / span_s, "")
    assert rate_of_partition(known, B.partition) == (200 / span_s, UNTIL_SILENT)
    rows = [rate_of_partition(known, each.partition)[0] or 0 for each in (A, B)]
    assert sum(rows) == pytest.approx(found.total)
    assert sum(found.into.values()) == pytest.approx(found.total)


@pytest.mark.parametrize("why", NotKnown)
def test_every_reason_has_words(why: NotKnown) -> None:
    assert WHY_UNKNOWN[why]
