"""Bytes of a plan that never lie: from rows that polls and steps have written to a ledger."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import update

from rehome.account.evidence import read_evidence, read_line
from rehome.account.known import Known, NotKnown, Source, Unknown
from rehome.account.plan_bytes import Copying, PlanBytes, byte_facts, bytes_at_poll, bytes_of
from rehome.account.words.figure_words import in_place_text
from rehome.domain.plan.plan import Plan
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base.models import MOVES as ROWS
from rehome.ledger.base.models import PLANS, PROGRESS_SAMPLES
from rehome.ledger.base.paging import PlanFilter
from rehome.ledger.store import Ledger
from tests.account.plans_with_bytes import MOVES, admit, poll, settle
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan, move

A, B, C = MOVES


def account(ledger: Ledger) -> PlanBytes:
    found = bytes_of(read_evidence(ledger, "p1"))
    (line,) = ledger.plan_page(PlanFilter(), 0, 10).lines
    assert bytes_of(read_line(ledger, line)) == found
    return found


def copying(ledger: Ledger) -> Copying:
    found = account(ledger).copying
    assert isinstance(found, Known)
    return found.value


def value(fact: Known[int] | Unknown) -> int:
    assert isinstance(fact, Known)
    return fact.value


@pytest.mark.usefixtures("plan")
def test_before_anything_moves_all_is_as_planned(ledger: Ledger) -> None:
    found = account(ledger)
    assert (found.planned, found.dropped) == (1700, 0)
    assert copying(ledger) == Copying(0, 0, 0, 1700)
    assert (copying(ledger).left, found.fraction) == (1700, 0.0)


def test_what_is_in_place_does_not_fall_when_a_copy_that_has_grown_is_done(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    admit(ledger, clock, A, B)
    poll(ledger, plan, clock, {A: (1000, 400), B: (500, 100)})
    assert copying(ledger) == Copying(500, 0, 0, 1700)
    poll(ledger, plan, clock, {A: (1400, 1400), B: (500, 200)})
    before = copying(ledger)
    assert before == Copying(1600, 400, 0, 2100)
    settle(ledger, MoveState.DONE, A)
    assert copying(ledger) == before
    poll(ledger, plan, clock, {B: (500, 300)})
    assert copying(ledger) == Copying(1700, 400, 0, 2100)
    assert value(account(ledger).received) == 1700


def test_a_total_is_what_was_planned_with_what_has_changed_by_name(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    admit(ledger, clock, A, B)
    poll(ledger, plan, clock, {A: (1300, 300), B: (100, 100)})
    settle(ledger, MoveState.FAILED, C)
    found, now = account(ledger), copying(ledger)
    assert (now.grown, now.shrunk, found.dropped) == (300, 400, 200)
    assert now.total == found.planned + now.grown - now.shrunk - found.dropped


def test_what_is_taken_back_is_no_longer_in_place_and_stays_received(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    admit(ledger, clock, A, B)
    poll(ledger, plan, clock, {A: (1000, 400), B: (500, 500)})
    settle(ledger, MoveState.DONE, B)
    settle(ledger, MoveState.PENDING, A)
    ledger.transition("p1", PlanState.PAUSED, "a person")
    found = account(ledger)
    assert copying(ledger) == Copying(500, 0, 0, 1700)
    assert (value(found.received), value(found.taken_back)) == (900, 400)
    assert isinstance(found.copying, Known)
    assert found.copying.source is Source.LEDGER
    ledger.claim("p1")
    admit(ledger, clock, A)
    poll(ledger, plan, clock, {A: (1000, 100)})
    assert copying(ledger) == Copying(600, 0, 0, 1700)
    found = account(ledger)
    assert (value(found.received), value(found.taken_back)) == (1000, 400)


@pytest.mark.slow
def test_received_never_falls_where_a_copy_shrinks_or_begins_anew(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    admit(ledger, clock, A)
    received = []
    for copied in (400, 600, 0, 50, 40, 240):
        poll(ledger, plan, clock, {A: (1000, copied)})
        received.append(value(account(ledger).received))
    assert received == [400, 600, 600, 600, 600, 800]


def test_of_a_plan_without_bytes_to_copy_the_moves_that_are_done_count(
    ledger: Ledger, tmp_path: Path, clock: SetClock
) -> None:
    moves = [move("e", n, (1, 2), (3, 2), 0) for n in range(5)]
    empty = make_plan("p1", *moves)
    ledger.create_plan(empty, {}, tmp_path.as_uri(), "run-1", "ann", "k", "dag")
    assert (account(ledger).fraction, account(ledger).has_bytes) == (0.0, False)
    ledger.approve("p1", empty.plan_hash, "ann")
    ledger.claim("p1")
    admit(ledger, clock, *moves[:3])
    settle(ledger, MoveState.DONE, moves[0])
    settle(ledger, MoveState.CANCELLED, moves[1], moves[2])
    assert account(ledger).fraction == pytest.approx(1 / 3)
    assert in_place_text(account(ledger)) == "there are no bytes to copy"


def test_a_cancelled_plan_has_in_place_what_was_done_and_copies_no_more(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    admit(ledger, clock, A, B)
    poll(ledger, plan, clock, {A: (1200, 400), B: (600, 600)})
    settle(ledger, MoveState.DONE, B)
    settle(ledger, MoveState.CANCELLED, A, C)
    ledger.transition("p1", PlanState.CANCELLED, "a person")
    assert copying(ledger) == Copying(600, 100, 0, 600)
    assert (account(ledger).dropped, copying(ledger).left) == (1200, 0)


def test_a_copy_that_was_not_whole_when_it_was_read_is_whole_once_it_is_done(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    admit(ledger, clock, A)
    poll(ledger, plan, clock, {A: (1000, 700)})
    settle(ledger, MoveState.DONE, A)
    assert copying(ledger).in_place == 1000


def test_what_a_move_had_copied_before_it_was_taken_back_is_not_in_place_later(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    """It starts again, and is done without a poll that has seen it."""
    admit(ledger, clock, A)
    poll(ledger, plan, clock, {A: (1000, 1000)})
    settle(ledger, MoveState.PENDING, A)
    clock.pass_s(10)
    admit(ledger, clock, A)
    settle(ledger, MoveState.DONE, A)
    assert account(ledger).copying == Unknown(NotKnown.NOT_RECORDED)


def test_a_move_that_was_there_already_has_brought_nothing(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    settle(ledger, MoveState.DONE, A)
    assert copying(ledger) == Copying(0, 0, 1000, 700)


def test_rows_of_an_earlier_version_are_unknown_and_never_nothing(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    admit(ledger, clock, A)
    poll(ledger, plan, clock, {A: (1000, 1000)})
    settle(ledger, MoveState.DONE, A)
    with ledger.writing() as connection:  # as the migration leaves them
        connection.execute(update(ROWS).values(bytes_in_place=None))
        connection.execute(update(PLANS).values(bytes_taken_back=None))
        gone = dict.fromkeys(("received_bytes", "grown_bytes", "shrunk_bytes"))
        connection.execute(update(PROGRESS_SAMPLES).values(gone))
    unknown = Unknown(NotKnown.NOT_RECORDED)
    found = account(ledger)
    assert (found.copying, found.received, found.taken_back) == (unknown,) * 3
    assert found.fraction == pytest.approx(1000 / 1700)
    admit(ledger, clock, B)
    poll(ledger, plan, clock, {B: (500, 100)})  # by this version
    settle(ledger, MoveState.PENDING, B)
    found = account(ledger)
    assert (found.copying, found.received, found.taken_back) == (unknown,) * 3
    known = {"planned": 1700, "dropped": 0}
    assert {name: size for name, size in byte_facts(found).items() if size is not None} == known


def test_a_poll_says_the_same_before_it_is_recorded(
    ledger: Ledger, plan: Plan, clock: SetClock
) -> None:
    admit(ledger, clock, A, B)
    settle(ledger, MoveState.FAILED, C)
    poll(ledger, plan, clock, {A: (1300, 300), B: (100, 100)})
    evidence = read_evidence(ledger, "p1")
    assert evidence.sample is not None
    by_poll = bytes_at_poll(plan.bytes_to_copy, 0, evidence.sample)
    by_ledger = account(ledger)
    assert byte_facts(by_poll) == byte_facts(by_ledger)
    assert by_poll.copying == by_ledger.copying
