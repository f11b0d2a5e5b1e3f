"""What the judge must find of watching, in histories that no run has made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.world.judge.test_living import log_of
from world.judge.heals import Begun, CarriedOut, Watched, Watching, wrong_in_watching
from world.judge.violations import Kind
from world.kafka.metadata import MetadataLog

BEGUN = Begun(400.0, "A", "watch__1", (2,), grace_s=100.0, seen_s=180.0, ended_at=450.0)
CARRIED_OUT = CarriedOut(410.0, 430.0, "A", "p", (2,), 180.0, 1, 10, 10)
KNOWN = Watched("A", 500.0, frozenset({2}), under_replicated=True)
DEAD = (200.0, 2, True)
Fenced = tuple[float, int, bool]
ALL_DEAD = tuple((200.0, broker, True) for broker in range(1, 5))
"""Of these nobody can take a snapshot."""


def texts(log: MetadataLog, seen: Watching, ended_at: float = 1000.0) -> list[str]:
    watched = replace(seen, watched=seen.watched or [replace(KNOWN, settles_s=0.0)])
    found = wrong_in_watching(log, watched, ended_at)
    return [each.text.partition(": ")[2] for each in found if each.kind is Kind.HEALED_WRONGLY]


def started(log: MetadataLog, *runs: Begun, forgotten: Sequence[str] = ()) -> list[str]:
    return texts(log, Watching(runs, forgotten=forgotten))


def test_a_broker_that_is_dead_for_long_is_healed() -> None:
    assert started(log_of(DEAD), BEGUN) == []


@pytest.mark.parametrize(
    ("fenced", "found"),
    [
        ((), "broker 2 is alive"),
        (((350.0, 2, True),), "broker 2 has been dead for less than 100 s"),
        (((100.0, 2, True), (200.0, 4, True)), "away as a whole: dc0"),
    ],
)
def test_nothing_else_is(fenced: tuple[Fenced, ...], found: str) -> None:
    assert found in "; ".join(started(log_of(*fenced), BEGUN))


def test_a_proposal_is_made_while_a_data_centre_is_away() -> None:
    log = log_of((100.0, 2, True), (200.0, 4, True))
    assert started(log, replace(BEGUN, asks=True)) == []


def test_one_that_was_back_for_several_snapshots_is_not_healed() -> None:
    heal = Begun(800.0, "A", "watch__1", (2,), grace_s=500.0, seen_s=180.0)
    absent = log_of((100.0, 2, True), (350.0, 2, False), (600.0, 2, True))
    assert started(absent, heal) == ["broker 2 has been back in between"]


@pytest.mark.parametrize(
    ("at", "failed", "found"),
    [
        (420.0, False, ["watch__1 has not ended"]),
        (900.0, True, ["watch__1 has failed 450 s before"]),
        (900.0, False, []),
        (2300.0, True, []),
    ],
)
def test_there_is_one_heal_at_a_time_and_none_soon_after_one_that_failed(
    at: float, failed: bool, found: list[str]
) -> None:
    first = replace(BEGUN, failed=failed)
    second = Begun(at, "A", "watch__2", (2,), 100.0, 180.0)
    assert started(log_of(DEAD), first, second) == found
    assert started(log_of(DEAD), first, second, forgotten=["A"]) == []


@pytest.mark.parametrize(
    ("fenced", "plan", "found"),
    [
        ((DEAD,), CARRIED_OUT, []),
        ((DEAD, (405.0, 4, True)), CARRIED_OUT, ["away as a whole: dc0, many brokers"]),
        ((DEAD, (420.0, 4, True)), CARRIED_OUT, []),
        ((DEAD, (205.0, 2, False)), CARRIED_OUT, ["broker 2 has been back for 180 s"]),
        ((DEAD,), replace(CARRIED_OUT, copies_bytes=11), ["it copies 11 bytes of 10"]),
    ],
)
def test_what_is_carried_out_is_right_when_it_begins(
    fenced: tuple[Fenced, ...], plan: CarriedOut, found: list[str]
) -> None:
    assert texts(log_of(*fenced), Watching(carried_out=[plan])) == found


def test_no_more_is_carried_out_within_a_day_than_is_allowed() -> None:
    plans = [CARRIED_OUT, replace(CARRIED_OUT, plan_id="q", at=431.0)]
    assert texts(log_of(DEAD), Watching(carried_out=plans)) == ["it is the 2th within a day, of 1"]
    assert texts(log_of(DEAD), Watching(carried_out=plans, forgotten=["A"])) == []


@pytest.mark.parametrize(
    ("known", "fenced", "found"),
    [
        (KNOWN, (DEAD,), []),
        (KNOWN, (), ["broker 2 has been alive for 500 s, and is called dead"]),
        (
            replace(KNOWN, dead=frozenset()),
            (DEAD,),
            ["broker 2 has been dead for 500 s, and no finding says so"],
        ),
        (replace(KNOWN, dead=frozenset()), ((600.0, 2, True),), []),
        (replace(KNOWN, dead=frozenset()), ALL_DEAD, []),
    ],
)
def test_findings_open_and_close(
    known: Watched, fenced: tuple[Fenced, ...], found: list[str]
) -> None:
    violations = wrong_in_watching(log_of(*fenced), Watching(watched=[known]), 1000.0)
    assert [each.text.partition(": ")[2] for each in violations] == found
